//! `io.max` of a device in virtual time: bios that a cgroup may not send yet, and the worker that sends them when it may.

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
    /// Bios that may go, and are on their way to the block layer.
    released: VecDeque<Bio>,
    buffer: Vec<Bio>,
    worker: Submitter,
    /// The moment that is set for the next release.
    set: Option<Instant>,
}

impl Throttling {
    pub(crate) fn new(throttle: Throttle, worker: Submitter) -> Self {
        Throttling { throttle, released: VecDeque::new(), buffer: Vec::new(), worker, set: None }
    }

    /// Whether the bio that is about to be submitted is kept.
    pub(crate) fn keeps(&mut self, now: Instant, front: &AnyQueue<Local>, submitter: &mut Submitter) -> bool {
        let Some(bio) = submitter.withdraw() else { return false };
        // The queue cuts a bio where the throttle does not see it, but each part is an operation.
        let charge = Charge::Parts(front.parts_of(&bio));
        match self.throttle.submit(now, bio, charge) {
            Some(bio) => {
                submitter.begin(bio);
                false
            }
            None => true,
        }
    }

    /// The worker runs: it sends what may go, in one plug, as far as there are tags. Returns whether all of it went;
    /// if not, the worker sleeps for a tag.
    pub(crate) fn send<E: Env>(&mut self, cx: &mut Cx<'_, E>, front: &AnyQueue<Local>) -> bool {
        self.release(cx.now.at);
        self.worker.plug();
        loop {
            if !self.worker.is_parked() {
                let Some(bio) = self.released.pop_front() else { break };
                self.worker.begin(bio);
            }
            if self.worker.make_progress(front, cx) == Submitted::Parked {
                return false;
            }
        }
        self.worker.unplug(front, cx);
        true
    }

    /// Takes what may go now.
    fn release(&mut self, now: Instant) {
        if self.set.is_some_and(|set| set <= now) {
            self.set = None;
        }
        while self.throttle.due().is_some_and(|due| due <= now) {
            self.throttle.release(now, &mut self.buffer);
            self.released.extend(self.buffer.drain(..));
        }
    }

    /// The moment that must be set for the next release, if it is not set already.
    pub(crate) fn next_setting(&mut self) -> Option<Instant> {
        let due = self.throttle.due()?;
        if self.set.is_some_and(|set| set <= due) {
            return None;
        }
        self.set = Some(due);
        Some(due)
    }
}
