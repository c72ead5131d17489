//! Workers of a disk (kblockd): each runs a few us after it is scheduled. A single hardware queue runs on the scheduling CPU,
//! because its work is not bound to a CPU; with several hardware queues, each rotates over the CPUs that it serves.
//!
//! Used by: `simulation`.
//! Tests: `crates/sim/tests/wake_ups.rs`, `crates/sim/tests/costs.rs`.

use hoistway_blk::caller::{Agenda, BlockQueue, Due, Workers};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Local};
use hoistway_legacy::AnyQueue;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cpu::Cpus;
use crate::disk::SimulatedDisk;
use crate::events::{Event, EventQueue, Kind};
use crate::span::Span;

/// The workers of a disk during a call, and the events that run them.
pub(crate) struct DiskWorkers<'a> {
    now: Instant,
    disk: u32,
    /// The scheduling CPU, if the disk has one hardware queue.
    caller: Option<CpuId>,
    /// For each hardware queue, the CPU of its scheduled run.
    runs_on: &'a mut [CpuId],
    /// CPU of the worker that was scheduled last.
    last_worker_cpu: CpuId,
    /// Their start latency if they run on the host below guests.
    host_worker: Option<Span>,
    /// Whether the CPU that requests a run does it itself.
    runs_inline: bool,
    random: &'a mut Xoshiro256PlusPlus,
    cpus: &'a mut Cpus,
    events: &'a mut EventQueue,
}

impl SimulatedDisk {
    /// The disk's agenda, queue and workers, for a caller on a CPU.
    #[inline]
    pub(crate) fn with_workers<'a>(
        &'a mut self,
        (disk, cpu): (u32, CpuId),
        now: Instant,
        cpus: &'a mut Cpus,
        events: &'a mut EventQueue,
    ) -> (&'a mut Agenda, &'a AnyQueue<Local>, DiskWorkers<'a>) {
        let SimulatedDisk { agenda, queue, worker_random: random, host_worker, submitter_dispatches, runs_on, .. } =
            self;
        let caller = (queue.hw_queues() == 1).then_some(cpu);
        let (host_worker, runs_inline) = (*host_worker, *submitter_dispatches);
        (
            agenda,
            queue,
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

    /// When a worker that is scheduled now runs, for no particular hardware queue.
    pub(crate) fn worker_ready_at(&mut self, now: Instant, cpus: &mut Cpus, events: &mut EventQueue) -> Instant {
        let cpu = self.queue.worker_cpu(HctxId(0), 0);
        self.with_workers((0, cpu), now, cpus, events).2.start_worker(cpu)
    }

    /// The CPU that carries out an entry of the agenda.
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
    fn start_worker(&mut self, cpu: CpuId) -> Instant {
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
        let event = Event::new(Kind::Due, self.disk).with_detail(due.index() as u32).with_setting(setting);
        self.events.push(at.max(self.now), event);
    }
}
