//! The configuration space of a disk.
//!
//! Used by: `device`, `chain`, `request`; crate `serve`.
//! Tests: below.

/// Maximum data segments per request, as announced to drivers.
pub const SEGMENTS_MAX: u32 = 126;
/// Maximum ranges per discard or write-zeroes.
pub(crate) const DISCARD_SEGMENTS_MAX: u32 = 32;
/// Maximum sectors of a discarded range: 1 GiB.
pub const DISCARD_SECTORS_MAX: u32 = 1 << 21;
/// Maximum sectors of a zeroed range, which may have to be written: 16 MiB.
pub const ZERO_SECTORS_MAX: u32 = 1 << 15;
/// Bytes of the configuration space that can be read; after the structure there are zeroes.
pub const CONFIG_BYTES: usize = 256;
/// Bytes of a disk's id.
pub const ID_BYTES: usize = 20;
/// Offset of the only byte that a driver may write: 1 for write back, 0 for write through.
pub(crate) const WRITEBACK_AT: u32 = 32;

/// A disk, as a guest sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Its length in sectors of 512 bytes; whole blocks.
    pub sectors: u64,
    /// Its logical block in bytes.
    pub block_bytes: u32,
    /// Preferred size and alignment of requests in bytes: the logical block times a power of two.
    pub preferred_block_bytes: u32,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Maximum number of rings.
    pub queues: u16,
    /// Its serial number, padded with zeroes.
    pub id: [u8; ID_BYTES],
}

impl Disk {
    /// The id for this text, truncated if it is too long.
    #[must_use]
    pub fn id(text: &str) -> [u8; ID_BYTES] {
        let mut id = [0; ID_BYTES];
        id.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        id
    }

    /// The configuration space, by the layout of virtio's `struct virtio_blk_config`.
    #[must_use]
    pub fn config(&self, is_write_back: bool) -> [u8; CONFIG_BYTES] {
        let mut config = [0; CONFIG_BYTES];
        let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
        let per_block = (self.preferred_block_bytes / self.block_bytes).max(1);
        put(0, &self.sectors.to_le_bytes());
        put(12, &SEGMENTS_MAX.to_le_bytes());
        put(20, &self.block_bytes.to_le_bytes());
        put(24, &[per_block.ilog2() as u8]);
        put(26, &u16::try_from(per_block).unwrap_or(u16::MAX).to_le_bytes());
        put(WRITEBACK_AT as usize, &[u8::from(is_write_back)]);
        put(34, &self.queues.to_le_bytes());
        if !self.read_only {
            put(36, &DISCARD_SECTORS_MAX.to_le_bytes());
            put(40, &DISCARD_SEGMENTS_MAX.to_le_bytes());
            put(44, &(self.block_bytes / 512).to_le_bytes());
            put(48, &ZERO_SECTORS_MAX.to_le_bytes());
            put(52, &DISCARD_SEGMENTS_MAX.to_le_bytes());
            put(56, &[1]);
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_drivers_look_for_them() {
        let disk = Disk {
            sectors: 0x0102_0304_0506,
            block_bytes: 512,
            preferred_block_bytes: 4096,
            read_only: false,
            queues: 4,
            id: Disk::id("a name that is longer than twenty bytes"),
        };
        let config = disk.config(true);
        let u32_at = |at: usize| u32::from_le_bytes(config[at..at + 4].try_into().unwrap());
        assert_eq!(&config[..8], &[6, 5, 4, 3, 2, 1, 0, 0]);
        assert_eq!((u32_at(8), u32_at(12), u32_at(20)), (0, 126, 512));
        assert_eq!((config[24], config[26], config[32], config[34]), (3, 8, 1, 4));
        assert_eq!((u32_at(36), u32_at(44), u32_at(48), config[56]), (DISCARD_SECTORS_MAX, 1, ZERO_SECTORS_MAX, 1));
        assert!(config[60..].iter().all(|&byte| byte == 0) && config[57..60] == [0; 3]);
        assert_eq!(&disk.id, b"a name that is longe");

        let config = Disk { read_only: true, block_bytes: 4096, ..disk }.config(false);
        assert_eq!((config[21], config[24], config[32], &config[36..60]), (16, 0, 0, &[0; 24][..]));
    }
}
