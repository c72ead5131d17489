//! The search for the depth that keeps a latency: `latency_target` (tried with fio 3.33).
//!
//! The search starts at depth 1 and doubles the depth while enough I/Os of a window are fast enough. Then it halves the
//! interval between the largest good depth and the smallest bad one. A depth that was good and becomes bad is lowered by
//! one. Once the depth is found, the process is measured until a window is good again, which is usually the next one; each
//! bad window until then lowers the depth by one.
//!
//! A process that continues after the search (`latency_run`) is measured from the start. Its depth is lowered by one after
//! each bad window, and raised by one after three good ones.

use std::cmp::Ordering;

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_measure::LatencySearchResult;

use super::LatencyTarget;

/// After this many good windows in a row a followed depth is raised.
const GOOD_WINDOWS: u32 = 3;

/// State of the search.
pub(super) struct LatencySearch {
    rule: LatencyTarget,
    depth: u32,
    depth_max: u32,
    /// The largest good depth.
    good: u32,
    /// The smallest bad depth.
    bad: Option<u32>,
    stage: SearchStage,
    window_begins: Instant,
    ios: u64,
    slow: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchStage {
    Searching,
    /// The depth was found; the process is measured until a window is good.
    Measuring,
    /// The depth was found and is being adjusted; holds the number of good windows in a row.
    Following(u32),
}

/// What a process has to do at the end of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Judgement {
    /// Continue.
    ContinueWindow,
    /// Continue at this larger depth.
    Rise(u32),
    /// Continue at this smaller depth, after the I/Os in flight have completed.
    Fall(u32),
    /// Restart its measurement and its runtime.
    Measure,
    /// End.
    End,
}

impl LatencySearch {
    /// The search of a process with measurement from `start` and a depth of at most `depth_max`.
    pub(super) fn new(rule: LatencyTarget, depth_max: u32, start: Instant) -> LatencySearch {
        LatencySearch {
            rule,
            depth: 1,
            depth_max,
            good: 1,
            bad: None,
            stage: SearchStage::Searching,
            window_begins: start,
            ios: 0,
            slow: 0,
        }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// The target and the depth so far.
    pub(super) fn result(&self) -> LatencySearchResult {
        let LatencyTarget { target, window, percentile, .. } = self.rule;
        LatencySearchResult { depth: self.depth, target_ns: target.0, window_ns: window.0, percentile }
    }

    /// An I/O has completed.
    pub(super) fn finished(&mut self, now: Instant, latency: Nanos) {
        if now >= self.window_begins {
            self.ios += 1;
            self.slow += u64::from(latency > self.rule.target);
        }
    }

    /// What the process has to do now.
    pub(super) fn judge(&mut self, now: Instant) -> Judgement {
        if self.ios == 0 || now < self.window_begins + self.rule.window {
            return Judgement::ContinueWindow;
        }
        let is_good = self.slow as f64 <= self.ios as f64 * (100.0 - self.rule.percentile) / 100.0;
        (self.window_begins, self.ios, self.slow) = (now, 0, 0);
        let previous_depth = self.depth;
        let lower_depth = previous_depth.saturating_sub(1).max(1);
        match self.stage {
            SearchStage::Measuring if is_good => return Judgement::End,
            SearchStage::Measuring => self.depth = lower_depth,
            SearchStage::Following(good_windows) => {
                let good_windows = if is_good { good_windows + 1 } else { 0 };
                let rises = good_windows == GOOD_WINDOWS;
                self.stage = SearchStage::Following(if rises { 0 } else { good_windows });
                if rises {
                    self.depth = (previous_depth + 1).min(self.depth_max);
                } else if !is_good {
                    self.depth = lower_depth;
                }
            }
            SearchStage::Searching => {
                if is_good {
                    self.good = previous_depth;
                } else if previous_depth > 1 {
                    self.bad = Some(previous_depth);
                    self.good = self.good.min(lower_depth);
                }
                self.depth = match self.bad {
                    Some(bad) => self.good.midpoint(bad),
                    None if is_good => (2 * self.good).min(self.depth_max),
                    None => previous_depth,
                };
                if is_good && self.depth == previous_depth {
                    self.stage = if self.rule.goes_on { SearchStage::Following(1) } else { SearchStage::Measuring };
                    return if self.rule.goes_on { Judgement::ContinueWindow } else { Judgement::Measure };
                }
            }
        }
        match self.depth.cmp(&previous_depth) {
            Ordering::Greater => Judgement::Rise(self.depth),
            Ordering::Equal => Judgement::ContinueWindow,
            Ordering::Less => Judgement::Fall(self.depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depths of a search's windows, and whether the search ended. `limit` is the largest good depth in the window
    /// with this number, counted from 1.
    fn searched(limit: impl Fn(u64) -> u32, depth_max: u32, goes_on: bool, windows: u64) -> (Vec<u32>, bool) {
        let window = Nanos::from_millis(10);
        let rule = LatencyTarget { target: Nanos(1000), window, percentile: 90.0, goes_on };
        let mut search = LatencySearch::new(rule, depth_max, Instant::ZERO);
        let mut depths = Vec::new();
        for number in 1..=windows {
            depths.push(search.depth());
            let end = Instant(number * window.0);
            // One I/O in ten may be slow.
            let slow = if search.depth() > limit(number) { 2 } else { 1 };
            for io in 0..10 {
                search.finished(Instant(end.0 - 1), Nanos(if io < slow { 1001 } else { 1000 }));
            }
            assert_eq!(search.judge(Instant(end.0 - 1)), Judgement::ContinueWindow);
            if search.judge(end) == Judgement::End {
                return (depths, true);
            }
        }
        (depths, false)
    }

    fn depths(limit: u32, depth_max: u32, goes_on: bool, windows: u64) -> (Vec<u32>, bool) {
        searched(|_| limit, depth_max, goes_on, windows)
    }

    #[test]
    fn the_depths_are_those_of_fio() {
        // Recorded from fio 3.33, from its log of latencies.
        assert_eq!(depths(38, 64, false, 99), (vec![1, 2, 4, 8, 16, 32, 64, 48, 40, 36, 38, 39, 38, 38], true));
        assert_eq!(depths(9, 64, false, 99), (vec![1, 2, 4, 8, 16, 12, 10, 9, 9], true));
        assert_eq!(depths(31, 64, false, 99), (vec![1, 2, 4, 8, 16, 32, 24, 28, 30, 31, 31], true));
        assert_eq!(depths(99, 5, false, 99), (vec![1, 2, 4, 5, 5], true));
        assert_eq!(depths(99, 1, false, 99), (vec![1, 1], true));
        // Not even depth 1 is fast enough: the search never ends.
        assert_eq!(depths(0, 32, false, 9), (vec![1; 9], false));
    }

    /// One limit up to and including a window, and another one after it.
    fn changing(before: u32, until: u64, after: u32) -> impl Fn(u64) -> u32 {
        move |window| if window <= until { before } else { after }
    }

    // Recorded from fio 3.33, over a stand-in for libaio whose latency depends on the depth and on the time.

    #[test]
    fn a_depth_that_is_no_longer_good_gives_way_to_the_one_below() {
        // While trying 5, between the good depth 4 and the bad depth 6.
        assert_eq!(searched(changing(5, 5, 3), 64, false, 99), (vec![1, 2, 4, 8, 6, 5, 4, 3, 3], true));
        // While trying 39, above the good depth 38.
        let (depths, ends) = searched(changing(38, 12, 20), 64, false, 99);
        assert_eq!(depths[..14], [1, 2, 4, 8, 16, 32, 64, 48, 40, 36, 38, 39, 38, 37]);
        assert_eq!((&depths[14..], ends), (&[&(20..37).rev().collect::<Vec<_>>()[..], &[20]].concat()[..], true));
        // Down to depth 1, and good again after a while.
        let all_slow = |window| if (4..=7).contains(&window) { 0 } else { 3 };
        assert_eq!(searched(all_slow, 64, false, 99), (vec![1, 2, 4, 3, 2, 1, 1, 1, 1], true));
    }

    #[test]
    fn the_measurement_ends_with_a_good_window() {
        assert_eq!(searched(changing(9, 8, 6), 64, false, 99), (vec![1, 2, 4, 8, 16, 12, 10, 9, 9, 8, 7, 6], true));
        assert_eq!(
            searched(changing(5, 6, 0), 64, false, 13),
            (vec![1, 2, 4, 8, 6, 5, 5, 4, 3, 2, 1, 1, 1], false),
            "it waits for one"
        );
    }

    #[test]
    fn a_slow_beginning_does_not_end_the_search_at_one() {
        assert_eq!(searched(changing(0, 3, 5), 64, false, 99), (vec![1, 1, 1, 1, 2, 4, 8, 6, 5, 5], true));
    }

    #[test]
    fn a_continuing_latency_search_follows_the_limit() {
        assert_eq!(
            searched(changing(20, 8, 64), 64, true, 17),
            (vec![1, 2, 4, 8, 16, 32, 24, 20, 22, 23, 23, 23, 24, 24, 24, 25, 25], false)
        );
        let (depths, _) = searched(changing(38, 13, 30), 64, true, 32);
        assert_eq!(depths[12..15], [38, 38, 37]);
        assert_eq!(depths[20..], [31, 30, 30, 30, 31, 30, 30, 30, 31, 30, 30, 30]);
        assert_eq!(depths.len(), 32);
        assert_eq!(searched(|_| 99, 5, true, 10).0, [1, 2, 4, 5, 5, 5, 5, 5, 5, 5]);
        assert_eq!(searched(changing(3, 5, 0), 64, true, 9).0, [1, 2, 4, 3, 3, 3, 2, 1, 1]);
    }
}
