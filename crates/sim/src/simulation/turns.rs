//! Exclusive dispatch: one CPU at a time dispatches from a scheduler, and then handles work that others left to it
//! meanwhile.
//!
//! In real time that CPU loops. Here its call is carried out in one event and is already over when another CPU comes
//! within its duration, so the next round is a separate event at the end of that duration.

use hoistway_blk::caller::BlockQueue;
use hoistway_blk::ground::{CpuId, HctxId, Instant};
use hoistway_blk::watch::Probe;
use hoistway_legacy::AnyQueue;

use super::Simulation;
use crate::events::{Event, Kind};
use crate::locks::DelegatedWork;

impl<P: Probe> Simulation<'_, P> {
    /// Schedules work that was left to other CPUs: another round of the dispatching CPU, and additional time of the
    /// inserting CPU.
    #[cold]
    pub(super) fn schedule_delegated_work(&mut self, disk: u32, DelegatedWork { dispatcher, inserter }: DelegatedWork) {
        let device = &mut self.disks[disk as usize];
        if let Some((cpu, at)) = dispatcher.filter(|&(_, at)| device.next_round < at) {
            device.next_round = at;
            self.events.push(at, Event::new(Kind::Round, disk).with_detail(cpu.0));
        }
        if let Some((cpu, took)) = inserter.filter(|_| device.is_used_by_tasks) {
            self.cpus.spend(self.now, cpu, took);
            self.tasks[self.last_submitter as usize].charge(self.now, took);
        }
    }

    /// Runs another round of the CPU that dispatches from a disk's scheduler.
    pub(super) fn continue_dispatching(&mut self, disk: u32, cpu: CpuId) {
        let hctx = match &self.disks[disk as usize].queue {
            AnyQueue::Mq(queue) => queue.hctx_of(cpu),
            AnyQueue::Legacy(_) => HctxId(0),
        };
        self.disks[disk as usize].next_round = Instant::ZERO;
        self.with_queue(disk, cpu, |queue, cx| queue.run_hctx(cx, hctx));
        self.settle(disk, cpu);
        if self.disks[disk as usize].is_used_by_tasks {
            self.charge_lock_time(cpu, self.last_submitter);
        }
    }
}
