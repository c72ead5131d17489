//! The length of slices: pure functions of the tunables and of the load of a group.
//!
//! Rules: CFQ-24, CFQ-37, CFQ-42.

use super::tunables::Settings;

/// One level changes the slice by the base slice divided by this.
const SLICE_SCALE: i64 = 5;

impl Settings {
    /// The slice of a queue according to its level.
    pub(super) fn level_slice(&self, sync: bool, level: u8) -> i64 {
        let base = self.slice[usize::from(sync)];
        base + base / SLICE_SCALE * (4 - i64::from(level))
    }

    /// The slice of a queue in a class of `average` busy queues, in a group with `group_slice` per round.
    pub(super) fn scaled_slice(&self, slice: i64, average: u32, group_slice: i64) -> i64 {
        let expected = self.slice[1] * i64::from(average);
        if !self.low_latency || expected <= group_slice {
            return slice;
        }
        let floor = slice.min(scale(2 * self.slice_idle, slice, self.slice[1]));
        scale(slice, group_slice, expected).max(floor)
    }

    /// The share of a round for one kind of load: `count` queues out of `of` in its class. For the async kind,
    /// `async_share` is the share of busy async queues on the whole device.
    pub(super) fn workload_slice(
        &self,
        group_slice: i64,
        count: u32,
        busy_in_class: u32,
        async_share: Option<(u32, u32)>,
        jiffy: i64,
    ) -> i64 {
        let share = scale(group_slice, i64::from(count), i64::from(busy_in_class.max(1)));
        let share = match async_share {
            Some((busy_async, busy)) => {
                let cap = scale(self.target_latency, i64::from(busy_async), i64::from(busy.max(1)));
                scale(share.min(cap), self.slice[0], self.slice[1])
            }
            None => share.max(2 * self.slice_idle),
        };
        share.max(2 * jiffy)
    }
}

/// `span * numerator / denominator` without intermediate overflow.
fn scale(span: i64, numerator: i64, denominator: i64) -> i64 {
    let scaled = i128::from(span) * i128::from(numerator) / i128::from(denominator);
    scaled.min(i128::from(i64::MAX / 4)) as i64
}

/// The smoothed number of busy queues: rises fast, falls slowly.
pub(super) fn busy_average(average: u32, busy: u32) -> u32 {
    (3 * average.max(busy) + average.min(busy) + 2) / 4
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::*;
    use hoistway_blk::ground::{CfqGeneration, Hz};

    const MS: i64 = 1_000_000;
    const JIFFY: i64 = 4 * MS;

    fn settings() -> Settings {
        Settings::new(Clock { generation: CfqGeneration::Nanoseconds, hz: Hz(250) }, true)
    }

    #[test]
    fn a_level_is_worth_a_fifth_of_the_base_slice() {
        let settings = settings();
        let slices = |sync| [0, 1, 2, 3, 4, 5, 6, 7].map(|level| settings.level_slice(sync, level) / MS);
        assert_eq!(slices(true), [180, 160, 140, 120, 100, 80, 60, 40]);
        assert_eq!(slices(false), [72, 64, 56, 48, 40, 32, 24, 16]);
        let odd = Settings { slice: [40, 13], ..settings };
        assert_eq!(odd.level_slice(true, 0), 13 + 2 * 4, "the fifth is rounded first");
    }

    #[test]
    fn slices_shrink_so_that_all_queues_fit_into_the_target_latency() {
        let table = [(1, 100.0), (3, 100.0), (4, 75.0), (6, 50.0), (8, 37.5), (12, 25.0), (16, 18.75)];
        for slice_idle in [8 * MS, 0] {
            let settings = Settings { slice_idle, ..settings() };
            for (queues, expected) in table {
                let slice = settings.scaled_slice(100 * MS, queues, 300 * MS);
                assert_eq!(slice, (expected * MS as f64) as i64, "{queues} queues");
            }
            let long = [19, 24, 32].map(|queues| settings.scaled_slice(100 * MS, queues, 300 * MS));
            let expected = if slice_idle > 0 { [16 * MS; 3] } else { [15_789_473, 12_500_000, 9_375_000] };
            assert_eq!(long, expected);
        }
    }

    #[test]
    fn eight_queues_of_levels_0_to_7_get_scaled_slices() {
        let settings = settings();
        let slice = |sync, level| settings.scaled_slice(settings.level_slice(sync, level), 8, 300 * MS);
        let sync = [0, 1, 2, 3, 4, 5, 6, 7].map(|level| slice(true, level) as f64 / MS as f64);
        assert_eq!(sync, [67.5, 60.0, 52.5, 45.0, 37.5, 30.0, 22.5, 15.0]);
        assert_eq!(slice(false, 4), 15 * MS);
    }

    #[test]
    fn without_low_latency_a_slice_depends_on_the_level_alone() {
        let settings = Settings { low_latency: false, ..settings() };
        assert_eq!(settings.scaled_slice(100 * MS, 32, 300 * MS), 100 * MS);
    }

    #[test]
    fn the_busy_average_rises_fast_and_falls_slowly() {
        let mut average = 0;
        let averages = [8, 8, 8, 8, 2, 2, 2, 2, 2, 2].map(|busy| {
            average = busy_average(average, busy);
            average
        });
        assert_eq!(averages, [6, 8, 8, 8, 7, 6, 5, 4, 4, 4]);
    }

    #[test]
    fn a_workload_gets_its_share_of_the_round_and_async_is_scaled_down() {
        let settings = settings();
        let one_async = settings.workload_slice(300 * MS, 1, 1, Some((1, 1)), JIFFY);
        assert_eq!(one_async, 120 * MS);
        assert_eq!(settings.workload_slice(300 * MS, 1, 2, None, JIFFY), 150 * MS);
        assert_eq!(settings.workload_slice(300 * MS, 1, 2, Some((1, 2)), JIFFY), 60 * MS);
        let capped = settings.workload_slice(300 * MS, 1, 1, Some((1, 4)), JIFFY);
        assert_eq!(capped, 30 * MS, "of 300 ms a quarter, for one of four queues on the device");
        assert_eq!(settings.workload_slice(20 * MS, 1, 8, None, JIFFY), 16 * MS, "twice slice_idle");
        assert_eq!(settings.workload_slice(20 * MS, 1, 8, Some((1, 8)), JIFFY), 8 * MS, "two ticks");
    }
}
