//! Signs of a saturated device in a period, and the rate of device time that follows (IC-13, IC-14).

use hoistway_blk::bio::Direction;
use hoistway_blk::ground::Nanos;

use super::qos::{IoCostQos, Percent};

/// The step of the rate in a period, percent of the rate: down if requests were late, and towards 100 %.
const STEP_PERCENT: u32 = 5;

/// The step up for groups that wait, and down if only tags ran out. A step above what the device can do fills its queue for a whole
/// period, so it is small.
const SMALL_STEP_PERCENT: u32 = 1;

/// What a period has shown so far.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Signs {
    /// Requests that completed, by direction.
    completed: [u64; 2],
    /// Those of them that took longer than their latency.
    late: [u64; 2],
    /// Whether a submitter slept for a tag.
    pub tags_ran_out: bool,
    /// Whether a group waited.
    pub has_waited: bool,
}

impl Signs {
    #[inline]
    pub fn completed(&mut self, qos: &IoCostQos, direction: Direction, latency: Nanos) {
        self.completed[direction.index()] += 1;
        if qos.latency(direction == Direction::Write).is_some_and(|(_, longest)| latency > longest) {
            self.late[direction.index()] += 1;
        }
    }

    /// Whether more requests of a direction were late than its percentile allows.
    fn is_late(&self, qos: &IoCostQos) -> bool {
        Direction::BOTH.into_iter().any(|direction| {
            let percentile =
                qos.latency(direction == Direction::Write).map_or(Percent::WHOLE, |(percentile, _)| percentile);
            let may_be_late = u64::from(Percent::WHOLE.0.saturating_sub(percentile.0));
            let (late, completed) = (self.late[direction.index()], self.completed[direction.index()]);
            late * u64::from(Percent::WHOLE.0) > may_be_late * completed
        })
    }

    /// The rate of the next period.
    pub fn next_rate(&self, qos: &IoCostQos, rate: Percent) -> Percent {
        let part = |percent: u32| (rate.0 * percent / 100).max(1);
        let step = part(STEP_PERCENT);
        let next = if self.is_late(qos) {
            rate.0.saturating_sub(step)
        } else if self.tags_ran_out {
            rate.0.saturating_sub(part(SMALL_STEP_PERCENT))
        } else if self.has_waited {
            rate.0 + part(SMALL_STEP_PERCENT)
        } else if rate > Percent::WHOLE {
            rate.0.saturating_sub(step).max(Percent::WHOLE.0)
        } else {
            (rate.0 + step).min(Percent::WHOLE.0)
        };
        Percent(next).clamp(qos.rate_min, qos.rate_max)
    }
}
