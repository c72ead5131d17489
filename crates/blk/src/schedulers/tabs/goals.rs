//! The bandwidth that is due to each type of request: what a device gives to a type alone, the type's share of what is outstanding,
//! the token bucket of FUA writes, and its correction.

use crate::ground::time::Instant;

pub(super) const READS: usize = 0;
pub(super) const FUA_WRITES: usize = 1;

const NS_PER_S: u128 = 1_000_000_000;
/// Shares are in this many parts.
const PARTS: u64 = 1 << 16;
/// Windows until a type that could not be measured is tried again.
const RETRY_WINDOWS: u64 = 10;
/// The least rate of the bucket, as a part of the goal of FUA writes.
const LEAST_RATE: u64 = 4;

/// What is measured now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing in particular.
    Normal,
    /// What the device gives to a type alone; the other type is held back.
    Measure { kind: usize, since: Option<Instant>, ended_bytes: u64 },
}

#[derive(Clone, Debug)]
pub(super) struct Goals {
    /// What the device gives to each type alone, by the tunables, bytes a second; 0: use what was measured.
    pub(super) given_bytes_per_s: [u64; 2],
    /// The most that was measured of each type alone, bytes a second; 0 until then.
    measured_bytes_per_s: [u64; 2],
    pub(super) window_ns: u64,
    pub(super) gain_divisor: u64,
    pub(super) change_percent: u64,
    /// Bytes of requests that came and have not ended.
    outstanding_bytes: [u64; 2],
    /// The sum of these over the time of the window, byte nanoseconds.
    outstanding_byte_ns: [u128; 2],
    /// Bytes of requests that ended in the window.
    ended_bytes: [u64; 2],
    window_began: Instant,
    seen: Instant,
    phase: Phase,
    /// Until then no type is measured again.
    retry_at: Instant,
    /// The share of FUA writes that the goals were made from, in [`PARTS`]; `None` while nothing is throttled.
    goal_share: Option<u64>,
    /// The rate of the bucket, bytes a second.
    rate: u64,
    /// What the bucket holds, in billionths of a byte; below 0 if more was given out.
    tokens: i128,
}

impl Goals {
    pub(super) fn new() -> Self {
        Goals {
            given_bytes_per_s: [0; 2],
            measured_bytes_per_s: [0; 2],
            window_ns: 100_000_000,
            gain_divisor: 8,
            change_percent: 20,
            outstanding_bytes: [0; 2],
            outstanding_byte_ns: [0; 2],
            ended_bytes: [0; 2],
            window_began: Instant::ZERO,
            seen: Instant::ZERO,
            phase: Phase::Normal,
            retry_at: Instant::ZERO,
            goal_share: None,
            rate: 0,
            tokens: 0,
        }
    }

    /// Sets what the device gives to a type alone; 0 for what is measured.
    pub(super) fn give(&mut self, kind: usize, bytes_per_s: u64) {
        self.given_bytes_per_s[kind] = bytes_per_s;
        self.goal_share = None;
        self.phase = Phase::Normal;
    }

    /// What the device gives to each type alone, bytes a second (TABS-3).
    fn alone(&self) -> [u64; 2] {
        [READS, FUA_WRITES].map(|kind| match self.given_bytes_per_s[kind] {
            0 => self.measured_bytes_per_s[kind],
            given => given,
        })
    }

    /// Whether this type is measured, and the other held back for it.
    #[inline]
    pub(super) fn measures(&self, kind: usize) -> bool {
        matches!(self.phase, Phase::Measure { kind: measured, .. } if measured == kind)
    }

    /// A request of `before` bytes has `after` now; 0 where it was not there.
    pub(super) fn resize(&mut self, kind: usize, before: u64, after: u64) {
        if let Some(bytes) = self.outstanding_bytes.get_mut(kind) {
            *bytes = *bytes - before + after;
        }
    }

    /// A request has ended.
    pub(super) fn end(&mut self, kind: usize, bytes: u64) {
        if kind > FUA_WRITES {
            return;
        }
        self.outstanding_bytes[kind] -= bytes;
        self.ended_bytes[kind] += bytes;
        if let Phase::Measure { kind: measured, since: Some(_), ended_bytes } = &mut self.phase
            && *measured == kind
        {
            *ended_bytes += bytes;
        }
    }

    /// Whether the bucket holds anything, or there is none.
    pub(super) fn has_tokens(&self) -> bool {
        self.goal_share.is_none() || self.tokens > 0
    }

    /// Whether the bucket holds this, or as much as it can (TABS-6).
    pub(super) fn covers(&self, bytes: u64) -> bool {
        self.goal_share.is_none() || self.tokens >= (i128::from(bytes) * NS_PER_S as i128).min(self.tokens_max())
    }

    /// The bucket gives this out.
    pub(super) fn take(&mut self, bytes: u64) {
        if self.goal_share.is_some() {
            // However large a request is, its debt is paid within a window.
            self.tokens = (self.tokens - i128::from(bytes) * NS_PER_S as i128).max(-self.tokens_max());
        }
    }

    /// A window's worth.
    fn tokens_max(&self) -> i128 {
        (i128::from(self.rate) * i128::from(self.window_ns)).max(1)
    }

    /// It is `now`, and nothing has changed since the last call.
    pub(super) fn pass(&mut self, now: Instant) {
        let passed_ns = now.since(self.seen).0;
        self.seen = self.seen.max(now);
        for (sum, bytes) in self.outstanding_byte_ns.iter_mut().zip(self.outstanding_bytes) {
            *sum += u128::from(bytes) * u128::from(passed_ns);
        }
        self.tokens = (self.tokens + i128::from(self.rate) * i128::from(passed_ns)).min(self.tokens_max());
    }

    /// It is `now`, with so many requests of each type at the device, and none for a while if it has rested.
    pub(super) fn follow(&mut self, now: Instant, at_device: &[u32; 3], has_rested: bool) {
        self.pass(now);
        self.follow_measurement(at_device, has_rested);
        let window_ns = self.seen.since(self.window_began).0;
        if window_ns >= self.window_ns {
            self.end_window(window_ns);
        }
    }

    /// Begins to measure once the other type has left the device, and ends a quarter of a window later (TABS-8).
    fn follow_measurement(&mut self, at_device: &[u32; 3], has_rested: bool) {
        let Phase::Measure { kind, since, ended_bytes } = &mut self.phase else { return };
        if has_rested {
            self.phase = Phase::Normal;
            self.retry_at = Instant(self.seen.0 + RETRY_WINDOWS * self.window_ns);
            return;
        }
        let Some(since) = *since else {
            if at_device[1 - *kind] == 0 {
                *since = Some(self.seen);
            }
            return;
        };
        let measured_ns = self.seen.since(since).0;
        if measured_ns >= self.window_ns / 4 {
            let (kind, ended_bytes) = (*kind, *ended_bytes);
            self.phase = Phase::Normal;
            self.learn(kind, ended_bytes, measured_ns);
            if self.alone()[kind] == 0 {
                self.retry_at = Instant(self.seen.0 + RETRY_WINDOWS * self.window_ns);
            }
            // What was held back says nothing about the load.
            self.measure_what_is_unknown();
            self.begin_window();
        }
    }

    fn learn(&mut self, kind: usize, bytes: u64, ns: u64) {
        let bytes_per_s = (u128::from(bytes) * NS_PER_S / u128::from(ns.max(1))) as u64;
        let most = &mut self.measured_bytes_per_s[kind];
        *most = (*most).max(bytes_per_s);
    }

    fn measure_what_is_unknown(&mut self) {
        let unknown = [READS, FUA_WRITES].into_iter().find(|&kind| self.alone()[kind] == 0);
        if let Some(kind) = unknown
            && self.seen >= self.retry_at
        {
            self.phase = Phase::Measure { kind, since: None, ended_bytes: 0 };
        }
    }

    fn begin_window(&mut self) {
        self.window_began = self.seen;
        self.outstanding_byte_ns = [0; 2];
        self.ended_bytes = [0; 2];
    }

    /// A window is over: sets the goals, or corrects the bucket (TABS-4, TABS-5 and TABS-7).
    fn end_window(&mut self, window_ns: u64) {
        if self.phase == Phase::Normal {
            match self.outstanding_byte_ns.map(|sum| sum > 0) {
                [true, true] if self.alone().contains(&0) => self.measure_what_is_unknown(),
                [true, true] => self.aim(window_ns),
                [reads, fua_writes] => {
                    self.goal_share = None;
                    if reads || fua_writes {
                        let kind = usize::from(fua_writes);
                        self.learn(kind, self.ended_bytes[kind], window_ns);
                    }
                }
            }
        }
        self.begin_window();
    }

    fn aim(&mut self, window_ns: u64) {
        let [reads, fua_writes] = self.outstanding_byte_ns;
        let share = (fua_writes * u128::from(PARTS) / (reads + fua_writes)) as u64;
        let share = share.clamp(1, PARTS - 1);
        let is_near = |goal: u64| share.abs_diff(goal) * 100 <= goal.min(PARTS - goal) * self.change_percent;
        match self.goal_share {
            Some(goal) if is_near(goal) => self.correct(goal, window_ns),
            _ => {
                let is_first = self.goal_share.is_none();
                self.goal_share = Some(share);
                self.rate = self.goals(share)[FUA_WRITES];
                if is_first {
                    self.tokens = 0;
                }
            }
        }
    }

    /// What is due to each type if this is the share of FUA writes, bytes a second: at least 1.
    fn goals(&self, share: u64) -> [u64; 2] {
        let [reads, fua_writes] = self.alone();
        [(reads, PARTS - share), (fua_writes, share)]
            .map(|(alone, share)| (u128::from(alone) * u128::from(share) / u128::from(PARTS)).max(1) as u64)
    }

    /// Moves the bucket's rate so that both types come as near to their goals.
    fn correct(&mut self, share: u64, window_ns: u64) {
        let goals = self.goals(share);
        let [reads, fua_writes] = [READS, FUA_WRITES].map(|kind| {
            let due = u128::from(goals[kind]) * u128::from(window_ns) / NS_PER_S;
            (u128::from(self.ended_bytes[kind]) * u128::from(PARTS) / due.max(1)) as i128
        });
        let most = reads.max(fua_writes).max(1);
        let change = i128::from(self.rate) * (reads - fua_writes) / most / i128::from(self.gain_divisor);
        let least = i128::from((goals[FUA_WRITES] / LEAST_RATE).max(1));
        let alone = i128::from(self.alone()[FUA_WRITES]);
        self.rate = (i128::from(self.rate) + change).clamp(least, alone.max(least)) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;
    const MS: u64 = 1_000_000;

    /// Goals of a device that reads 1000 MB/s alone and writes 100 with FUA.
    fn known() -> Goals {
        let mut goals = Goals::new();
        goals.give(READS, 1000 * MB);
        goals.give(FUA_WRITES, 100 * MB);
        goals
    }

    /// A window in which this is outstanding all the time, and so much ends.
    fn window(goals: &mut Goals, outstanding: [u64; 2], ended: [u64; 2]) {
        goals.outstanding_bytes = outstanding;
        goals.ended_bytes = ended;
        goals.follow(Instant(goals.seen.0 + 100 * MS), &[1, 1, 0], false);
    }

    #[test]
    fn a_goal_is_the_bandwidth_alone_times_the_share_of_what_is_outstanding() {
        let mut goals = known();
        window(&mut goals, [30_000, 10_000], [0, 0]);
        assert_eq!(goals.goal_share, Some(PARTS / 4));
        assert_eq!((goals.rate, goals.goals(PARTS / 4)), (25 * MB, [750 * MB, 25 * MB]));
    }

    #[test]
    fn the_rate_falls_while_reads_are_further_from_their_goal_and_rises_otherwise() {
        let mut goals = known();
        window(&mut goals, [10_000, 10_000], [0, 0]);
        assert_eq!(goals.rate, 50 * MB);
        // Reads have half of their goal, FUA writes all of it: an error of a half, and an eighth of that.
        window(&mut goals, [10_000, 10_000], [25 * MB, 5 * MB]);
        assert_eq!(goals.rate / 1000, 46_875);
        window(&mut goals, [10_000, 10_000], [50 * MB, 5 * MB / 2]);
        assert_eq!(goals.rate / 1000, 46_875 * 17 / 16);
        for _ in 0..100 {
            window(&mut goals, [10_000, 10_000], [0, 5 * MB]);
        }
        assert_eq!(goals.rate, 50 * MB / LEAST_RATE, "FUA writes never stop");
    }

    #[test]
    fn goals_are_set_anew_only_for_a_change_of_the_load() {
        let mut goals = known();
        let equal = [50 * MB, 5 * MB];
        window(&mut goals, [10_000, 10_000], [0, 0]);
        window(&mut goals, [10_000, 11_000], equal);
        assert_eq!(goals.goal_share, Some(PARTS / 2), "less than a fifth");
        window(&mut goals, [10_000, 30_000], equal);
        assert_eq!((goals.goal_share, goals.rate), (Some(PARTS * 3 / 4), 75 * MB));
        window(&mut goals, [0, 30_000], [0, 10 * MB]);
        assert_eq!(goals.goal_share, None, "without reads nothing is throttled");
    }

    #[test]
    fn a_window_of_one_type_measures_it_and_two_unknown_types_are_measured_in_turn() {
        let mut goals = Goals::new();
        window(&mut goals, [10_000, 0], [70 * MB, 0]);
        assert_eq!(goals.alone(), [700 * MB, 0]);
        window(&mut goals, [10_000, 10_000], [1, 1]);
        assert!(goals.measures(FUA_WRITES));
        goals.follow(Instant(goals.seen.0 + MS), &[1, 1, 0], false);
        goals.end(FUA_WRITES, 10);
        goals.follow(Instant(goals.seen.0 + MS), &[0, 1, 0], false);
        goals.outstanding_bytes = [10_000, 10 * MB];
        goals.end(FUA_WRITES, 2 * MB);
        goals.follow(Instant(goals.seen.0 + 25 * MS), &[0, 1, 0], false);
        assert_eq!((goals.alone(), goals.phase), ([700 * MB, 80 * MB], Phase::Normal), "2 MB in 25 ms");
    }

    #[test]
    fn the_bucket_holds_a_window_at_most_and_gives_out_all_that_waits_or_nothing() {
        let mut goals = known();
        window(&mut goals, [10_000, 10_000], [0, 0]);
        assert!(!goals.covers(1) && !goals.has_tokens());
        goals.follow(Instant(goals.seen.0 + MS), &[1, 1, 0], false);
        assert_eq!([50_000, 50_001].map(|bytes| goals.covers(bytes)), [true, false], "50 MB/s for a millisecond");
        goals.take(50_000);
        assert!(!goals.has_tokens());
        goals.take(100 * MB);
        assert_eq!(goals.tokens, -goals.tokens_max());
        goals.outstanding_byte_ns = [0; 2];
        goals.follow(Instant(goals.seen.0 + 99 * MS), &[1, 1, 0], false);
        assert!(!goals.has_tokens(), "the debt is not paid yet");
    }
}
