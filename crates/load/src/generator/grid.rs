//! The grid of random offsets of a direction.

use crate::{Distribution, Pattern};

/// The random offsets of a direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grid {
    /// Bytes between neighbours.
    pub(super) align: u64,
    /// Number of offsets, at least one.
    pub(super) blocks: u64,
}

/// The random offsets of direction `lane` in a region: all offsets at which its smallest block fits.
pub(super) fn grid(job: &Pattern, lane: usize, region_bytes: u64) -> Grid {
    let (align, smallest) = (job.align_bytes(lane), u64::from(job.sizes[lane].min()));
    Grid { align, blocks: region_bytes.saturating_sub(smallest) / align + 1 }
}

/// Whether all directions share one random order, so that each block is either read or written once. They do if their
/// blocks have the same size and alignment, unless each direction has its own zones.
pub(super) fn share_order(job: &Pattern, region_bytes: u64) -> bool {
    let lanes = job.direction.lanes();
    let is_equivalent_to_reference = |lane: usize| grid(job, lane, region_bytes) == grid(job, lanes[0], region_bytes);
    let is_zoned_alike = |lane: usize| match job.random_offsets().map(|random| &random.distribution) {
        Some(Distribution::Zoned(zones)) => zones[lane] == zones[lanes[0]],
        _ => true,
    };
    lanes.iter().all(|&lane| is_equivalent_to_reference(lane) && is_zoned_alike(lane))
}
