//! Writes to files of `queue/` while a load runs: the scheduler, its tunables, and the other attributes.
//!
//! A write happens on every device, as `echo TEXT > /sys/block/DEV/queue/FILE` does. What needs an empty queue waits until
//! it has emptied, and the writes behind it wait, too: they come from one shell.

use std::collections::VecDeque;

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{Local, Nanos};
use hoistway_blk::queue::Step;
use hoistway_legacy::{AnyQueue, PendingWrite};

/// A write that is to happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// When.
    pub at: Nanos,
    /// Only if the scheduler in charge then has this name.
    pub only_under: Option<String>,
    /// The file, such as `scheduler` or `iosched/slice_idle`.
    pub file: String,
    /// What is written.
    pub text: String,
}

/// What became of a write while the load ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fate {
    /// The load had ended before.
    TooLate,
    /// Another scheduler than the one it is for was in charge.
    OtherScheduler,
    /// It was written, or refused.
    Written,
}

/// The writes to one device that have been asked for and have not been done.
#[derive(Default)]
pub(crate) struct Administration {
    /// By their places among all.
    waiting: VecDeque<(u32, Write)>,
    /// The one that waits for the queue to empty.
    change: Option<PendingWrite>,
    /// Writes that the kernel refuses, and why.
    pub(crate) refused: Vec<String>,
}

/// What is left to be done after a look at the writes.
pub(crate) enum PendingAdministration {
    /// Nothing, or nothing before the next completion.
    Nothing,
    /// To look again after this time.
    PollAfter(Nanos),
}

impl Administration {
    /// Whether a completion may be what a write waits for.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.change.is_some()
    }

    pub(crate) fn ask(&mut self, place: u32, write: Write) {
        self.waiting.push_back((place, write));
    }

    /// Does what can be done now, and notes what became of it in `fates`, by the places of the writes. Returns whether the scheduler
    /// has changed, and what is left.
    pub(crate) fn make_progress<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        front: &AnyQueue<Local>,
        fates: &mut [Fate],
    ) -> (bool, PendingAdministration) {
        let before = front.scheduler();
        loop {
            if let Some(change) = self.change.take() {
                match front.poll_change(cx, &change) {
                    Ok(Step::More) => {
                        let left = change
                            .poll_interval()
                            .map_or(PendingAdministration::Nothing, PendingAdministration::PollAfter);
                        self.change = Some(change);
                        return (front.scheduler() != before, left);
                    }
                    Ok(Step::Done) => {}
                    Err(error) => self.refused.push(format!("queue/{}: {error}", change.file())),
                }
            }
            let Some((place, write)) = self.waiting.pop_front() else {
                return (front.scheduler() != before, PendingAdministration::Nothing);
            };
            let is_for_another = write.only_under.as_ref().is_some_and(|name| name != front.scheduler());
            let fate = &mut fates[place as usize];
            // Written to one device is written.
            *fate = (*fate).max(if is_for_another { Fate::OtherScheduler } else { Fate::Written });
            if is_for_another {
                continue;
            }
            match front.begin_change(cx, &write.file, &write.text) {
                Ok(change) => self.change = change,
                Err(error) => {
                    let (file, text, scheduler) = (&write.file, &write.text, front.scheduler());
                    self.refused.push(format!("queue/{file}={text} under {scheduler}: {error}"));
                }
            }
        }
    }
}
