//! Files of `queue/` that somebody writes while a load runs: the scheduler, its tunables, and whatever else there is.
//!
//! A write happens on every device, as `echo TEXT > /sys/block/DEV/queue/FILE` does. What needs an empty queue waits until
//! it has emptied, and the writes behind it wait, too: they come from one shell.

use std::collections::VecDeque;

use hoistway_blk::{Cx, Env, Local, Nanos, Step};
use hoistway_legacy::{Change, Front};

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

/// The writes to one device that have been asked for and have not been done.
#[derive(Default)]
pub(crate) struct Administration {
    waiting: VecDeque<Write>,
    /// The one that waits for the queue to empty.
    change: Option<Change>,
    /// Writes that the kernel refuses, and why.
    pub(crate) refused: Vec<String>,
}

/// What is left to be done after a look at the writes.
pub(crate) enum Left {
    /// Nothing, or nothing before the next completion.
    Nothing,
    /// To look again after this time.
    LookAgain(Nanos),
}

impl Administration {
    /// Whether a completion may be what a write waits for.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.change.is_some()
    }

    pub(crate) fn ask(&mut self, write: Write) {
        self.waiting.push_back(write);
    }

    /// Does what can be done now. Answers whether the scheduler has changed, and what is left.
    pub(crate) fn go_on<E: Env>(&mut self, cx: &mut Cx<'_, E>, front: &Front<Local>) -> (bool, Left) {
        let before = front.scheduler();
        loop {
            if let Some(change) = self.change.take() {
                match front.poll_change(cx, &change) {
                    Ok(Step::More) => {
                        let left = change.look_again().map_or(Left::Nothing, Left::LookAgain);
                        self.change = Some(change);
                        return (front.scheduler() != before, left);
                    }
                    Ok(Step::Done) => {}
                    Err(error) => self.refused.push(format!("queue/{}: {error}", change.file())),
                }
            }
            let Some(write) = self.waiting.pop_front() else { return (front.scheduler() != before, Left::Nothing) };
            if write.only_under.as_ref().is_some_and(|name| name != front.scheduler()) {
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
