//! Runs of hardware queues that a call leaves to a later one: because it has waited for the scheduler's lock, or because one CPU at a
//! time dispatches and then handles work that others left to it meanwhile.
//!
//! In real time other CPUs come to the lock while a call waits, and a dispatching CPU loops. Here a call is carried out in one event and is
//! already over when another CPU comes within its duration, so what follows is a separate event at the end of that duration.

use hoistway_blk::caller::BlockQueue;
use hoistway_blk::ground::{CpuId, HctxId, Instant};
use hoistway_blk::watch::Probe;
use hoistway_legacy::AnyQueue;

use super::Simulation;
use crate::events::{Event, Kind};
use crate::locks::DelegatedWork;

/// Value of an event's setting: the run is of the CPU's own hardware queue. Otherwise it is the number of the hardware queue and 1.
const OWN: u32 = 0;

impl<P: Probe> Simulation<'_, P> {
    /// Schedules work that a call has left: the rest of its run, another round of the dispatching CPU, and additional time of the
    /// inserting CPU.
    #[cold]
    pub(super) fn schedule_delegated_work(&mut self, disk: u32, delegated: DelegatedWork) {
        let DelegatedWork { dispatcher, inserter, postponed } = delegated;
        let device = &mut self.disks[disk as usize];
        if let Some((cpu, hctx, at)) = postponed {
            device.next_round = device.next_round.max(at);
            let setting = u32::from(hctx.0) + 1;
            self.events.push(at, Event::new(Kind::Round, disk).with_detail(cpu.0).with_setting(setting));
        }
        if let Some((cpu, at)) = dispatcher.filter(|&(_, at)| device.next_round < at) {
            device.next_round = at;
            self.events.push(at, Event::new(Kind::Round, disk).with_detail(cpu.0).with_setting(OWN));
        }
        if let Some((cpu, took)) = inserter.filter(|_| device.is_used_by_tasks) {
            self.cpus.spend(self.now, cpu, took);
            self.tasks[self.last_submitter as usize].charge(self.now, took);
        }
    }

    /// Continues a run of a disk's hardware queue on this CPU.
    #[cold]
    pub(super) fn continue_run(&mut self, disk: u32, cpu: CpuId, setting: u32) {
        let device = &mut self.disks[disk as usize];
        if device.next_round <= self.now {
            device.next_round = Instant::ZERO;
        }
        let hctx = match (&device.queue, setting) {
            (AnyQueue::Mq(queue), OWN) => queue.hctx_of(cpu),
            (AnyQueue::Mq(_), number) => HctxId((number - 1) as u16),
            (AnyQueue::Legacy(_), _) => HctxId(0),
        };
        self.with_queue(disk, cpu, |queue, cx| queue.run_hctx(cx, hctx));
        self.settle(disk, cpu);
        if self.disks[disk as usize].is_used_by_tasks {
            self.charge_lock_time(cpu, self.last_submitter);
        }
    }
}
