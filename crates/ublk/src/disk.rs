//! A disk as the kernel sees it, and its limits.
//!
//! Used by: `device`, `request`, `queue`; crate `serve`.
//! Tests: below.

use crate::layout::{Layout, PARAMETERS_BYTES};

/// Maximum bytes of a read or write.
pub const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Maximum bytes of a discard.
pub const DISCARD_BYTES_MAX: u32 = 1 << 30;
/// Maximum bytes of a write-zeroes, which may have to be written.
pub const ZERO_BYTES_MAX: u32 = 16 << 20;
/// Maximum requests of a device.
pub const QUEUE_DEPTH_MAX: u16 = 4096;
/// The smallest block of a disk of the kernel, in bytes.
pub const DISK_BLOCK_BYTES_MIN: u32 = SECTOR_BYTES as u32;

pub(crate) const SECTOR_BYTES: u64 = 512;
/// The largest block of a disk that every kernel takes: a page.
const BLOCK_BYTES_MAX: u32 = 4096;

const TYPE_BASIC: u32 = 1 << 0;
const TYPE_DISCARD: u32 = 1 << 1;
const ATTRIBUTE_READ_ONLY: u32 = 1 << 0;
const ATTRIBUTE_ROTATIONAL: u32 = 1 << 1;
const ATTRIBUTE_VOLATILE_CACHE: u32 = 1 << 2;
const ATTRIBUTE_FUA: u32 = 1 << 3;

/// A disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Its length in bytes: whole blocks.
    pub bytes: u64,
    /// Its logical block in bytes: a power of two from 512 to 4096.
    pub block_bytes: u32,
    /// Preferred size and alignment of requests in bytes: the logical block times a power of two.
    pub preferred_block_bytes: u32,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether the kernel takes it for a disk that seeks.
    pub rotational: bool,
}

impl Disk {
    /// `struct ublk_params`. The disk has a cache that is flushed, and honours FUA.
    pub(crate) fn parameters(&self) -> [u8; PARAMETERS_BYTES] {
        let sectors = |bytes: u32| (bytes / SECTOR_BYTES as u32).to_ne_bytes();
        let attributes = [(self.read_only, ATTRIBUTE_READ_ONLY), (self.rotational, ATTRIBUTE_ROTATIONAL)];
        let attributes = attributes.into_iter().filter_map(|(is_set, attribute)| is_set.then_some(attribute));
        let attributes = attributes.fold(ATTRIBUTE_VOLATILE_CACHE | ATTRIBUTE_FUA, |all, attribute| all | attribute);
        let physical = self.preferred_block_bytes.clamp(self.block_bytes, BLOCK_BYTES_MAX);
        let shift = |bytes: u32| [bytes.ilog2() as u8];
        let mut parameters = Layout([0; PARAMETERS_BYTES]);
        let types = if self.read_only { TYPE_BASIC } else { TYPE_BASIC | TYPE_DISCARD };
        parameters.put(0, (PARAMETERS_BYTES as u32).to_ne_bytes()).put(4, types.to_ne_bytes());
        parameters.put(8, attributes.to_ne_bytes());
        parameters.put(12, shift(self.block_bytes)).put(13, shift(physical));
        // The optimal and the minimum size of a request.
        parameters.put(14, shift(physical)).put(15, shift(physical));
        parameters.put(16, sectors(TRANSFER_BYTES_MAX));
        parameters.put(24, (self.bytes / SECTOR_BYTES).to_ne_bytes());
        if !self.read_only {
            parameters.put(44, physical.to_ne_bytes());
            parameters.put(48, sectors(DISCARD_BYTES_MAX)).put(52, sectors(ZERO_BYTES_MAX));
            // One range for each discard.
            parameters.put(56, 1_u16.to_ne_bytes());
        }
        parameters.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{u16_at, u32_at, u64_at};

    #[test]
    fn the_parameters_of_a_disk_lie_where_the_kernel_looks_for_them() {
        let disk = Disk {
            bytes: 0x0102_0304_0600,
            block_bytes: 512,
            preferred_block_bytes: 4096,
            read_only: false,
            rotational: true,
        };
        let parameters = disk.parameters();
        assert_eq!((u32_at(&parameters, 0), u32_at(&parameters, 4)), (60, 3));
        assert_eq!(u32_at(&parameters, 8), 0b1110, "rotational, with a cache and FUA");
        assert_eq!(parameters[12..16], [9, 12, 12, 12]);
        assert_eq!((u32_at(&parameters, 16), u32_at(&parameters, 20)), (2048, 0));
        assert_eq!(u64_at(&parameters, 24), 0x0102_0304_0600 / 512);
        assert_eq!((u32_at(&parameters, 40), u32_at(&parameters, 44)), (0, 4096));
        assert_eq!((u32_at(&parameters, 48), u32_at(&parameters, 52), u16_at(&parameters, 56)), (2 << 20, 32 << 10, 1));
    }

    #[test]
    fn a_read_only_disk_takes_no_discards_and_a_large_preferred_block_is_cut_to_a_page() {
        let disk = Disk {
            bytes: 1 << 20,
            block_bytes: 4096,
            preferred_block_bytes: 1 << 20,
            read_only: true,
            rotational: false,
        };
        let parameters = disk.parameters();
        assert_eq!((u32_at(&parameters, 4), u32_at(&parameters, 8)), (1, 0b1101));
        assert_eq!(parameters[12..16], [12; 4]);
        assert!(parameters[40..].iter().all(|&byte| byte == 0));
    }
}
