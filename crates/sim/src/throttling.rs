//! `io.max` of a device in virtual time: bios that a cgroup may not send yet, and the worker that sends them when it may.

use std::collections::VecDeque;

use hoistway_blk::{Bio, Charge, FrontSubmission, Instant, Plug, Throttle, Waiter};

/// The limits of a device, and its worker.
pub(crate) struct Throttling {
    throttle: Throttle,
    /// Bios that may go, and are on their way to the block layer.
    pub(crate) released: VecDeque<Bio>,
    buffer: Vec<Bio>,
    /// What the worker is submitting.
    pub(crate) submission: FrontSubmission,
    /// It sleeps for a tag.
    pub(crate) is_parked: bool,
    pub(crate) plug: Plug,
    /// The moment that is set for the next release.
    set: Option<Instant>,
}

/// Waiters of workers are counted from the end; tasks are counted from 0.
pub(crate) fn worker(disk: u32) -> Waiter {
    Waiter(u32::MAX - disk)
}

/// The disk whose worker this is, if it is one.
pub(crate) fn disk_of(waiter: Waiter, disks: usize) -> Option<u32> {
    let disk = u32::MAX - waiter.0;
    ((disk as usize) < disks).then_some(disk)
}

impl Throttling {
    pub(crate) fn new(throttle: Throttle, submission: FrontSubmission) -> Self {
        Throttling {
            throttle,
            released: VecDeque::new(),
            buffer: Vec::new(),
            submission,
            is_parked: false,
            plug: Plug::new(),
            set: None,
        }
    }

    /// Lets a bio through, or keeps it.
    pub(crate) fn submit(&mut self, now: Instant, bio: Bio) -> Option<Bio> {
        self.throttle.submit(now, bio, Charge::Whole)
    }

    /// Releases what may go now.
    pub(crate) fn release(&mut self, now: Instant) {
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
