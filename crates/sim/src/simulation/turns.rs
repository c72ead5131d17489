//! One CPU at a time asks a scheduler for requests, and looks for what others have left to it meanwhile.
//!
//! In real time it repeats its loop. Here its call was carried out at one moment and is over when another
//! comes in the middle of the time that it takes, so that its next round has an event of its own, at the end of that time.

use hoistway_blk::caller::BlockQueue;
use hoistway_blk::ground::{CpuId, HctxId, Instant};
use hoistway_blk::watch::Probe;
use hoistway_legacy::AnyQueue;

use super::Simulation;
use crate::events::{Event, Kind};
use crate::locks::DelegatedWork;

impl<P: Probe> Simulation<'_, P> {
    /// Work of a disk was left to other CPUs: the one that asks is notified, and the one that inserts has taken longer.
    #[cold]
    pub(super) fn schedule_delegated_work(&mut self, disk: u32, DelegatedWork { asker, inserter }: DelegatedWork) {
        let on = &mut self.disks[disk as usize];
        if let Some((cpu, at)) = asker.filter(|&(_, at)| on.next_round < at) {
            on.next_round = at;
            self.events.push(at, Event::of(Kind::Round, disk).about(cpu.0));
        }
        if let Some((cpu, took)) = inserter.filter(|_| on.is_used_by_tasks) {
            self.cpus.spend(self.now, cpu, took);
            self.tasks[self.last_submitter as usize].charge(self.now, took);
        }
    }

    /// A CPU that was asking a disk's scheduler for requests continues.
    pub(super) fn continue_dispatching(&mut self, disk: u32, cpu: CpuId) {
        let hctx = match &self.disks[disk as usize].front {
            AnyQueue::Mq(queue) => queue.hctx_of(cpu),
            AnyQueue::Legacy(_) => HctxId(0),
        };
        self.disks[disk as usize].next_round = Instant::ZERO;
        self.with_front(disk, cpu, |front, cx| front.run_hctx(cx, hctx));
        self.settle(disk, cpu);
        if self.disks[disk as usize].is_used_by_tasks {
            self.charge_lock_time(cpu, self.last_submitter);
        }
    }
}
