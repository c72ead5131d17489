//! Results of calls into the block layer: completions and alarms of devices, completed bios, and requested actions.

use hoistway_blk::bio::Status;
use hoistway_blk::caller::{Action, BlockQueue};
use hoistway_blk::drive::Driver;
use hoistway_blk::ground::{CpuId, Instant, IoContextId, Nanos};
use hoistway_blk::watch::Probe;

use super::actors::BioEndContext;
use super::{Simulation, wake};
use crate::events::{Event, Kind};
use crate::identity::{is_from_task, task_of};

impl<P: Probe> Simulation<'_, P> {
    /// Carries out the results of a call into the block layer of `disk` on `cpu`; often there are none.
    #[inline(always)]
    pub(super) fn settle(&mut self, disk: u32, cpu: CpuId) {
        let has_announced = !self.disks[disk as usize].driver.schedule.is_empty();
        self.finish_device_call(disk, cpu, has_announced);
    }

    /// The same if the caller already knows whether the device has announced anything.
    #[inline(always)]
    pub(super) fn finish_device_call(&mut self, disk: u32, cpu: CpuId, has_announced: bool) {
        if has_announced {
            self.announce(disk, cpu);
        }
        let has_woken = self.caller.effects.has_ended() && self.notify_bio_ends();
        if !self.caller.effects.is_empty() {
            self.carry_out(disk, cpu, has_woken);
        }
        if let Some(delegated) = self.meter.take_delegated_work() {
            self.schedule_delegated_work(disk, delegated);
        }
    }

    /// Schedules the completions and alarms that a device has announced.
    #[inline(never)]
    pub(super) fn announce(&mut self, disk: u32, cpu: CpuId) {
        // A command is issued when the lock sections before it are over.
        let delay = self.meter.delay(self.now);
        let driver = &mut self.disks[disk as usize].driver;
        driver.record_submitting_cpu(cpu);
        for completion in &driver.schedule.completions {
            self.events.push(completion.at + delay, Event::new(Kind::Complete, disk).with_detail(completion.tag));
            if completion.status != Status::Ok {
                driver.failed.push((completion.tag, completion.status));
            }
        }
        driver.schedule.completions.clear();
        for &(at, alarm) in &driver.schedule.alarms {
            self.events.push(at, Event::new(Kind::Alarm, disk).with_detail(alarm));
        }
        driver.schedule.alarms.clear();
    }

    /// Notifies tasks of their completed bios. Returns whether a task has something to reap now.
    #[inline(never)]
    pub(super) fn notify_bio_ends(&mut self) -> bool {
        let mut has_woken = false;
        let Simulation { now, caller, disks, tasks, cpus, events, ios, page_cache, layers, flows, .. } = self;
        caller.effects.pop_ended(|bio, status| {
            if !is_from_task(bio) {
                let machine = &mut BioEndContext { now: *now, page_cache, tasks, disks, cpus, events, layers, flows };
                let ended = machine.bio_ended(bio, status);
                *ios += u64::from(ended.counts);
                has_woken |= ended.has_woken;
                return;
            }
            *ios += 1;
            let task = &mut tasks[task_of(bio) as usize];
            task.bio_ended(bio, status);
            task.recorded_ended(*now, bio, flows);
            task.charge(*now, cpus.completion());
            if task.can_reap() {
                has_woken = true;
                wake(*now, task, cpus, events);
            }
        });
        has_woken
    }

    #[inline(never)]
    fn carry_out(&mut self, disk: u32, cpu: CpuId, mut has_woken: bool) {
        loop {
            // Most actions are wake-ups, which do not concern the agenda.
            let action = match self.caller.effects.pop_wake() {
                Some(waiter) => Action::Wake(waiter),
                None if self.caller.effects.is_empty() => return,
                None => {
                    let device = &mut self.disks[disk as usize];
                    let (agenda, queue, mut workers) =
                        device.with_workers((disk, cpu), self.now, &mut self.cpus, &mut self.events);
                    let Some(action) = agenda.take(queue, cpu, &mut self.caller.effects, &mut workers) else { return };
                    action
                }
            };
            match action {
                Action::End { .. } => unreachable!("bios that have ended come first"),
                Action::Wake(waiter) => {
                    self.wake_sleeper(waiter);
                    // The cost of a completion includes one wake-up.
                    if std::mem::replace(&mut has_woken, true) && self.disks[disk as usize].is_used_by_tasks {
                        self.cpus.charge_interrupt(self.now, cpu, self.cpus.extra_waking_cost());
                    }
                }
                Action::TimedOut { cpu, id } => self.with_queue(disk, cpu, |queue, cx| queue.timed_out(cx, id)),
                Action::Arbitrate(weights) => self.disks[disk as usize].driver.arbitrate(weights),
                Action::MoveSubmitter { io_context, cpu } => self.place_process(io_context, cpu),
                // Disks join the tag set that they share in order, so `queue` is the disk's number.
                Action::RunOther { queue, hctx } => {
                    let other = &mut self.disks[queue.0 as usize];
                    let (agenda, queue, mut workers) =
                        other.with_workers((queue.0, cpu), self.now, &mut self.cpus, &mut self.events);
                    agenda.run(queue, hctx, Nanos::ZERO, &mut workers);
                }
            }
        }
    }

    /// Has a process run on another CPU from its next wake-up on, if it may run there.
    #[cold]
    fn place_process(&mut self, io_context: IoContextId, cpu: CpuId) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.io_context() == io_context) {
            task.place_on(cpu);
        }
    }

    /// Has workers run all hardware queues of a disk.
    pub(super) fn run_all(&mut self, disk: u32, cpu: CpuId) {
        let device = &mut self.disks[disk as usize];
        let (agenda, queue, mut workers) = device.with_workers((disk, cpu), self.now, &mut self.cpus, &mut self.events);
        agenda.run_all(queue, cpu, Nanos::ZERO, &mut workers);
    }

    /// When a worker of a disk that is scheduled now runs.
    pub(super) fn worker_ready_at(&mut self, disk: u32) -> Instant {
        self.disks[disk as usize].worker_ready_at(self.now, &mut self.cpus, &mut self.events)
    }
}
