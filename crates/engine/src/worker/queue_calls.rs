//! The calls of a worker into the queue, and the work that they make due.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::{Action, Agenda, Caller, Cx, Due, Submitter, Workers};
use hoistway_blk::ground::{CpuId, Instant, NoMeter, Now, Threads, Waiter};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::Queue;
use hoistway_blk::sysfs::AttributeError;

use super::disk_counters::WorkerProbe;
use super::driver::IoChannelDriver;
use super::shared::{Shared, cpu};

type Machine = (IoChannelDriver, WorkerProbe);

/// A completed part of a request.
pub struct CompletedPart {
    pub slot: u32,
    pub sectors: u32,
    pub status: Status,
}

/// A worker's side of the queue. The results of calls are collected in `ended` and `woken`.
pub struct QueueCalls {
    pub now: Now,
    pub driver: IoChannelDriver,
    pub ended: Vec<CompletedPart>,
    pub woken: Vec<Waiter>,
    cpu: CpuId,
    caller: Caller,
    agenda: Agenda,
    probe: WorkerProbe,
}

/// A run of this worker's queue is due at once; the timer of the scheduler is set for all workers.
struct AtOnce<'a> {
    now: Instant,
    shared: &'a Shared,
}

impl Workers for AtOnce<'_> {
    fn start_worker(&mut self, _: CpuId) -> Instant {
        self.now
    }

    fn called_worker_starts_by(&self) -> Instant {
        self.now
    }

    fn set(&mut self, at: Instant, due: Due, _: u32) {
        if due == Due::Timer {
            self.shared.timer_ns.store(at.0, Relaxed);
        }
    }
}

impl QueueCalls {
    pub fn new(shared: &Arc<Shared>, worker: usize, driver: IoChannelDriver) -> Self {
        QueueCalls {
            now: shared.now(),
            driver,
            ended: Vec::new(),
            woken: Vec::new(),
            cpu: cpu(worker),
            caller: Caller::new(),
            agenda: Agenda::new(shared.queue.hw_queues()),
            probe: WorkerProbe::new(worker, shared.statistics.clone()),
        }
    }

    #[inline]
    fn call<R>(&mut self, body: impl FnOnce(&mut Cx<'_, Machine>) -> R) -> R {
        body(&mut self.caller.cx(self.now, self.cpu, &mut self.driver, &mut self.probe, &NoMeter))
    }

    #[inline]
    pub fn submit(&mut self, shared: &Shared, submitter: &mut Submitter<Queue<Threads>>, bio: Bio) {
        self.call(|cx| submitter.submit(&shared.queue, cx, bio));
    }

    pub fn make_progress(&mut self, shared: &Shared, submitter: &mut Submitter<Queue<Threads>>) {
        self.call(|cx| submitter.make_progress(&shared.queue, cx));
    }

    #[inline]
    pub fn unplug(&mut self, shared: &Shared, submitter: &mut Submitter<Queue<Threads>>) {
        self.call(|cx| submitter.unplug(&shared.queue, cx));
    }

    pub fn cancel(&mut self, shared: &Shared, submitter: &mut Submitter<Queue<Threads>>) -> Option<Bio> {
        self.call(|cx| submitter.cancel(&shared.queue, cx))
    }

    /// The command with this number has completed at the channel.
    #[inline]
    pub fn complete(&mut self, shared: &Shared, id: u32, status: Status) {
        let rq = self.driver.take(id);
        debug_assert!(rq.is_some(), "a command ends once");
        if let Some(rq) = rq {
            self.call(|cx| shared.queue.complete(cx, rq, status));
        }
    }

    pub fn notify_scheduler(&mut self, shared: &Shared, event: SchedulerEvent) {
        shared.queue.notify(self.now, &mut self.caller.effects, event);
    }

    pub fn freeze(&mut self, shared: &Shared) {
        self.call(|cx| shared.queue.freeze(cx));
    }

    pub fn unfreeze(&mut self, shared: &Shared) {
        self.call(|cx| shared.queue.unfreeze(cx));
    }

    pub fn set_attribute(&mut self, shared: &Shared, file: &str, text: &str) -> Result<(), AttributeError> {
        shared.queue.set_attribute(self.now, file, text, &mut self.caller.effects)
    }

    /// When something is due.
    pub fn next_at(&self) -> Instant {
        self.agenda.next_at().unwrap_or(Instant::NEVER)
    }

    /// Carries out the work that is due and everything that results from it. Returns whether any was due.
    pub fn carry_out_due(&mut self, shared: &Shared) -> bool {
        if self.next_at() > self.now.at {
            return false;
        }
        self.carry_out(shared);
        true
    }

    /// Carries out the results of calls, and all work that is due.
    #[inline]
    pub fn carry_out(&mut self, shared: &Shared) {
        loop {
            self.collect(shared);
            while let Some(due) = self.agenda.take_due(self.now.at) {
                if due != Due::Timer || shared.take_timer(self.now.at) {
                    self.call(|cx| due.carry_out(&shared.queue, cx));
                }
            }
            if self.caller.effects.is_empty() {
                return;
            }
        }
    }

    /// Takes the effects of calls.
    #[inline]
    fn collect(&mut self, shared: &Shared) {
        let ended = &mut self.ended;
        let mut end = |bio: &Bio, status| {
            ended.push(CompletedPart { slot: bio.owner as u32, sectors: bio.sectors, status });
        };
        self.caller.effects.pop_ended(&mut end);
        let mut workers = AtOnce { now: self.now.at, shared };
        while !self.caller.effects.is_empty() {
            match self.agenda.take(&shared.queue, self.cpu, &mut self.caller.effects, &mut workers) {
                Some(Action::End { bio, status }) => end(&bio, status),
                Some(Action::Wake(waiter)) => self.woken.push(waiter),
                // A channel cannot abort a command, so timeouts are ignored; and no other queue shares its tags.
                Some(
                    Action::TimedOut { .. }
                    | Action::RunOther { .. }
                    | Action::Arbitrate(_)
                    | Action::MoveSubmitter { .. },
                )
                | None => {}
            }
        }
    }
}
