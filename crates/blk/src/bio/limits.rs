//! Queue limits: maximum size and segments of a request (BL-13, BL-14).

use crate::bio::Op;
use crate::ground::ids::Sector;

/// The limits of a queue, in 512-byte sectors unless noted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Logical block size in sectors.
    pub logical_block: u32,
    /// Physical block size in sectors.
    pub physical_block: u32,
    /// Largest read or write.
    pub max_sectors: u32,
    /// Largest read or write that the hardware supports (`max_hw_sectors_kb`).
    pub max_hw_sectors: u32,
    /// Largest number of physical segments of a request.
    pub max_segments: u16,
    /// No request crosses a multiple of this; 0 for no such limit.
    pub chunk_sectors: u32,
    /// Largest discard; 0 if unsupported.
    pub max_discard_sectors: u32,
    /// Most ranges in one discard command (`max_discard_segments`): discards that are not contiguous merge up to this
    /// many.
    pub max_discard_segments: u16,
    /// Discards begin and end at multiples of this.
    pub discard_granularity: u32,
    /// Largest write-zeroes; 0 if unsupported.
    pub max_write_zeroes_sectors: u32,
    /// Size of the device.
    pub capacity: Sector,
    /// Whether the device has a volatile write cache, so flushes have something to flush (`queue/write_cache`).
    pub write_cache: bool,
    /// Whether the device supports FUA writes (`queue/fua`).
    pub fua: bool,
    /// Whether the device executes other commands while a flush is in flight (SATA disks with NCQ do not). Used by
    /// legacy queues.
    pub flush_queueable: bool,
    /// First sectors of the second and further independent actuators of a disk, ascending. Not a limit, but used by
    /// schedulers.
    pub actuators: Vec<Sector>,
    /// Whether the device is rotational. Not a limit, but used by schedulers.
    pub rotational: bool,
}

impl Limits {
    /// Limits of a device with this `max_hw_sectors`, under a kernel whose software limit is `cap`.
    #[must_use]
    pub fn new(logical_block: u32, physical_block: u32, max_hw_sectors: u32, cap: u32, max_segments: u16) -> Self {
        let max_sectors = max_hw_sectors.min(cap);
        Limits {
            logical_block,
            physical_block,
            max_sectors: max_sectors - max_sectors % logical_block.max(1),
            max_hw_sectors,
            max_segments,
            chunk_sectors: 0,
            max_discard_sectors: u32::MAX >> 9,
            max_discard_segments: 1,
            discard_granularity: physical_block,
            max_write_zeroes_sectors: 0,
            capacity: Sector(u64::MAX),
            write_cache: false,
            fua: false,
            flush_queueable: true,
            rotational: false,
            actuators: Vec::new(),
        }
    }

    /// Returns the first inconsistent field and the reason, if any.
    pub fn contradiction(&self) -> Option<(&'static str, String)> {
        let block = self.logical_block.max(1);
        let is_multiple = |sectors: u32| sectors.is_multiple_of(block);
        if self.max_sectors < block {
            Some((
                "limits.max_sectors",
                format!("{} is less than the logical block size of {block} sectors", self.max_sectors),
            ))
        } else if self.max_segments == 0 {
            Some(("limits.max_segments", "must be at least 1".into()))
        } else if !is_multiple(self.physical_block) {
            Some((
                "limits.physical_block",
                format!("{} is not a multiple of the logical block size ({block} sectors)", self.physical_block),
            ))
        } else if !is_multiple(self.chunk_sectors) {
            Some((
                "limits.chunk_sectors",
                format!("{} is not a multiple of the logical block size ({block} sectors)", self.chunk_sectors),
            ))
        } else if !self.actuators.is_sorted_by(|first, second| first < second) {
            Some(("limits.actuators", "their first sectors must be in ascending order".into()))
        } else {
            None
        }
    }

    /// Whether an I/O is aligned to logical blocks.
    #[inline]
    #[must_use]
    pub fn is_aligned(&self, sector: Sector, sectors: u32) -> bool {
        let block = u64::from(self.logical_block.max(1));
        let combined_bits = sector.0 | u64::from(sectors);
        if block.is_power_of_two() {
            combined_bits & (block - 1) == 0
        } else {
            sector.0.is_multiple_of(block) && u64::from(sectors).is_multiple_of(block)
        }
    }

    /// Largest request of operation `op` that starts at `sector`.
    #[inline]
    #[must_use]
    pub fn max_at(&self, op: Op, sector: Sector) -> u32 {
        match op {
            Op::Discard => self.max_discard_sectors,
            Op::WriteZeroes => self.max_write_zeroes_sectors,
            Op::Read | Op::Write | Op::Flush if self.chunk_sectors == 0 => self.max_sectors,
            Op::Read | Op::Write | Op::Flush => {
                let sectors_to_boundary = self.chunk_sectors - (sector.0 % u64::from(self.chunk_sectors)) as u32;
                self.max_sectors.min(sectors_to_boundary)
            }
        }
    }
}

impl Default for Limits {
    /// 512-byte blocks, 1280 KiB, 128 segments.
    fn default() -> Self {
        Limits::new(1, 1, u32::MAX, 2560, 128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_checked_also_for_blocks_that_are_no_power_of_two() {
        for (block, sector, sectors, expected) in [
            (8, 8, 16, true),
            (8, 4, 8, false),
            (8, 8, 4, false),
            (0, 1, 1, true),
            (3, 6, 9, true),
            (3, 6, 8, false),
            (3, 7, 9, false),
        ] {
            let limits = Limits { logical_block: block, ..Limits::default() };
            assert_eq!(
                limits.is_aligned(Sector(sector), sectors),
                expected,
                "{sectors} at {sector} in blocks of {block}"
            );
        }
    }

    #[test]
    fn limits_that_contradict_themselves_are_named_by_their_field() {
        let limits = |change: fn(&mut Limits)| {
            let mut limits = Limits::new(8, 8, 1024, 2560, 128);
            change(&mut limits);
            limits.contradiction().map(|(field, _)| field)
        };
        assert_eq!(limits(|_| {}), None);
        assert_eq!(limits(|limits| limits.max_sectors = 8), None);
        assert_eq!(limits(|limits| limits.max_sectors = 7), Some("limits.max_sectors"));
        assert_eq!(limits(|limits| limits.max_segments = 0), Some("limits.max_segments"));
        assert_eq!(limits(|limits| limits.physical_block = 12), Some("limits.physical_block"));
        assert_eq!(limits(|limits| limits.chunk_sectors = 64), None);
        assert_eq!(limits(|limits| limits.chunk_sectors = 63), Some("limits.chunk_sectors"));
        assert_eq!(limits(|limits| limits.actuators = vec![Sector(100), Sector(200)]), None);
        let twice = limits(|limits| limits.actuators = vec![Sector(100), Sector(100)]);
        assert_eq!(twice, Some("limits.actuators"), "an actuator without a sector");
    }

    #[test]
    fn requests_are_made_of_whole_blocks_and_a_discard_may_be_4_gb_long_less_a_sector() {
        let limits = Limits::new(8, 8, 1029, 2560, 128);
        assert_eq!(
            (limits.max_sectors, limits.max_hw_sectors, limits.max_discard_sectors),
            (1024, 1029, (1 << 23) - 1)
        );
        assert_eq!(Limits::new(8, 8, 4096, 2563, 128).max_sectors, 2560, "what the kernel cuts at counts");
    }
}
