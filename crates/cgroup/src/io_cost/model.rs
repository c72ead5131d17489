//! The linear cost model: six figures of a device, and what a bio costs by them.

use hoistway_blk::bio::{Direction, Op};
use hoistway_blk::ground::{Nanos, SECTOR_BYTES};

/// Size of the I/O that the figures in operations per second are for.
const PAGE_BYTES: u64 = 4096;

/// Costs are computed in units of 2^-20 ns, so that a cost is right to the nanosecond whatever the size.
const FRACTION_BITS: u32 = 20;

/// The most that one bio costs: an hour, which no sensible model exceeds. Keeps sums of costs in range.
const COST_MAX_NS: u64 = 3_600_000_000_000;

/// What a device can do alone, by kind of I/O. All are at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostModel {
    /// Bytes read per second.
    pub rbps: u64,
    /// Sequential reads of 4 KiB per second.
    pub rseqiops: u64,
    /// Random reads of 4 KiB per second.
    pub rrandiops: u64,
    /// Bytes written per second.
    pub wbps: u64,
    /// Sequential writes of 4 KiB per second.
    pub wseqiops: u64,
    /// Random writes of 4 KiB per second.
    pub wrandiops: u64,
}

/// The content of `io.cost.model`: figures that were written, or `ctrl=auto`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IoCostModel {
    /// The figures, in the order of [`IoCostModel::KEYS`]; `None` for those that were not written.
    pub(super) figures: [Option<u64>; 6],
}

impl IoCostModel {
    /// The keys of the figures, in the order of the file.
    pub const KEYS: [&str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

    /// The figures to use: those that were written, and of `automatic` the others.
    ///
    /// # Errors
    /// With the keys of the figures that are missing in both.
    pub fn resolve(&self, automatic: Option<CostModel>) -> Result<CostModel, Vec<&'static str>> {
        let automatic = automatic.map(CostModel::figures);
        let figures: [Option<u64>; 6] =
            std::array::from_fn(|index| self.figures[index].or(automatic.map(|figures| figures[index])));
        let missing = || figures.iter().zip(IoCostModel::KEYS).filter(|(figure, _)| figure.is_none());
        let [Some(rbps), Some(rseqiops), Some(rrandiops), Some(wbps), Some(wseqiops), Some(wrandiops)] = figures else {
            return Err(missing().map(|(_, key)| key).collect());
        };
        Ok(CostModel { rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops })
    }
}

impl From<CostModel> for IoCostModel {
    fn from(model: CostModel) -> IoCostModel {
        IoCostModel { figures: model.figures().map(Some) }
    }
}

impl CostModel {
    /// The figures in the order of the file.
    fn figures(self) -> [u64; 6] {
        [self.rbps, self.rseqiops, self.rrandiops, self.wbps, self.wseqiops, self.wrandiops]
    }
}

impl std::fmt::Display for CostModel {
    /// A line of `io.cost.model`, without the device number in front.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ctrl=user model=linear")?;
        IoCostModel::KEYS.iter().zip(self.figures()).try_for_each(|(key, figure)| write!(f, " {key}={figure}"))
    }
}

/// The costs of bios, made from the figures once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Cost of an operation without its data, 2^-20 ns, by direction; sequential, then random.
    base: [[u64; 2]; 2],
    /// Cost of a sector of data, 2^-20 ns, by direction.
    sector: [u64; 2],
}

/// Whether I/O of this kind has a cost: flushes and discards have none (IC-3).
pub(super) fn has_cost(op: Op, sectors: u32) -> bool {
    matches!(op, Op::Read | Op::Write | Op::WriteZeroes) && sectors > 0
}

impl Costs {
    pub fn of(model: &CostModel) -> Costs {
        let second = 1_000_000_000_u64 << FRACTION_BITS;
        let sector = |bps: u64| (u128::from(second) * u128::from(SECTOR_BYTES) / u128::from(bps.max(1))) as u64;
        let base = |bps: u64, iops: u64| {
            let page = (u128::from(second) * u128::from(PAGE_BYTES) / u128::from(bps.max(1))) as u64;
            (second / iops.max(1)).saturating_sub(page)
        };
        Costs {
            base: [
                [base(model.rbps, model.rseqiops), base(model.rbps, model.rrandiops)],
                [base(model.wbps, model.wseqiops), base(model.wbps, model.wrandiops)],
            ],
            sector: [sector(model.rbps), sector(model.wbps)],
        }
    }

    /// The cost of a bio in nanoseconds of device time (IC-1).
    pub fn cost_ns(&self, direction: Direction, is_random: bool, sectors: u32) -> u64 {
        let base = self.base[direction.index()][usize::from(is_random)];
        let sum = u128::from(base) + u128::from(self.sector[direction.index()]) * u128::from(sectors);
        let rounded = (sum + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS;
        rounded.min(u128::from(COST_MAX_NS)) as u64
    }

    /// The part of a cost that is for the data (IC-19).
    pub fn data(&self, direction: Direction, sectors: u32) -> Nanos {
        Nanos((self.sector[direction.index()].saturating_mul(u64::from(sectors)) >> FRACTION_BITS).min(COST_MAX_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: CostModel = CostModel {
        rbps: 2_706_339_840,
        rseqiops: 89_698,
        rrandiops: 110_036,
        wbps: 1_063_126_016,
        wseqiops: 135_560,
        wrandiops: 130_734,
    };

    #[test]
    fn a_page_of_each_kind_costs_its_part_of_a_second_and_more_data_its_part_of_the_bandwidth() {
        let costs = Costs::of(&MODEL);
        let kinds = [
            (Direction::Read, false, MODEL.rseqiops, MODEL.rbps),
            (Direction::Read, true, MODEL.rrandiops, MODEL.rbps),
            (Direction::Write, false, MODEL.wseqiops, MODEL.wbps),
            (Direction::Write, true, MODEL.wrandiops, MODEL.wbps),
        ];
        for (direction, is_random, iops, bps) in kinds {
            let page = costs.cost_ns(direction, is_random, 8) as f64;
            assert!((page - 1e9 / iops as f64).abs() <= 0.51, "{direction:?} {is_random}: {page}");
            for kib in [8_u32, 128, 1280] {
                let cost = costs.cost_ns(direction, is_random, kib * 2) as f64;
                let expected = 1e9 / iops as f64 + f64::from(kib - 4) * 1024.0 * 1e9 / bps as f64;
                assert!((cost - expected).abs() <= 0.51, "{direction:?} {is_random} {kib} KiB: {cost}, {expected}");
            }
        }
    }

    #[test]
    fn an_operation_costs_nothing_if_its_data_takes_longer_than_the_operation() {
        let slow = CostModel { rbps: 4096, rrandiops: 1_000_000, ..MODEL };
        assert_eq!(Costs::of(&slow).cost_ns(Direction::Read, true, 8), 1_000_000_000);
        assert_eq!(Costs::of(&slow).cost_ns(Direction::Read, true, 1), 125_000_000);
    }

    #[test]
    fn figures_that_were_not_written_come_from_the_device_or_are_named() {
        let mut written = IoCostModel::default();
        assert_eq!(written.resolve(Some(MODEL)), Ok(MODEL));
        written.figures[1] = Some(7);
        assert_eq!(written.resolve(Some(MODEL)), Ok(CostModel { rseqiops: 7, ..MODEL }));
        assert_eq!(written.resolve(None), Err(vec!["rbps", "rrandiops", "wbps", "wseqiops", "wrandiops"]));
    }
}
