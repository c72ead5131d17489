//! The page cache in the event loop: calls of processes, bios that end, and flushers.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::{CpuId, Waiter};
use hoistway_blk::watch::Probe;

use super::{BioEndContext, Simulation, wake};
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::events::{Event, Kind};
use crate::identity::Sleeper;
use crate::page_cache::{INTERVAL, PageCacheCall};

/// In the place of an event's setting: it comes again.
const PERIODIC: u32 = 1;

fn journal_comes(disk: u32) -> Event {
    Event::of(Kind::Actor, Sleeper::Journal(disk).waiter().0)
}

fn flusher_comes(disk: u32) -> Event {
    Event::of(Kind::Actor, Sleeper::Flusher(disk).waiter().0)
}

impl<P: Probe> Simulation<'_, P> {
    /// Flushers look for old pages from time to time.
    pub(super) fn set_flushers(&mut self) {
        if self.page_cache.is_some() {
            for disk in 0..self.workload.files.len() as u32 {
                self.events.push(self.now + INTERVAL, flusher_comes(disk).with_setting(PERIODIC));
            }
        }
    }

    /// A process whose I/O is not direct submits: the page cache continues that as far as it gets. In any case the
    /// process waits, if only for its CPU.
    #[cold]
    pub(in super::super) fn call_page_cache(&mut self, disk: u32, number: u32) {
        let Simulation { page_cache: Some(cache), disks, tasks, caller, meter, probe, cpus, events, now, .. } = self
        else {
            return;
        };
        let (task, on) = (&mut tasks[number as usize], &mut disks[disk as usize]);
        let SimulatedDisk { front, driver, throttling, section, .. } = on;
        meter.begin(*now, task.cpu, *section);
        probe.enter(disk, Some(Waiter(number)));
        let cpu = task.cpu;
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        match cache.call(&mut cx, front, throttling.as_deref_mut(), task) {
            PageCacheCall::Done(cpu_time) => {
                task.is_woken = true;
                events.push(cpus.copies(*now, task, cpu_time), Event::of(Kind::Run, number));
            }
            PageCacheCall::Waits => {}
        }
        self.settle(disk, cpu);
        self.set_release(disk);
        self.wake_flushers();
        self.wake_journals();
    }

    fn wake_flushers(&mut self) {
        while let Some(disk) = self.page_cache.as_mut().and_then(|cache| cache.next_flusher()) {
            self.set_flusher(disk);
        }
    }

    /// The moment of a disk's flusher has come, and sometimes that of its journal.
    pub(super) fn flusher_comes(&mut self, disk: u32, setting: u32) {
        self.write_back(disk, setting);
        self.wake_journals();
    }

    fn wake_journals(&mut self) {
        while let Some(disk) = self.page_cache.as_mut().and_then(|cache| cache.next_journal()) {
            self.set_journal(disk);
        }
    }

    /// The thread of a journal comes as soon as a worker can.
    pub(super) fn set_journal(&mut self, disk: u32) {
        let at = self.worker_ready_at(disk);
        self.events.push(at, journal_comes(disk));
    }

    /// The thread of a disk's journal runs.
    #[cold]
    pub(super) fn write_journal(&mut self, disk: u32) {
        let Simulation { page_cache: Some(cache), disks, caller, meter, probe, now, .. } = self else { return };
        let cpu = CpuId(0);
        let SimulatedDisk { front, driver, section, .. } = &mut disks[disk as usize];
        meter.begin(*now, cpu, *section);
        probe.enter(disk, None);
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        cache.commit(&mut cx, front, disk);
        self.settle(disk, cpu);
    }

    /// A flusher comes as soon as a worker can.
    pub(super) fn set_flusher(&mut self, disk: u32) {
        let at = self.worker_ready_at(disk);
        self.events.push(at, flusher_comes(disk));
    }

    /// The flusher of a disk runs.
    #[cold]
    fn write_back(&mut self, disk: u32, setting: u32) {
        let Simulation { page_cache: Some(cache), disks, caller, meter, probe, events, now, .. } = self else { return };
        if setting == PERIODIC {
            events.push(*now + INTERVAL, flusher_comes(disk).with_setting(PERIODIC));
            cache.commit_in_time(disk);
            if cache.is_flushing(disk) {
                return;
            }
        }
        let cpu = CpuId(0);
        let SimulatedDisk { front, driver, section, .. } = &mut disks[disk as usize];
        meter.begin(*now, cpu, *section);
        probe.enter(disk, None);
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        if let Some(after) = cache.flush(&mut cx, front, disk) {
            events.push(*now + after, flusher_comes(disk));
        }
        self.settle(disk, cpu);
    }
}

impl BioEndContext<'_> {
    /// A part of a bio of the page cache has ended: processes go on that waited for it.
    pub(super) fn bio_of_page_cache_ended(&mut self, bio: &Bio, status: Status) {
        let BioEndContext { now, page_cache: Some(cache), tasks, disks, cpus, events } = self else { return };
        let now = *now;
        cache.bio_ended(now, bio, status, tasks, |task, was_held_up| {
            if was_held_up {
                disks[task.lane.disk as usize].front.set_dirty_throttled(now, false);
            }
            task.charge(now, cpus.completion());
            wake(now, task, cpus, events);
        });
        while let Some(disk) = cache.next_journal() {
            let at = disks[disk as usize].worker_ready_at(now, cpus, events);
            events.push(at, journal_comes(disk));
        }
    }
}
