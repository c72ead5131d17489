//! Activity of a stream, or of all streams of a job: depth, busy time, batches and latencies.
//!
//! Used by: `waits`, `infer`.
//! Tests: `crates/program/tests/program/worked_example.rs`.

use crate::class::Evidence;

/// An I/O at most this long after the previous submission is in the same batch.
const BATCH_NS: u64 = 50_000;
/// The limit if it also continues at the end of the previous I/O: bios of one large I/O.
const CONTINUED_NS: u64 = 1_000_000;
/// Maximum time after a completion in which a batch counts as following it.
const FOLLOW_UP_NS_MAX: u64 = 200_000;

/// Activity so far; updated with each entry of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity {
    outstanding: u32,
    depth_max: u32,
    busy_ns: u64,
    busy_since_ns: u64,
    first_ns: Option<u64>,
    /// End of the previous submission.
    submitted_ns: u64,
    /// End sector of the previous I/O.
    end_sector: u64,
    last_completion_ns: Option<u64>,
    completed_since_submission: bool,
    batches: u64,
    /// Batches that began while I/Os were outstanding.
    overlapping_batches: u64,
    blocked_ns: u64,
    latency_ns: u128,
    completions: u64,
    /// Time after a completion in which a batch counts as following it; 0 in the first pass over the log.
    follow_up_ns: u64,
    /// Batches within that time after a completion.
    follow_up_batches: u64,
    /// Total time that is within that time after a completion.
    follow_up_time_ns: u64,
}

impl Activity {
    /// A new activity for the second pass, with the window that the first pass determined.
    pub(crate) fn for_second_pass(&self) -> Activity {
        let active_ns = self.active_ns();
        let mean_interval_ns = active_ns.checked_div(self.batches).unwrap_or(0);
        Activity { follow_up_ns: FOLLOW_UP_NS_MAX.min(mean_interval_ns / 5), ..Activity::default() }
    }

    fn active_ns(&self) -> u64 {
        self.last_completion_ns.zip(self.first_ns).map_or(0, |(last, first)| last.saturating_sub(first))
    }

    pub(crate) const fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    /// Time with outstanding I/Os until now.
    pub(crate) const fn busy_ns(&self, now_ns: u64) -> u64 {
        self.busy_ns + if self.outstanding > 0 { now_ns.saturating_sub(self.busy_since_ns) } else { 0 }
    }

    pub(crate) fn queued(&mut self, now_ns: u64, sector: u64, bytes: u32) {
        let since_ns = now_ns.saturating_sub(self.submitted_ns);
        let limit_ns = if sector == self.end_sector { CONTINUED_NS } else { BATCH_NS };
        let continues = self.first_ns.is_some() && !self.completed_since_submission && since_ns <= limit_ns;
        if !continues {
            self.batches += 1;
            self.overlapping_batches += u64::from(self.outstanding > 0);
            let since_completion_ns = self.last_completion_ns.map(|last_ns| now_ns - last_ns);
            self.follow_up_batches +=
                u64::from(since_completion_ns.is_some_and(|since_ns| since_ns <= self.follow_up_ns));
        }
        self.first_ns.get_or_insert(now_ns);
        if self.outstanding == 0 {
            self.busy_since_ns = now_ns;
        }
        self.outstanding += 1;
        self.depth_max = self.depth_max.max(self.outstanding);
        self.submitted_ns = now_ns;
        self.end_sector = sector + u64::from(bytes / 512);
        self.completed_since_submission = false;
    }

    /// The previous submission has ended; its task was blocked for another `blocked_ns`.
    pub(crate) fn submitted(&mut self, now_ns: u64, blocked_ns: u64) {
        self.submitted_ns = now_ns;
        self.blocked_ns += blocked_ns;
    }

    pub(crate) fn completed(&mut self, now_ns: u64, latency_ns: u64) {
        if let Some(last_ns) = self.last_completion_ns {
            self.follow_up_time_ns += self.follow_up_ns.min(now_ns - last_ns);
        }
        self.last_completion_ns = Some(now_ns);
        self.completed_since_submission = true;
        self.latency_ns += u128::from(latency_ns);
        self.completions += 1;
        self.ended(now_ns);
    }

    /// An I/O is no longer outstanding.
    pub(crate) fn ended(&mut self, now_ns: u64) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding == 0 {
            self.busy_ns += now_ns - self.busy_since_ns;
        }
    }

    /// The figures for classification, after the second pass.
    pub(crate) fn evidence(&self) -> Evidence {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let active_ns = self.active_ns() as f64;
        let mean_rate = share(self.batches as f64, active_ns);
        Evidence {
            batches: self.batches,
            busy: share(self.busy_ns(self.last_completion_ns.unwrap_or(0)) as f64, active_ns).min(1.0),
            over: share(self.overlapping_batches as f64, self.batches as f64),
            heels: share(share(self.follow_up_batches as f64, self.follow_up_time_ns as f64), mean_rate),
            blocked: share(self.blocked_ns as f64, self.latency_ns as f64),
            depth_max: self.depth_max,
            has_completions: self.completions > 0,
        }
    }
}
