//! The search for the depth that keeps a latency: `latency_target` (tried with fio 3.33).
//!
//! It begins at a depth of 1 and doubles it as long as enough I/Os of a window are fast enough, then halves the gap between
//! the largest depth that was good and the smallest that was not. Only the last window counts in the results.

use hoistway_blk::{Instant, Nanos};
use hoistway_results::LatencySearchResult;
use hoistway_workload::LatencyTarget;

/// Where the search is.
pub(crate) struct LatencySearch {
    rule: LatencyTarget,
    depth: u32,
    depth_max: u32,
    /// The largest depth that was good.
    good: u32,
    /// The smallest that was not.
    bad: Option<u32>,
    stage: Stage,
    window_begins: Instant,
    ios: u64,
    slow: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Searching,
    /// The depth is found: one more window is measured.
    Measuring,
    /// The depth is found, and from now on followed.
    Following,
}

/// What the end of a window means for the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It goes on.
    GoOn,
    /// It goes on at this depth, when what is in flight has ended.
    Depth(u32),
    /// Its measurement begins again.
    Measure,
    /// It is done.
    End,
}

impl LatencySearch {
    /// Of a process whose measurement begins at `start`, and whose depth is at most `depth_max`.
    pub(crate) fn new(rule: LatencyTarget, depth_max: u32, start: Instant) -> LatencySearch {
        LatencySearch {
            rule,
            depth: 1,
            depth_max,
            good: 1,
            bad: None,
            stage: Stage::Searching,
            window_begins: start,
            ios: 0,
            slow: 0,
        }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// What it looked for, and where it is.
    pub(crate) fn result(&self) -> LatencySearchResult {
        let LatencyTarget { target, window, percentile, .. } = self.rule;
        LatencySearchResult { depth: self.depth, target_ns: target.0, window_ns: window.0, percentile }
    }

    /// An I/O has ended.
    pub(crate) fn finished(&mut self, now: Instant, latency: Nanos) {
        if now >= self.window_begins {
            self.ios += 1;
            self.slow += u64::from(latency > self.rule.target);
        }
    }

    /// What to do now.
    pub(crate) fn step(&mut self, now: Instant) -> Step {
        if self.ios == 0 || now < self.window_begins + self.rule.window {
            return Step::GoOn;
        }
        let is_good = self.slow as f64 <= self.ios as f64 * (100.0 - self.rule.percentile) / 100.0;
        (self.window_begins, self.ios, self.slow) = (now, 0, 0);
        let before = self.depth;
        match self.stage {
            Stage::Measuring => return Step::End,
            Stage::Following => {
                let next = if is_good { self.depth + 1 } else { self.depth - 1 };
                self.depth = next.clamp(1, self.depth_max);
            }
            Stage::Searching => {
                if is_good {
                    self.good = self.depth;
                } else {
                    self.bad = Some(self.depth);
                }
                self.depth = match self.bad {
                    Some(bad) => self.good.midpoint(bad).max(1),
                    None => (2 * self.good).min(self.depth_max),
                };
                if is_good && self.depth == before {
                    self.stage = if self.rule.goes_on { Stage::Following } else { Stage::Measuring };
                    return if self.rule.goes_on { Step::GoOn } else { Step::Measure };
                }
            }
        }
        if self.depth == before { Step::GoOn } else { Step::Depth(self.depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depths of the windows of a search in which all up to `limit` are good.
    fn depths(limit: u32, depth_max: u32, goes_on: bool, windows: u64) -> (Vec<u32>, bool) {
        let window = Nanos::from_millis(10);
        let rule = LatencyTarget { target: Nanos(1000), window, percentile: 90.0, goes_on };
        let mut search = LatencySearch::new(rule, depth_max, Instant::ZERO);
        let mut depths = Vec::new();
        for number in 1..=windows {
            depths.push(search.depth());
            let end = Instant(number * window.0);
            // A tenth may be slow.
            let slow = if search.depth() > limit { 2 } else { 1 };
            for io in 0..10 {
                search.finished(Instant(end.0 - 1), Nanos(if io < slow { 1001 } else { 1000 }));
            }
            assert_eq!(search.step(Instant(end.0 - 1)), Step::GoOn);
            if search.step(end) == Step::End {
                return (depths, true);
            }
        }
        (depths, false)
    }

    #[test]
    fn the_depths_are_those_of_fio() {
        // Recorded from fio 3.33, from its log of latencies.
        assert_eq!(depths(38, 64, false, 99), (vec![1, 2, 4, 8, 16, 32, 64, 48, 40, 36, 38, 39, 38, 38], true));
        assert_eq!(depths(9, 64, false, 99), (vec![1, 2, 4, 8, 16, 12, 10, 9, 9], true));
        assert_eq!(depths(31, 64, false, 99), (vec![1, 2, 4, 8, 16, 32, 24, 28, 30, 31, 31], true));
        assert_eq!(depths(99, 5, false, 99), (vec![1, 2, 4, 5, 5], true));
        assert_eq!(depths(99, 1, false, 99), (vec![1, 1], true));
        // Not even one I/O at a time is fast enough: it never ends.
        assert_eq!(depths(0, 32, false, 9), (vec![1; 9], false));
    }

    #[test]
    fn a_search_that_goes_on_follows_the_limit() {
        let (depths, ends) = depths(9, 64, true, 14);
        assert!(!ends);
        assert_eq!(depths[..8], [1, 2, 4, 8, 16, 12, 10, 9]);
        assert_eq!(depths[8..], [9, 10, 9, 10, 9, 10]);
    }
}
