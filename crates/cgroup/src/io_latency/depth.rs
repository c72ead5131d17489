//! How many I/Os a group may have outstanding (IL-7, IL-8).

use hoistway_blk::ground::{Instant, Nanos};

/// The least time between two steps of a depth.
pub(super) const STEP_INTERVAL: Nanos = Nanos::from_millis(500);

/// The depth of a group: no limit, or one that falls and rises in steps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Depth {
    /// I/Os that may be outstanding; `None` for no limit.
    pub(super) limit: Option<u32>,
    /// The lowest limit until now.
    pub(super) lowest: Option<u32>,
    /// Steps down that no step up has undone.
    steps: u32,
    /// The last step.
    stepped: Option<Instant>,
}

impl Depth {
    /// Whether one more I/O may pass.
    #[inline]
    pub(super) fn allows(&self, outstanding: u32) -> bool {
        self.limit.is_none_or(|limit| outstanding < limit)
    }

    /// Whether enough time has passed since the last step.
    pub(super) fn may_step(&self, now: Instant) -> bool {
        self.stepped.is_none_or(|at| now.since(at) >= STEP_INTERVAL)
    }

    /// A step down: half, at least 1. The first one halves `requests`, those that the queue has.
    pub(super) fn lower(&mut self, now: Instant, requests: u32) {
        let limit = (self.limit.unwrap_or(requests) / 2).max(1);
        self.stepped = Some(now);
        if self.limit.replace(limit) != Some(limit) {
            self.steps += 1;
        }
        self.lowest = Some(self.lowest.map_or(limit, |lowest| lowest.min(limit)));
    }

    /// A step up by this much, at least by 1. After as many as there were steps down, the limit ends.
    pub(super) fn raise(&mut self, now: Instant, by: u32) {
        self.stepped = Some(now);
        self.steps = self.steps.saturating_sub(1);
        self.limit = self.limit.map(|limit| limit.saturating_add(by.max(1))).filter(|_| self.steps > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_halves_from_that_of_the_queue_down_to_one_and_ends_after_as_many_steps_up() {
        let mut depth = Depth::default();
        let now = Instant::ZERO;
        let down = [(); 6].map(|()| {
            depth.lower(now, 32);
            depth.limit
        });
        assert_eq!(down, [16, 8, 4, 2, 1, 1].map(Some));
        let up = [(); 5].map(|()| {
            depth.raise(now, 2);
            depth.limit
        });
        assert_eq!(up, [Some(3), Some(5), Some(7), Some(9), None]);
        assert_eq!(depth.lowest, Some(1));
    }

    #[test]
    fn steps_are_half_a_second_apart_also_where_the_depth_cannot_fall() {
        let mut depth = Depth::default();
        assert!(depth.may_step(Instant::ZERO));
        for at_ms in [100, 700] {
            let at = Instant::ZERO + Nanos::from_millis(at_ms);
            depth.lower(at, 2);
            assert_eq!(depth.limit, Some(1));
            assert!(!depth.may_step(at + Nanos(499_999_999)) && depth.may_step(at + Nanos::from_millis(500)));
        }
        depth.raise(Instant::ZERO, 0);
        assert_eq!(depth.limit, None, "only one of the steps down was one");
    }
}
