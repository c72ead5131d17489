//! `io.max` of a device in virtual time: throttled bios, and the worker that submits them when allowed.

use std::collections::VecDeque;

use hoistway_blk::bio::Bio;
use hoistway_blk::caller::{Cx, Env, Submitted};
use hoistway_blk::ground::{Instant, Local};
use hoistway_cgroup::{Charge, Throttle};
use hoistway_legacy::AnyQueue;

use crate::submitter::Submitter;

/// The limits of a device, and its worker.
pub(crate) struct Throttling {
    throttle: Throttle,
    /// Bios that are allowed now and not submitted yet.
    released: VecDeque<Bio>,
    buffer: Vec<Bio>,
    worker: Submitter,
    /// Scheduled time of the next release.
    scheduled: Option<Instant>,
}

impl Throttling {
    pub(crate) fn new(throttle: Throttle, worker: Submitter) -> Self {
        Throttling { throttle, released: VecDeque::new(), buffer: Vec::new(), worker, scheduled: None }
    }

    /// Throttles the bio that is about to be submitted. Returns whether it has to wait.
    pub(crate) fn throttles(&mut self, now: Instant, queue: &AnyQueue<Local>, submitter: &mut Submitter) -> bool {
        let Some(bio) = submitter.withdraw() else { return false };
        // The queue splits a bio after the throttle, but each part counts as an operation.
        let charge = Charge::Parts(queue.parts_of(&bio));
        match self.throttle.submit(now, bio, charge) {
            Some(bio) => {
                submitter.begin(bio);
                false
            }
            None => true,
        }
    }

    /// Runs the worker: submits the allowed bios in one plug, as far as there are tags. Returns `false` if the worker now
    /// sleeps for a tag.
    pub(crate) fn send<E: Env>(&mut self, cx: &mut Cx<'_, E>, queue: &AnyQueue<Local>) -> bool {
        self.release(cx.now.at);
        self.worker.plug();
        loop {
            if !self.worker.is_parked() {
                let Some(bio) = self.released.pop_front() else { break };
                self.worker.begin(bio);
            }
            if self.worker.make_progress(queue, cx) == Submitted::Parked {
                return false;
            }
        }
        self.worker.unplug(queue, cx);
        true
    }

    /// Takes the bios that are allowed now.
    fn release(&mut self, now: Instant) {
        if self.scheduled.is_some_and(|scheduled| scheduled <= now) {
            self.scheduled = None;
        }
        while self.throttle.due().is_some_and(|due| due <= now) {
            self.throttle.release(now, &mut self.buffer);
            self.released.extend(self.buffer.drain(..));
        }
    }

    /// Time of the next release if it is not scheduled yet.
    pub(crate) fn schedule_next(&mut self) -> Option<Instant> {
        let due = self.throttle.due()?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= due) {
            return None;
        }
        self.scheduled = Some(due);
        Some(due)
    }
}
