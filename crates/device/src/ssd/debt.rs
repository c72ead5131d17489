//! Garbage-collection debt: the cause of occasional pauses of a drive with random writes.
//!
//! Each page written at random leaves a page to clean up; background work cleans at a constant rate. While writes come
//! faster than that, the debt grows; above a threshold the drive completes nothing until it has cleaned up, which
//! clears the debt. So pauses depend on the load: a saturated drive has one every few seconds, a throttled one none.
//! The published SATA SSD table (habr) needs both (pauses at fixed times fit only one of its rows).
//!
//! A write that continues a recent one belongs to a sequential stream; it overwrites whole erase blocks and leaves
//! nothing to clean up. This is an assumption without a source.

use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES, Sector};
use serde::{Deserialize, Serialize};

use crate::random::{Random, UniformTime, from_ms};
use crate::streams::Streams;

/// When garbage collection pauses the drive: the `[ssd.gc]` section of a preset. A page has 4 KiB.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GarbageCollection {
    /// Pages cleaned per second in the background.
    pub background_pages_per_s: f64,
    /// Debt above which the drive pauses, pages.
    pub threshold_pages: f64,
    /// Maximum duration of a pause, ms.
    pub stall_ms: f64,
    /// Each pause is shortened by a uniform random percentage of up to this.
    pub stall_shortening_percent: f64,
    /// Flash that was erased before the load, gigabytes (10^9 bytes): as long as less was written nothing is left to clean up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_gb: Option<f64>,
}

/// Sectors in a page.
const PAGE_SECTORS: u32 = 8;

/// The debt. It is measured by the background time that it takes, because it then falls by one picosecond per
/// picosecond, without a division.
#[derive(Clone, Debug)]
pub(super) struct Debt {
    /// Debt, ps of background work.
    owed_ps: u64,
    /// When `owed_ps` was last updated.
    counted_at: Instant,
    /// Debt above which the drive pauses, ps of background work.
    threshold_ps: u64,
    /// Background work per page, ps.
    page_ps: u64,
    /// Sectors that are erased already.
    erased_sectors: u64,
    /// Duration of a pause.
    stall: UniformTime,
    streams: Streams,
}

impl Debt {
    pub(super) fn new(parameters: &GarbageCollection) -> Debt {
        let page_ps = 1e12 / parameters.background_pages_per_s;
        Debt {
            owed_ps: 0,
            counted_at: Instant::ZERO,
            threshold_ps: (parameters.threshold_pages * page_ps).round() as u64,
            page_ps: page_ps.round() as u64,
            erased_sectors: (parameters.erased_gb.unwrap_or(0.0) * 1e9 / SECTOR_BYTES as f64) as u64,
            stall: UniformTime::shortened(from_ms(parameters.stall_ms), parameters.stall_shortening_percent),
            streams: Streams::default(),
        }
    }

    /// Counts a write that leaves the stage at `at`, and returns the duration of the pause after it, which is usually
    /// zero.
    #[inline]
    pub(super) fn record_write(&mut self, at: Instant, sector: Sector, sectors: u32, random: &mut Random) -> Nanos {
        let continues = self.streams.continues(sector, sectors);
        if self.erased_sectors > 0 {
            self.erased_sectors = self.erased_sectors.saturating_sub(u64::from(sectors));
            return Nanos::ZERO;
        }
        if continues {
            return Nanos::ZERO;
        }
        let cleaned_ps = at.since(self.counted_at).0.saturating_mul(1000);
        let new_ps = u64::from(sectors.div_ceil(PAGE_SECTORS)).saturating_mul(self.page_ps);
        self.owed_ps = self.owed_ps.saturating_sub(cleaned_ps).saturating_add(new_ps);
        self.counted_at = at;
        if self.owed_ps <= self.threshold_ps {
            return Nanos::ZERO;
        }
        self.owed_ps = 0;
        self.stall.draw(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::STREAMS;

    /// A threshold of 10 pages, 1000 cleaned per second, pauses of exactly 5 ms.
    fn debt() -> Debt {
        Debt::new(&GarbageCollection {
            background_pages_per_s: 1000.0,
            threshold_pages: 10.0,
            stall_ms: 5.0,
            stall_shortening_percent: 0.0,
            erased_gb: None,
        })
    }

    /// Which of `writes` writes of 4 KiB at random offsets, one every `every_us`, are followed by a pause.
    fn pausing_writes(writes: u64, every_us: u64) -> Vec<u64> {
        let (mut debt, mut random) = (debt(), Random::from_seed(1));
        (1..=writes)
            .filter(|n| debt.record_write(Instant(n * every_us * 1000), Sector(n * 100), 8, &mut random) > Nanos::ZERO)
            .collect()
    }

    #[test]
    fn writes_at_the_background_rate_never_stop_the_drive() {
        assert_eq!(pausing_writes(10_000, 1000), []);
    }

    #[test]
    fn writes_at_twice_the_background_rate_stop_it_whenever_the_threshold_is_exceeded() {
        // Each write adds one page, and half a page is cleaned until the next: 1, 1.5, .. 10, 10.5 with the 20th.
        assert_eq!(pausing_writes(60, 500), [20, 40, 60]);
    }

    #[test]
    fn interleaved_sequential_streams_leave_nothing_to_clean_up() {
        let (mut debt, mut random) = (debt(), Random::from_seed(1));
        for write in 0..1000 {
            for stream in 0..STREAMS as u64 {
                let sector = Sector(stream * 1_000_000 + write * 8);
                assert_eq!(debt.record_write(Instant::ZERO, sector, 8, &mut random), Nanos::ZERO);
            }
        }
        // Only the first write of each stream counts.
        assert_eq!(debt.owed_ps, STREAMS as u64 * debt.page_ps);
    }

    #[test]
    fn a_large_random_write_adds_all_its_pages() {
        let (mut debt, mut random) = (debt(), Random::from_seed(1));
        assert_eq!(debt.record_write(Instant::ZERO, Sector(0), 80, &mut random), Nanos::ZERO);
        assert_eq!(debt.record_write(Instant::ZERO, Sector(1000), 1, &mut random), Nanos::from_millis(5));
    }
}
