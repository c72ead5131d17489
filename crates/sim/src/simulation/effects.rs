//! What calls into the block layer led to: completions and alarms of devices, bios that have ended, and effects.

use hoistway_blk::{CpuId, Effect, HctxId, Instant, Nanos, Probe, Status};

use super::{Simulation, buffered, virtual_disks, wake};
use crate::cpu::Span;
use crate::events::{Event, Kind};
use crate::identity::{Sleeper, is_of_task, task_of, virtual_disk_of};

impl<P: Probe> Simulation<'_, P> {
    /// Carries out what a call into the block layer of `disk` on `cpu` led to: often nothing.
    #[inline(always)]
    pub(super) fn settle(&mut self, disk: u32, cpu: CpuId) {
        if !self.disks[disk as usize].driver.schedule.is_empty() {
            self.announce(disk);
        }
        if self.effects.has_ended() {
            self.tell_ended();
        }
        if !self.effects.is_empty() {
            self.carry_out(disk, cpu);
        }
    }

    /// Sets events for what a device has announced.
    #[inline(never)]
    pub(super) fn announce(&mut self, disk: u32) {
        let driver = &mut self.disks[disk as usize].driver;
        for completion in &driver.schedule.completions {
            self.events.push(completion.at, Event::of(Kind::Complete, disk).about(completion.tag));
            if completion.status != Status::Ok {
                driver.failed.push((completion.tag, completion.status));
            }
        }
        driver.schedule.completions.clear();
        for &(at, alarm) in &driver.schedule.alarms {
            self.events.push(at, Event::of(Kind::Alarm, disk).about(alarm));
        }
        driver.schedule.alarms.clear();
    }

    /// Tells tasks that their bios have ended.
    #[inline(never)]
    pub(super) fn tell_ended(&mut self) {
        let Simulation { now, effects, disks, tasks, cpus, events, ios, page_cache, .. } = self;
        effects.pop_ended(|bio, status| {
            if !is_of_task(bio) {
                match virtual_disk_of(bio) {
                    Some(disk) => {
                        return virtual_disks::bio_ended(*now, &mut disks[disk as usize], disk, bio, status, events);
                    }
                    None => {
                        *ios += 1;
                        return buffered::bio_ended(*now, page_cache, bio, status, (tasks, disks), cpus, events);
                    }
                }
            }
            *ios += 1;
            let task = &mut tasks[task_of(bio) as usize];
            task.bio_ended(bio, status);
            task.charge(*now, cpus.completion());
            if task.can_reap() {
                wake(*now, task, cpus, events);
            }
        });
    }

    #[inline(never)]
    pub(super) fn carry_out(&mut self, disk: u32, cpu: CpuId) {
        while let Some(effect) = self.effects.pop() {
            match effect {
                Effect::EndBio { .. } => unreachable!("bios that have ended come first"),
                Effect::Wake(waiter) => match Sleeper::of(waiter) {
                    Sleeper::Task(number) => self.wake(number),
                    Sleeper::Flusher(disk) => self.set_flusher(disk),
                    Sleeper::Limits(disk) => {
                        let at = self.worker_runs(disk, HctxId(0));
                        self.events.push(at, Event::of(Kind::Release, disk));
                    }
                    Sleeper::IoThread(disk) => self.unpark_io_thread(disk),
                },
                Effect::RunHctx { hctx, delay } => self.set_run(disk, hctx, delay),
                Effect::RunAll { delay } => self.run_all(disk, cpu, delay),
                Effect::KickRequeue => {
                    let at = self.worker_runs(disk, HctxId(0));
                    self.events.push(at, Event::of(Kind::KickRequeue, disk));
                }
                Effect::SetTimer(at) => {
                    let setting = self.disks[disk as usize].set_timer();
                    self.events.push(at.max(self.now), Event::of(Kind::Timer, disk).with_setting(setting));
                }
                Effect::CancelTimer => {
                    self.disks[disk as usize].set_timer();
                }
                Effect::SetTimeout(at) => {
                    let setting = self.disks[disk as usize].set_timeout();
                    self.events.push(at, Event::of(Kind::Timeout, disk).with_setting(setting));
                }
                Effect::TimedOut { cpu, id } => self.with_front(disk, cpu, |front, cx| front.timed_out(cx, id)),
                Effect::SetWindow(at) => self.events.push(at, Event::of(Kind::Window, disk)),
                // Disks join the tags that they share in their order.
                Effect::RunOther { queue, hctx } => self.set_run(queue.0, hctx, Nanos::ZERO),
            }
        }
    }

    /// When a worker runs that is woken now.
    #[inline]
    pub(super) fn worker_runs(&mut self, disk: u32, hctx: HctxId) -> Instant {
        let on = &mut self.disks[disk as usize];
        if let Some(worker) = on.host_worker {
            return self.now + worker.draw(&mut on.worker_random);
        }
        self.cpus.worker_runs(self.now, on.front.worker_cpu(hctx), &mut on.worker_random)
    }

    /// Sets a run of a hardware queue on a worker. One that a worker is already on its way to stays; one that was
    /// delayed is replaced.
    #[inline]
    pub(super) fn set_run(&mut self, disk: u32, hctx: HctxId, delay: Nanos) {
        let on = &mut self.disks[disk as usize];
        let on_its_way = self.now + on.host_worker.map_or(self.cpus.worker_max(), Span::max);
        if !on.runs.wants(hctx, on_its_way) {
            return;
        }
        let due = self.worker_runs(disk, hctx) + delay;
        let on = &mut self.disks[disk as usize];
        let event = Event::of(Kind::RunHctx, disk).about(u32::from(hctx.0)).with_setting(on.runs.set(hctx, due));
        self.events.push(due, event);
    }

    /// Sets runs of all hardware queues; with a delay those that are set already are left alone.
    pub(super) fn run_all(&mut self, disk: u32, cpu: CpuId, delay: Nanos) {
        let on = &self.disks[disk as usize];
        if on.front.hw_queues() == 1 {
            if on.runs.wants_with_all(HctxId(0), delay) {
                self.set_run(disk, HctxId(0), delay);
            }
            return;
        }
        let mut hctxs = std::mem::take(&mut self.hctxs);
        hctxs.extend(on.front.hctxs_of_run_all(cpu));
        for hctx in hctxs.drain(..) {
            if self.disks[disk as usize].runs.wants_with_all(hctx, delay) {
                self.set_run(disk, hctx, delay);
            }
        }
        self.hctxs = hctxs;
    }
}
