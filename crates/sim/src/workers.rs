//! The workers of a disk: a few us after one is called it runs, on a CPU of the hardware queue that it is for.

use hoistway_blk::{Agenda, BlockQueue, CpuId, Due, HctxId, Instant, Local, Workers};
use hoistway_legacy::Front;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cpu::Cpus;
use crate::disk::Disk;
use crate::events::{Event, EventQueue, Kind};
use crate::span::Span;

/// The workers of a disk at a moment, and the events that bring them.
pub(crate) struct DiskWorkers<'a> {
    now: Instant,
    disk: u32,
    /// How long they take if they run on CPUs of the host below guests.
    host_worker: Option<Span>,
    /// They need not be called: whoever asks for a run makes it.
    are_here: bool,
    random: &'a mut Xoshiro256PlusPlus,
    cpus: &'a Cpus,
    events: &'a mut EventQueue,
}

impl Disk {
    /// What is due on its queue, the queue, and its workers.
    #[inline]
    pub(crate) fn at_work<'a>(
        &'a mut self,
        disk: u32,
        now: Instant,
        cpus: &'a Cpus,
        events: &'a mut EventQueue,
    ) -> (&'a mut Agenda, &'a Front<Local>, DiskWorkers<'a>) {
        let Disk { agenda, front, worker_random: random, host_worker, submitter_dispatches, .. } = self;
        let (host_worker, are_here) = (*host_worker, *submitter_dispatches);
        (agenda, front, DiskWorkers { now, disk, host_worker, are_here, random, cpus, events })
    }

    /// When a worker runs that is called now, for no hardware queue in particular.
    pub(crate) fn worker_comes(&mut self, now: Instant, cpus: &Cpus, events: &mut EventQueue) -> Instant {
        let (_, front, mut workers) = self.at_work(0, now, cpus, events);
        workers.come(front.worker_cpu(HctxId(0)))
    }
}

impl Workers for DiskWorkers<'_> {
    #[inline]
    fn come(&mut self, cpu: CpuId) -> Instant {
        if self.are_here {
            return self.now;
        }
        match self.host_worker {
            Some(worker) => self.now + worker.draw(self.random),
            None => self.cpus.worker_runs(self.now, cpu, self.random),
        }
    }

    #[inline]
    fn come_by(&self) -> Instant {
        match self.host_worker {
            Some(worker) => self.now + worker.max(),
            None => self.cpus.worker_comes_by(self.now),
        }
    }

    #[inline]
    fn set(&mut self, at: Instant, due: Due, setting: u32) {
        let event = Event::of(Kind::Due, self.disk).about(due.place() as u32).with_setting(setting);
        self.events.push(at.max(self.now), event);
    }
}
