//! The memory that a guest shares.
//!
//! Used by: `device`, `chain`, `record`, `request`, `ring`; crate `serve`.
//! Tests: `crates/vhost/tests/any_bytes.rs`.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vm_memory::{
    Bytes as _, FileOffset, GuestAddress, GuestMemoryBackend as _, GuestMemoryMmap, GuestMemoryRegion as _,
    GuestRegionMmap, MemoryRegionAddress, MmapRegion, VolatileSlice,
};

/// Maximum regions at a time.
pub(crate) const REGIONS_MAX: usize = 32;

/// Bytes at guest-physical addresses.
pub trait GuestAddressSpace {
    /// Fills `into` from `address` on. Returns whether the whole range exists; if not, the content of `into` is
    /// undefined.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;

    /// Writes `from` at `address`. Returns whether the whole range exists; if not, the existing part may have been
    /// written.
    fn write(&self, address: u64, from: &[u8]) -> bool;
}

/// A region of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionSpec {
    /// Guest-physical address.
    pub guest: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Address in the front end's process, as used for the addresses of rings.
    pub user: u64,
    /// Its offset in its file, in bytes.
    pub file_offset: u64,
}

/// An error of a region.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    /// It cannot be mapped, for example because its file is too short.
    #[error("a region of {bytes} bytes cannot be mapped: {why}")]
    Map {
        /// Its length.
        bytes: u64,
        /// The reason.
        why: String,
    },
    /// It overlaps another one, or wraps around.
    #[error("a region at {0:#x} overlaps another one or the end of memory")]
    Overlap(u64),
    /// The maximum number of regions is reached.
    #[error("more than {REGIONS_MAX} memory regions")]
    TooMany,
    /// There is no such region.
    #[error("there is no memory region at {0:#x} to remove")]
    None(u64),
}

/// The memory shared by a guest. It is immutable: a changed set of regions is a new value, which shares the mappings of
/// regions that stay.
#[derive(Clone, Default)]
pub struct Memory {
    map: GuestMemoryMmap,
    regions: Vec<RegionSpec>,
}

impl Memory {
    /// The same with one more region.
    ///
    /// # Errors
    /// If it cannot be mapped, or conflicts with the others.
    pub fn with(&self, spec: RegionSpec, file: File) -> Result<Memory, MemoryError> {
        if self.regions.len() == REGIONS_MAX {
            return Err(MemoryError::TooMany);
        }
        let overlap = MemoryError::Overlap(spec.guest);
        if spec.user.checked_add(spec.bytes).is_none() {
            return Err(overlap);
        }
        let region = map_file(file, spec.file_offset, spec.bytes);
        let region = region.map_err(|why| MemoryError::Map { bytes: spec.bytes, why })?;
        let region = GuestRegionMmap::new(region, GuestAddress(spec.guest)).ok_or(overlap.clone())?;
        let map = self.map.insert_region(Arc::new(region)).map_err(|_| overlap)?;
        let mut regions = self.regions.clone();
        regions.push(spec);
        Ok(Memory { map, regions })
    }

    /// The same without the region at this guest-physical address.
    ///
    /// # Errors
    /// If there is no such region of this length.
    pub fn without(&self, guest: u64, bytes: u64) -> Result<Memory, MemoryError> {
        let (map, _) = self.map.remove_region(GuestAddress(guest), bytes).map_err(|_| MemoryError::None(guest))?;
        let mut regions = self.regions.clone();
        regions.retain(|region| region.guest != guest);
        Ok(Memory { map, regions })
    }

    /// The guest-physical address for an address in the front end's process.
    #[must_use]
    pub fn guest_address(&self, user: u64) -> Option<u64> {
        let region = self.regions.iter().find(|region| user >= region.user && user - region.user < region.bytes)?;
        Some(region.guest + (user - region.user))
    }

    /// The memory in the form that rings need.
    pub(crate) fn map(&self) -> &GuestMemoryMmap {
        &self.map
    }
}

/// Maps a part of a file after a check that it exists: a read beyond the end of a file kills the process.
pub(crate) fn map_file(file: File, offset: u64, bytes: u64) -> Result<MmapRegion, String> {
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let has_all = offset.checked_add(bytes).is_some_and(|end| end <= metadata.len());
    // The length of anything else, such as a device, is not meaningful.
    if metadata.is_file() && !has_all {
        return Err(format!("its file has {} bytes", metadata.len()));
    }
    let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
    MmapRegion::from_file(FileOffset::new(file, offset), bytes).map_err(|error| error.to_string())
}

impl Memory {
    /// A range within one region, the usual case: this costs a tenth of the general lookup.
    #[inline]
    pub(crate) fn slice(&self, address: u64, bytes: usize) -> Option<VolatileSlice<'_>> {
        let region = self.map.find_region(GuestAddress(address))?;
        region.get_slice(MemoryRegionAddress(address - region.start_addr().0), bytes).ok()
    }

    /// Reads a word of a ring; `None` if it is not in memory.
    #[inline]
    pub(crate) fn load(&self, address: u64, order: Ordering) -> Option<u16> {
        self.slice(address, 2)?.load(0, order).ok().map(u16::from_le)
    }

    /// Writes a word of a ring. Returns whether it is in memory.
    #[inline]
    pub(crate) fn store(&self, address: u64, value: u16, order: Ordering) -> bool {
        self.slice(address, 2).is_some_and(|slice| slice.store(value.to_le(), 0, order).is_ok())
    }
}

impl GuestAddressSpace for Memory {
    #[inline]
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        match self.slice(address, into.len()) {
            Some(slice) => slice.read_slice(into, 0).is_ok(),
            None => {
                self.map.check_range(GuestAddress(address), into.len())
                    && self.map.read_slice(into, GuestAddress(address)).is_ok()
            }
        }
    }

    #[inline]
    fn write(&self, address: u64, from: &[u8]) -> bool {
        match self.slice(address, from.len()) {
            Some(slice) => slice.write_slice(from, 0).is_ok(),
            None => {
                self.map.check_range(GuestAddress(address), from.len())
                    && self.map.write_slice(from, GuestAddress(address)).is_ok()
            }
        }
    }
}
