//! Writes to files of `queue/` while a load runs: the scheduler, its tunables, and the other attributes.
//!
//! Used by: `simulation`, `scenario`, `disk`; crate `experiment`.
//! Tests: `crates/sim/tests/administration.rs`.
//!
//! A write goes to every device, as `echo TEXT > /sys/block/DEV/queue/FILE` does. A write that needs an empty queue waits until the
//! queue has drained, and later writes wait behind it because one shell makes them all.

use std::collections::VecDeque;

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{Local, Nanos};
use hoistway_blk::queue::Step;
use hoistway_legacy::{AnyQueue, PendingWrite};

/// A scheduled write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Time of the write since the start of the run.
    pub at: Nanos,
    /// Write only if the active scheduler has this name; `None` for any.
    pub only_under: Option<String>,
    /// The file in `queue/`, such as `scheduler` or `iosched/slice_idle`.
    pub file: String,
    /// The text to write.
    pub text: String,
}

/// What became of a write while the load ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// The load ended before the write was due.
    TooLate,
    /// Skipped: a scheduler other than `only_under` was active.
    OtherScheduler,
    /// Written, or rejected by the queue.
    Written,
}

/// Pending writes to the files of one device.
#[derive(Default)]
pub(crate) struct Administration {
    /// Writes that are due, each with its index in [`QueueSettings::writes`](crate::QueueSettings::writes).
    waiting: VecDeque<(u32, Write)>,
    /// The write that waits for the queue to drain.
    change: Option<PendingWrite>,
    /// Rejected writes, with the reasons.
    pub(crate) refused: Vec<String>,
}

/// When to try the pending writes again.
pub(crate) enum PendingAdministration {
    /// No write is pending, or not before the next completion.
    Nothing,
    /// Try again after this time.
    PollAfter(Nanos),
}

impl Administration {
    /// Whether a write waits for completions.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.change.is_some()
    }

    pub(crate) fn enqueue(&mut self, index: u32, write: Write) {
        self.waiting.push_back((index, write));
    }

    /// Performs the writes that are possible now and records each outcome in `fates`. Returns whether the scheduler changed, and
    /// when to try the rest.
    pub(crate) fn make_progress<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        queue: &AnyQueue<Local>,
        fates: &mut [Fate],
    ) -> (bool, PendingAdministration) {
        let previous_scheduler = queue.scheduler();
        loop {
            if let Some(change) = self.change.take() {
                match queue.poll_change(cx, &change) {
                    Ok(Step::More) => {
                        let retry = change
                            .poll_interval()
                            .map_or(PendingAdministration::Nothing, PendingAdministration::PollAfter);
                        self.change = Some(change);
                        return (queue.scheduler() != previous_scheduler, retry);
                    }
                    Ok(Step::Done) => {}
                    Err(error) => self.refused.push(format!("queue/{}: {error}", change.file())),
                }
            }
            let Some((index, write)) = self.waiting.pop_front() else {
                return (queue.scheduler() != previous_scheduler, PendingAdministration::Nothing);
            };
            let is_for_other_scheduler = write.only_under.as_ref().is_some_and(|name| name != queue.scheduler());
            let fate = &mut fates[index as usize];
            // A write that reached any device counts as written.
            *fate = (*fate).max(if is_for_other_scheduler { Fate::OtherScheduler } else { Fate::Written });
            if is_for_other_scheduler {
                continue;
            }
            match queue.begin_change(cx, &write.file, &write.text) {
                Ok(change) => self.change = change,
                Err(error) => {
                    let (file, text, scheduler) = (&write.file, &write.text, queue.scheduler());
                    self.refused.push(format!("queue/{file}={text} under {scheduler}: {error}"));
                }
            }
        }
    }
}
