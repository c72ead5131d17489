//! Descriptor chains: the buffers of a request, given by one index.
//!
//! Used by: `device`, `request`, `ring`; crate `serve`.
//! Tests: `crates/vhost/tests/any_bytes.rs`, `crates/serve/tests/guest/hostile.rs`.

use virtio_bindings::bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};

use crate::config_space::SEGMENTS_MAX;
use crate::memory::GuestAddressSpace;

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u64 = 16;
/// Descriptors read at once: header, data and status, and one more.
const WINDOW: usize = 4;

/// A range of guest memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DescriptorSegment {
    /// Guest-physical address.
    pub address: u64,
    /// Length in bytes.
    pub len: u32,
}

/// A chain, as two streams of bytes: the driver's data for the device, and the memory for the device's data. Boundaries
/// between descriptors have no meaning.
#[derive(Clone, Default, Debug)]
pub struct Chain {
    readable: Vec<DescriptorSegment>,
    writable: Vec<DescriptorSegment>,
    readable_bytes: u64,
    writable_bytes: u64,
    is_out_of_order: bool,
}

/// Why a chain has no valid end, so that the position of its status is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// An index beyond its table.
    Index,
    /// An unreadable table.
    Unreadable,
    /// More descriptors than allowed, for example because of a cycle.
    TooLong,
    /// An indirect table that is empty, not a whole number of descriptors, nested, not at the end of its chain, or not
    /// negotiated.
    Table,
}

struct Descriptor {
    address: u64,
    len: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn has(&self, flag: u32) -> bool {
        u32::from(self.flags) & flag != 0
    }
}

/// Some descriptors of a table, read at once: those of a chain are usually adjacent.
#[derive(Default)]
struct DescriptorWindow {
    bytes: [[u8; DESCRIPTOR_BYTES as usize]; WINDOW],
    /// The index of the first one, and their number.
    first: u16,
    count: u16,
}

impl DescriptorWindow {
    fn descriptor(
        &mut self,
        space: &impl GuestAddressSpace,
        table: u64,
        size: u16,
        index: u16,
    ) -> Result<Descriptor, Malformed> {
        if index.wrapping_sub(self.first) >= self.count {
            let address = table.checked_add(u64::from(index) * DESCRIPTOR_BYTES).ok_or(Malformed::Unreadable)?;
            let count = usize::from(size - index).min(WINDOW);
            let is_complete = space.read(address, self.bytes[..count].as_flattened_mut());
            // If the table extends beyond memory, read only one descriptor.
            if !is_complete && !space.read(address, &mut self.bytes[0]) {
                return Err(Malformed::Unreadable);
            }
            (self.first, self.count) = (index, if is_complete { count as u16 } else { 1 });
        }
        let bytes = &self.bytes[usize::from(index - self.first)];
        // The slices have the lengths of the arrays.
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let (address, rest) = (u64_at(0), u64_at(8));
        Ok(Descriptor { address, len: rest as u32, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 })
    }
}

impl Chain {
    /// Walks the chain that begins at `head` of a table of `size` descriptors, and reads each descriptor once. Its memory is
    /// reused.
    ///
    /// # Errors
    /// If no end can be found.
    pub fn walk(
        &mut self,
        space: &impl GuestAddressSpace,
        table: u64,
        size: u16,
        head: u16,
        may_be_indirect: bool,
    ) -> Result<(), Malformed> {
        self.clear();
        let descriptors_max = u32::from(size).max(SEGMENTS_MAX + 2);
        let (mut table, mut size, mut index, mut is_indirect) = (table, size, head, false);
        let (mut count, mut window) = (0, DescriptorWindow::default());
        loop {
            if index >= size {
                return Err(Malformed::Index);
            }
            if count == descriptors_max {
                return Err(Malformed::TooLong);
            }
            let descriptor = window.descriptor(space, table, size, index)?;
            if descriptor.has(VRING_DESC_F_INDIRECT) {
                let entries = u64::from(descriptor.len) / DESCRIPTOR_BYTES;
                if is_indirect
                    || !may_be_indirect
                    || descriptor.has(VRING_DESC_F_NEXT)
                    || entries == 0
                    || !u64::from(descriptor.len).is_multiple_of(DESCRIPTOR_BYTES)
                {
                    return Err(Malformed::Table);
                }
                // Indices cannot reach more entries than this.
                size = u16::try_from(entries).unwrap_or(u16::MAX);
                (table, index, is_indirect) = (descriptor.address, 0, true);
                window = DescriptorWindow::default();
                continue;
            }
            count += 1;
            self.add(&descriptor);
            if !descriptor.has(VRING_DESC_F_NEXT) {
                return Ok(());
            }
            index = descriptor.next;
        }
    }

    fn clear(&mut self) {
        self.readable.clear();
        self.writable.clear();
        (self.readable_bytes, self.writable_bytes, self.is_out_of_order) = (0, 0, false);
    }

    fn add(&mut self, descriptor: &Descriptor) {
        let segment = DescriptorSegment { address: descriptor.address, len: descriptor.len };
        if descriptor.has(VRING_DESC_F_WRITE) {
            self.writable.push(segment);
            self.writable_bytes += u64::from(segment.len);
        } else {
            self.is_out_of_order |= !self.writable.is_empty();
            self.readable.push(segment);
            self.readable_bytes += u64::from(segment.len);
        }
    }

    /// Number of its descriptors, or of those read if it has no end.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        self.readable.len() + self.writable.len()
    }

    /// Bytes that the driver has written for the device.
    #[must_use]
    pub fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Bytes that the device may write.
    #[must_use]
    pub fn writable_bytes(&self) -> u64 {
        self.writable_bytes
    }

    /// Whether a readable descriptor follows a writable one.
    #[must_use]
    pub fn is_out_of_order(&self) -> bool {
        self.is_out_of_order
    }

    /// The address of the last writable byte: the status.
    #[must_use]
    pub fn status_address(&self) -> Option<u64> {
        let last = self.writable.iter().rev().find(|segment| segment.len > 0)?;
        last.address.checked_add(u64::from(last.len) - 1)
    }

    /// Fills `into` with the driver's data after the first `skip` bytes. Returns whether there was enough.
    #[must_use]
    pub fn gather(&self, space: &impl GuestAddressSpace, skip: u64, into: &mut [u8]) -> bool {
        let mut done = 0;
        for segment in skip_bytes(&self.readable, skip) {
            if done == into.len() {
                break;
            }
            let end = into.len().min(done + segment.len as usize);
            if !space.read(segment.address, &mut into[done..end]) {
                return false;
            }
            done = end;
        }
        done == into.len()
    }

    /// Writes `from` to the writable descriptors. Returns whether everything could be written.
    #[must_use]
    pub fn scatter(&self, space: &impl GuestAddressSpace, from: &[u8]) -> bool {
        let mut done = 0;
        for segment in &self.writable {
            if done == from.len() {
                break;
            }
            let end = from.len().min(done + segment.len as usize);
            if !space.write(segment.address, &from[done..end]) {
                return false;
            }
            done = end;
        }
        done == from.len()
    }
}

/// Pieces without the first bytes. A piece that would wrap around is out of memory anyway.
fn skip_bytes(segments: &[DescriptorSegment], skip: u64) -> impl Iterator<Item = DescriptorSegment> + '_ {
    let mut skip = skip;
    segments.iter().map(move |segment| {
        let skipped = skip.min(u64::from(segment.len));
        skip -= skipped;
        DescriptorSegment { address: segment.address.saturating_add(skipped), len: segment.len - skipped as u32 }
    })
}
