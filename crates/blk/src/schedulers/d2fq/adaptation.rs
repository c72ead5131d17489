//! The adaptive ratio: high may become faster over low, or slower, once in a period (D2FQ-11 to D2FQ-13).

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::ids::CpuId;
use crate::ground::sharing::{ReadMostly, Sharing, Word};
use crate::policy::ElevatorCx;

use super::{D2fq, RATIO_MIN, weights};

/// What the flows did in a period.
#[derive(Default)]
struct Period {
    active: u32,
    /// The largest slowdown, and whether that flow sent at least half of its cost through the low class.
    slowest: Option<(u64, bool)>,
    /// Virtual time and progress of the active flow that is furthest ahead.
    leader: Option<(u64, u64)>,
    /// The same of the one that is furthest behind.
    laggard: Option<(u64, u64)>,
}

/// How much slower a flow was than through the high class: the mean over its cost of the high weight over that of the class used,
/// rounded up. `None` if it had no traffic.
pub(super) fn slowdown(costs: [u64; 3], weights: [u16; 3]) -> Option<u64> {
    let [high, medium, low] = weights.map(u128::from);
    let [cost_high, cost_medium, cost_low] = costs.map(u128::from);
    let total = cost_high + cost_medium + cost_low;
    let weighted = cost_high * medium * low + cost_medium * high * low + cost_low * high * medium;
    (total > 0).then(|| weighted.div_ceil(total * medium * low) as u64)
}

impl<Sh: Sharing> D2fq<Sh> {
    /// Ends the period if its time has come.
    pub(super) fn adapt_if_due(&self, cx: &mut ElevatorCx<'_>, now: u64) {
        let ends = self.period_ends.load(Relaxed);
        if now < ends
            || !self.period_ends.compare_exchange(ends, now.saturating_add(self.settings.period_ns()), Relaxed)
        {
            return;
        }
        let old_ratio = self.settings.ratio.load(Relaxed);
        let ratio = self.ratio_after_period(cx.cpu, old_ratio);
        // The first period has no beginning.
        if ends != 0 && ratio != old_ratio {
            self.settings.ratio.store(ratio, Relaxed);
            cx.requested.arbitrate = Some(weights(ratio, self.weight_max));
        }
    }

    /// The next ratio; all flows begin a new period.
    fn ratio_after_period(&self, cpu: CpuId, ratio: u64) -> u64 {
        let weights = weights(ratio, self.weight_max);
        let mut period = Period::default();
        self.flows.read(cpu, |flows| {
            for (_, flow) in flows.iter() {
                let costs = flow.costs();
                if let Some(slowdown) = slowdown(costs, weights)
                    && period.slowest.is_none_or(|(slowest, _)| slowdown > slowest)
                {
                    period.slowest = Some((slowdown, costs[2] >= costs.iter().sum::<u64>().div_ceil(2)));
                }
                if flow.is_active.load(Relaxed) != 0 {
                    period.active += 1;
                    let position = (flow.virtual_time.load(Relaxed), flow.progress());
                    period.leader = Some(period.leader.map_or(position, |leader| leader.max(position)));
                    period.laggard = Some(period.laggard.map_or(position, |laggard| laggard.min(position)));
                }
                flow.begin_period();
            }
        });
        self.next_ratio(ratio, &period).clamp(RATIO_MIN, u64::from(self.weight_max))
    }

    fn next_ratio(&self, ratio: u64, period: &Period) -> u64 {
        let (Some((slowdown, mostly_low)), Some(leader), Some(laggard)) =
            (period.slowest, period.leader, period.laggard)
        else {
            return ratio;
        };
        if period.active < 2 {
            return ratio;
        }
        if slowdown < ratio && ratio > RATIO_MIN {
            return slowdown;
        }
        let [threshold, _] = self.settings.thresholds();
        if leader.0 - laggard.0 > 2 * threshold && mostly_low && leader.1 > laggard.1 {
            let wanted = u128::from(ratio) * u128::from(leader.1);
            return wanted.div_ceil(u128::from(laggard.1.max(1))).min(u128::from(self.weight_max)) as u64;
        }
        ratio
    }
}
