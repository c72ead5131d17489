//! The workers of a disk: a few us after one is called it runs. The only hardware queue of a disk is run on the CPU of the one that
//! calls, because its work is bound to none; those of several go round the CPUs that their queue serves.

use hoistway_blk::caller::{Agenda, BlockQueue, Due, Workers};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Local};
use hoistway_legacy::AnyQueue;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cpu::Cpus;
use crate::disk::SimulatedDisk;
use crate::events::{Event, EventQueue, Kind};
use crate::span::Span;

/// The workers of a disk at a moment, and the events that bring them.
pub(crate) struct DiskWorkers<'a> {
    now: Instant,
    disk: u32,
    /// The CPU that calls them, if the disk has one hardware queue.
    caller: Option<CpuId>,
    /// Where the runs of hardware queues will be that are set.
    runs_on: &'a mut [CpuId],
    /// Where the worker comes that was called last.
    last_worker_cpu: CpuId,
    /// How long they take if they run on CPUs of the host below guests.
    host_worker: Option<Span>,
    /// They need not be called: the CPU that asks for a run makes it.
    runs_inline: bool,
    random: &'a mut Xoshiro256PlusPlus,
    cpus: &'a mut Cpus,
    events: &'a mut EventQueue,
}

impl SimulatedDisk {
    /// What is due on its queue, the queue, and its workers, for a caller on a CPU.
    #[inline]
    pub(crate) fn with_workers<'a>(
        &'a mut self,
        (disk, cpu): (u32, CpuId),
        now: Instant,
        cpus: &'a mut Cpus,
        events: &'a mut EventQueue,
    ) -> (&'a mut Agenda, &'a AnyQueue<Local>, DiskWorkers<'a>) {
        let SimulatedDisk { agenda, front, worker_random: random, host_worker, submitter_dispatches, runs_on, .. } =
            self;
        let caller = (front.hw_queues() == 1).then_some(cpu);
        let (host_worker, runs_inline) = (*host_worker, *submitter_dispatches);
        (
            agenda,
            front,
            DiskWorkers {
                now,
                disk,
                caller,
                runs_on,
                last_worker_cpu: cpu,
                host_worker,
                runs_inline,
                random,
                cpus,
                events,
            },
        )
    }

    /// When a worker runs that is called now, for no hardware queue in particular.
    pub(crate) fn worker_ready_at(&mut self, now: Instant, cpus: &mut Cpus, events: &mut EventQueue) -> Instant {
        let cpu = self.front.worker_cpu(HctxId(0), 0);
        self.with_workers((0, cpu), now, cpus, events).2.come(cpu)
    }

    /// The CPU of an effect that is due.
    #[inline]
    pub(crate) fn cpu_of(&self, due: Due) -> CpuId {
        match due {
            Due::Run(hctx) => self.runs_on[hctx.index()],
            _ => CpuId(0),
        }
    }
}

impl Workers for DiskWorkers<'_> {
    #[inline]
    fn come(&mut self, cpu: CpuId) -> Instant {
        self.last_worker_cpu = self.caller.unwrap_or(cpu);
        if self.runs_inline {
            return self.now;
        }
        match self.host_worker {
            Some(worker) => self.now + worker.draw(self.random),
            None => self.cpus.worker_runs(self.now, self.last_worker_cpu, self.random),
        }
    }

    #[inline]
    fn called_worker_starts_by(&self) -> Instant {
        match self.host_worker {
            Some(worker) => self.now + worker.max(),
            None => self.cpus.called_worker_ready_by(self.now),
        }
    }

    #[inline]
    fn set(&mut self, at: Instant, due: Due, setting: u32) {
        if let Due::Run(hctx) = due {
            self.runs_on[hctx.index()] = self.last_worker_cpu;
        }
        let event = Event::of(Kind::Due, self.disk).about(due.place() as u32).with_setting(setting);
        self.events.push(at.max(self.now), event);
    }
}
