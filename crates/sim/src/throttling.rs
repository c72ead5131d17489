//! `io.max`, `io.cost` and `io.latency` of a device in virtual time: bios that wait, and the worker that submits them when allowed.
//!
//! Used by: `disk`, `page_cache`, `simulation`.
//! Tests: `crates/sim/tests/shares.rs`.

use std::collections::VecDeque;

use hoistway_blk::bio::Bio;
use hoistway_blk::caller::{Cx, Env, Submitted};
use hoistway_blk::ground::{Instant, Local};
use hoistway_blk::request::Request;
use hoistway_cgroup::{Charge, IoCost, IoLatency, Throttle};
use hoistway_legacy::AnyQueue;

use crate::submitter::Submitter;

/// Who waits if a controller holds a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// Nobody: it passes.
    Passes,
    /// The bio, which the worker submits later.
    Bio,
    /// Its submitter, if that is a process: `io.latency` has it sleep. The owner of the bio.
    Submitter(u64),
}

/// The controllers of a device, in the order in which a bio passes them, and their worker.
pub(crate) struct Throttling {
    io_max: Option<Throttle>,
    pub(crate) io_cost: Option<IoCost>,
    pub(crate) io_latency: Option<IoLatency>,
    /// Bios that are allowed now and not submitted yet.
    released: VecDeque<Bio>,
    buffer: Vec<Bio>,
    /// Bios that have passed `io.latency`, oldest first.
    passed: Vec<Passed>,
    worker: Submitter,
    /// Scheduled time of the next release.
    scheduled: Option<Instant>,
}

/// Wakes the process that sleeps for a bio, which then submits it. Returns the bio if none does.
pub(crate) type HandOver<'a> = dyn FnMut(Bio) -> Option<Bio> + 'a;

/// When a bio passed `io.latency`.
struct Passed {
    owner: u64,
    /// Its parts that have not ended.
    parts: u32,
    at: Instant,
}

/// What is kept of a bio that passes; nothing of one without data, whose request may have no bio.
fn passes(at: Instant, bio: &Bio, parts: u32) -> Option<Passed> {
    (bio.sectors > 0).then_some(Passed { owner: bio.owner, parts, at })
}

/// A part of the bio of this owner has ended. Returns when the bio passed.
fn take_passed(passed: &mut Vec<Passed>, owner: u64) -> Option<Instant> {
    let index = passed.iter().position(|bio| bio.owner == owner)?;
    let bio = &mut passed[index];
    let at = bio.at;
    bio.parts -= 1;
    if bio.parts == 0 {
        passed.remove(index);
    }
    Some(at)
}

impl Throttling {
    pub(crate) fn new(
        io_max: Option<Throttle>,
        io_cost: Option<IoCost>,
        io_latency: Option<IoLatency>,
        worker: Submitter,
    ) -> Self {
        let (released, buffer, passed) = (VecDeque::new(), Vec::new(), Vec::new());
        Throttling { io_max, io_cost, io_latency, released, buffer, passed, worker, scheduled: None }
    }

    /// Whether any controller may hold a bio.
    pub(crate) fn is_needed(&self) -> bool {
        self.io_max.is_some() || self.io_cost.is_some() || self.io_latency.is_some()
    }

    /// Throttles the bio that is about to be submitted.
    pub(crate) fn hold(&mut self, now: Instant, queue: &AnyQueue<Local>, submitter: &mut Submitter) -> Hold {
        let Some(mut bio) = submitter.withdraw() else { return Hold::Passes };
        if let Some(io_max) = &mut self.io_max {
            // The queue splits a bio after the throttle, but each part counts as an operation.
            let charge = Charge::Parts(queue.parts_of(&bio));
            let Some(allowed) = io_max.submit(now, bio, charge) else { return Hold::Bio };
            bio = allowed;
        }
        if let Some(io_cost) = &mut self.io_cost {
            let Some(allowed) = io_cost.submit(now, bio) else { return Hold::Bio };
            bio = allowed;
        }
        if let Some(io_latency) = &mut self.io_latency {
            let (parts, owner) = (queue.parts_of(&bio), bio.owner);
            let Some(allowed) = io_latency.submit(now, bio, parts) else { return Hold::Submitter(owner) };
            bio = allowed;
            self.passed.extend(passes(now, &bio, parts));
        }
        submitter.begin(bio);
        Hold::Passes
    }

    /// The same for a submitter that does not sleep for `io.latency`. Returns whether the bio has to wait.
    pub(crate) fn throttles(&mut self, now: Instant, queue: &AnyQueue<Local>, submitter: &mut Submitter) -> bool {
        self.hold(now, queue, submitter) != Hold::Passes
    }

    /// A request of the device has completed. It is passed without its `Rq`, which would have to leave its register in runs without
    /// limits. Wakes the processes that waited for it, which is before those that wait for its tag. Returns when the worker has to run.
    #[cold]
    #[inline(never)]
    pub(crate) fn completed(
        &mut self,
        now: Instant,
        queue: &AnyQueue<Local>,
        rq: &Request,
        hand_over: &mut HandOver<'_>,
    ) -> Option<Instant> {
        let latency = now.since(rq.start);
        if let Some(io_cost) = &mut self.io_cost {
            for bio in &rq.bios {
                io_cost.ended(bio.cgroup, bio.op, bio.sectors);
            }
            io_cost.completed(now, rq.op, rq.sectors, latency);
        }
        if let Some(io_latency) = &mut self.io_latency {
            io_latency.set_requests(queue.nr_requests());
            for bio in &rq.bios {
                let latency = take_passed(&mut self.passed, bio.owner).map_or(latency, |passed| now.since(passed));
                io_latency.ended(now, bio.cgroup, bio.op, bio.sectors, latency);
            }
        }
        // Of the controllers only this one releases bios for a completion; the others wait for a time.
        if self.io_latency.as_ref().is_some_and(|io_latency| io_latency.waiting() > 0) {
            let released = self.released.len();
            self.admit(now, queue, hand_over);
            if self.released.len() > released {
                return Some(now);
            }
            return self.schedule_next().map(|due| due.max(now));
        }
        None
    }

    /// Takes the bios that `io.latency` allows now, and wakes the processes that sleep for theirs.
    fn admit(&mut self, now: Instant, queue: &AnyQueue<Local>, hand_over: &mut HandOver<'_>) {
        let Throttling { io_latency, released, buffer, passed, .. } = self;
        if let Some(io_latency) = io_latency.as_mut().filter(|latency| latency.due().is_some_and(|due| due <= now)) {
            io_latency.release(now, buffer);
            passed.extend(buffer.iter().filter_map(|bio| passes(now, bio, queue.parts_of(bio))));
            released.extend(buffer.drain(..).filter_map(hand_over));
        }
    }

    /// A submitter sleeps because no tag is free.
    pub(crate) fn tags_ran_out(&mut self) {
        if let Some(io_cost) = &mut self.io_cost {
            io_cost.tags_ran_out();
        }
    }

    /// Runs the worker: submits the allowed bios in one plug, as far as there are tags. Returns `false` if the worker now sleeps for a tag.
    pub(crate) fn send<E: Env>(
        &mut self,
        cx: &mut Cx<'_, E>,
        queue: &AnyQueue<Local>,
        hand_over: &mut HandOver<'_>,
    ) -> bool {
        self.release(cx.now.at, queue, hand_over);
        self.worker.plug();
        loop {
            if !self.worker.is_parked() {
                let Some(bio) = self.released.pop_front() else { break };
                self.worker.begin(bio);
            }
            if self.worker.make_progress(queue, cx) == Submitted::Parked {
                self.tags_ran_out();
                return false;
            }
        }
        self.worker.unplug(queue, cx);
        true
    }

    /// Takes the bios that are allowed now.
    fn release(&mut self, now: Instant, queue: &AnyQueue<Local>, hand_over: &mut HandOver<'_>) {
        if self.scheduled.is_some_and(|scheduled| scheduled <= now) {
            self.scheduled = None;
        }
        let Throttling { io_max, io_cost, io_latency, released, buffer, passed, .. } = self;
        let mut pass = |bio: Bio| match io_latency {
            Some(io_latency) => {
                let parts = queue.parts_of(&bio);
                if let Some(bio) = io_latency.submit(now, bio, parts) {
                    passed.extend(passes(now, &bio, parts));
                    released.push_back(bio);
                }
            }
            None => released.push_back(bio),
        };
        if let Some(io_max) = io_max {
            while io_max.due().is_some_and(|due| due <= now) {
                io_max.release(now, buffer);
            }
        }
        match io_cost {
            Some(io_cost) => {
                buffer.drain(..).filter_map(|bio| io_cost.submit(now, bio)).for_each(&mut pass);
                if io_cost.due().is_some_and(|due| due <= now) {
                    io_cost.release(now, buffer);
                    buffer.drain(..).for_each(&mut pass);
                }
            }
            None => buffer.drain(..).for_each(&mut pass),
        }
        self.admit(now, queue, hand_over);
    }

    /// Time of the next release if it is not scheduled yet.
    pub(crate) fn schedule_next(&mut self) -> Option<Instant> {
        let io_max = self.io_max.as_ref().and_then(Throttle::due);
        let io_cost = self.io_cost.as_ref().and_then(IoCost::due);
        let io_latency = self.io_latency.as_ref().and_then(IoLatency::due);
        let due = io_max.into_iter().chain(io_cost).chain(io_latency).min()?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= due) {
            return None;
        }
        self.scheduled = Some(due);
        Some(due)
    }
}
