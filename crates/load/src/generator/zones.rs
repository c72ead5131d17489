//! Random offsets by zones of the region, each with a share of the I/Os.

use std::sync::Arc;

use crate::stream::Stream;
use crate::{Extent, Zone};

/// Draws blocks by zone.
#[derive(Clone, Debug)]
pub(super) struct Zoned {
    zones: Arc<[DrawnZone]>,
    stream: Stream,
}

/// A zone that receives draws.
#[derive(Clone, Copy, Debug)]
struct DrawnZone {
    /// A 32-bit draw below this, and not below the value of the previous zone, falls into the zone.
    below: u64,
    first: u64,
    blocks: u64,
}

impl Zoned {
    /// For the blocks below `blocks`, at a distance of `align_bytes`. The shares add up to 100 %.
    pub(super) fn new(zones: &[Zone], blocks: u64, align_bytes: u64, stream: Stream) -> Zoned {
        let (mut end, mut share) = (0.0, 0.0);
        let mut drawn = Vec::with_capacity(zones.len());
        for zone in zones {
            // Tried with fio 3.33: where a zone is smaller than a block, the block at its start is used.
            let first = (end as u64).min(blocks - 1);
            end += match zone.extent {
                Extent::Percent(percent) => percent / 100.0 * blocks as f64,
                Extent::Bytes(bytes) => bytes as f64 / align_bytes as f64,
            };
            share += zone.access_percent;
            if zone.access_percent > 0.0 {
                let below = (share / 100.0 * (1u64 << 32) as f64) as u64;
                drawn.push(DrawnZone { below, first, blocks: (end as u64).min(blocks).saturating_sub(first).max(1) });
            }
        }
        if let Some(last) = drawn.last_mut() {
            last.below = 1 << 32;
        }
        Zoned { zones: drawn.into(), stream }
    }

    pub(super) fn next(&mut self) -> u64 {
        let draw = self.stream.bits() >> 32;
        let zone = self.zones.iter().find(|zone| draw < zone.below);
        zone.map_or(0, |zone| zone.first + self.stream.below(zone.blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;

    fn zone(access_percent: f64, extent: Extent) -> Zone {
        Zone { access_percent, extent }
    }

    /// The shares of draws between consecutive `ends`.
    fn shares<const N: usize>(zones: &[Zone], blocks: u64, ends: [u64; N]) -> [f64; N] {
        const DRAWS: usize = 100_000;
        let mut zoned = Zoned::new(zones, blocks, 4096, Stream::new(5, 0, Purpose::Offset));
        let mut shares = [0.0; N];
        for _ in 0..DRAWS {
            let block = zoned.next();
            assert!(block < blocks);
            let part = ends.iter().position(|&end| block < end).unwrap();
            shares[part] += 100.0 / DRAWS as f64;
        }
        shares
    }

    fn assert_near<const N: usize>(shares: [f64; N], expected: [f64; N]) {
        assert!(shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < 0.7), "{shares:?}");
    }

    #[test]
    fn each_zone_has_its_share_spread_evenly() {
        let zones = [(60.0, 10.0), (30.0, 20.0), (8.0, 30.0), (2.0, 40.0)].map(|(a, p)| zone(a, Extent::Percent(p)));
        assert_near(shares(&zones, 1000, [50, 100, 300, 600, 1000]), [30.0, 30.0, 30.0, 8.0, 2.0]);
    }

    #[test]
    fn zones_in_bytes_need_not_cover_the_region_and_may_be_left_alone() {
        let zones = [(0.0, 100), (75.0, 200), (25.0, 100)].map(|(a, blocks)| zone(a, Extent::Bytes(blocks * 4096)));
        assert_near(shares(&zones, 1000, [100, 300, 400, 1000]), [0.0, 75.0, 25.0, 0.0]);
    }

    #[test]
    fn a_zone_smaller_than_a_block_is_its_first_block() {
        let tiny = [zone(50.0, Extent::Percent(0.0)), zone(50.0, Extent::Percent(100.0))];
        assert_near(shares(&tiny, 100, [1, 100]), [50.5, 49.5]);
        assert_near(shares(&tiny, 1, [1]), [100.0]);
        let at_the_end = [zone(50.0, Extent::Percent(100.0)), zone(50.0, Extent::Percent(0.0))];
        assert_near(shares(&at_the_end, 100, [99, 100]), [49.5, 50.5]);
    }
}
