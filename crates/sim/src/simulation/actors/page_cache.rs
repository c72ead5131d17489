//! The page cache in the event loop: calls of processes, completed bios, flushers and journals.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::{CpuId, Waiter};
use hoistway_blk::watch::Probe;

use super::{BioEndContext, Simulation, wake};
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::events::{Event, Kind};
use crate::identity::Sleeper;
use crate::page_cache::{FLUSHER_INTERVAL, PageCacheCall};

/// Value of an event's setting: the event is periodic.
const PERIODIC: u32 = 1;

fn journal_event(disk: u32) -> Event {
    Event::new(Kind::Actor, Sleeper::Journal(disk).waiter().0)
}

fn flusher_event(disk: u32) -> Event {
    Event::new(Kind::Actor, Sleeper::Flusher(disk).waiter().0)
}

impl<P: Probe> Simulation<'_, P> {
    /// Schedules the periodic runs of flushers, which look for old pages.
    pub(super) fn schedule_periodic_flushers(&mut self) {
        if self.page_cache.is_some() {
            for disk in 0..self.workload.files.len().min(self.disks.len()) as u32 {
                self.events.push(self.now + FLUSHER_INTERVAL, flusher_event(disk).with_setting(PERIODIC));
            }
        }
    }

    /// Starts or continues the buffered I/O of a process as far as possible. In any case the process then waits, if
    /// only for its CPU.
    #[cold]
    pub(in super::super) fn call_page_cache(&mut self, disk: u32, number: u32) {
        let Simulation { page_cache: Some(cache), disks, tasks, caller, meter, probe, cpus, events, now, .. } = self
        else {
            return;
        };
        let (task, device) = (&mut tasks[number as usize], &mut disks[disk as usize]);
        let SimulatedDisk { queue, driver, throttling, section, .. } = device;
        meter.begin(*now, task.cpu, *section);
        probe.enter(disk, Some(Waiter(number)));
        let cpu = task.cpu;
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        match cache.call(&mut cx, queue, throttling.as_deref_mut(), task) {
            PageCacheCall::Done(cpu_time) => {
                task.is_woken = true;
                events.push(cpus.occupy_for_copy(*now, task, cpu_time), Event::new(Kind::Run, number));
            }
            PageCacheCall::Waits => {}
        }
        self.settle(disk, cpu);
        self.schedule_release(disk);
        self.wake_flushers();
        self.wake_journals();
    }

    fn wake_flushers(&mut self) {
        while let Some(disk) = self.page_cache.as_mut().and_then(|cache| cache.next_flusher()) {
            self.schedule_flusher(disk);
        }
    }

    /// Runs a disk's flusher when due, and commits its journal periodically.
    pub(super) fn run_flusher(&mut self, disk: u32, setting: u32) {
        self.write_back(disk, setting);
        self.wake_journals();
    }

    fn wake_journals(&mut self) {
        while let Some(disk) = self.page_cache.as_mut().and_then(|cache| cache.next_journal()) {
            self.schedule_journal(disk);
        }
    }

    /// Schedules the journal thread of a disk with the latency of a worker.
    pub(super) fn schedule_journal(&mut self, disk: u32) {
        let at = self.worker_ready_at(disk);
        self.events.push(at, journal_event(disk));
    }

    /// Runs the journal thread of a disk.
    #[cold]
    pub(super) fn write_journal(&mut self, disk: u32) {
        let Simulation { page_cache: Some(cache), disks, caller, meter, probe, now, .. } = self else { return };
        let cpu = CpuId(0);
        let SimulatedDisk { queue, driver, section, .. } = &mut disks[disk as usize];
        meter.begin(*now, cpu, *section);
        probe.enter(disk, None);
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        cache.commit(&mut cx, queue, disk);
        self.settle(disk, cpu);
    }

    /// Schedules a flusher with the latency of a worker.
    pub(super) fn schedule_flusher(&mut self, disk: u32) {
        let at = self.worker_ready_at(disk);
        self.events.push(at, flusher_event(disk));
    }

    /// Runs the flusher of a disk.
    #[cold]
    fn write_back(&mut self, disk: u32, setting: u32) {
        let Simulation { page_cache: Some(cache), disks, caller, meter, probe, events, now, .. } = self else { return };
        if setting == PERIODIC {
            events.push(*now + FLUSHER_INTERVAL, flusher_event(disk).with_setting(PERIODIC));
            cache.commit_in_time(disk);
            if cache.is_flushing(disk) {
                return;
            }
        }
        let cpu = CpuId(0);
        let SimulatedDisk { queue, driver, section, .. } = &mut disks[disk as usize];
        meter.begin(*now, cpu, *section);
        probe.enter(disk, None);
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        if let Some(after) = cache.flush(&mut cx, queue, disk) {
            events.push(*now + after, flusher_event(disk));
        }
        self.settle(disk, cpu);
    }
}

impl BioEndContext<'_> {
    /// A part of a bio of the page cache has completed: wakes the processes that waited for it.
    pub(super) fn bio_of_page_cache_ended(&mut self, bio: &Bio, status: Status) {
        let BioEndContext { now, page_cache: Some(cache), tasks, disks, cpus, events, .. } = self else { return };
        let now = *now;
        cache.bio_ended(now, bio, status, tasks, |task, was_throttled| {
            if was_throttled {
                disks[task.current_disk.disk as usize].queue.set_dirty_throttled(now, false);
            }
            task.charge(now, cpus.completion());
            wake(now, task, cpus, events);
        });
        while let Some(disk) = cache.next_journal() {
            let at = disks[disk as usize].worker_ready_at(now, cpus, events);
            events.push(at, journal_event(disk));
        }
    }
}
