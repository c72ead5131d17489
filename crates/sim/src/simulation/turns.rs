//! One CPU at a time asks a scheduler for requests: whoever does looks for what others have left to it meanwhile.
//!
//! In real time it goes round its loop once more. Here its call was carried out at one moment and is over when somebody else
//! comes in the middle of the time that it takes, so that its next round has an event of its own, at the end of that time.
//!
//! Whoever has to wait for the lock before it asks breaks its run off, and goes on with it when that is over.

use hoistway_blk::{BlockQueue, CpuId, HctxId, Instant, Nanos, Probe};
use hoistway_legacy::Front;

use super::Simulation;
use crate::disk::{BrokenOff, Disk};
use crate::driver::Machine;
use crate::events::{Event, Kind};
use crate::locks::Left;

impl<P: Probe> Simulation<'_, P> {
    /// Work of a disk was left to other CPUs: who asks is told, and who inserts has taken longer.
    #[cold]
    pub(super) fn leave_to(&mut self, disk: u32, Left { asker, inserter, later }: Left) {
        let on = &mut self.disks[disk as usize];
        if let Some(later) = later {
            let run = BrokenOff { cpu: later.cpu, hctx: later.hctx };
            on.broken_off.push(run);
            let event = Event::of(Kind::Ask, disk).about(run.number());
            self.events.push(later.at, event.with_setting(u32::try_from(later.granted.0).unwrap_or(u32::MAX)));
        }
        if let Some((cpu, at)) = asker.filter(|&(_, at)| on.next_round < at) {
            on.next_round = at;
            self.events.push(at, Event::of(Kind::Round, disk).about(cpu.0));
        }
        if let Some((cpu, took)) = inserter.filter(|_| on.is_used_by_tasks) {
            self.cpus.spend(self.now, cpu, took);
            self.tasks[self.last_submitter as usize].charge(self.now, took);
        }
    }

    /// A CPU that was asking a disk's scheduler for requests goes on with it.
    pub(super) fn go_round(&mut self, disk: u32, cpu: CpuId) {
        let hctx = match &self.disks[disk as usize].front {
            Front::Mq(queue) => queue.hctx_of(cpu),
            Front::Legacy(_) => HctxId(0),
        };
        self.disks[disk as usize].next_round = Instant::ZERO;
        if self.disks[disk as usize].broken_off.iter().any(|run| run.cpu == cpu) {
            // It looks again anyway.
            return;
        }
        self.with_front(disk, cpu, |front, cx| front.run_hctx(cx, hctx));
        self.settle(disk, cpu);
        if self.disks[disk as usize].is_used_by_tasks {
            self.pay_for_locks(cpu, self.last_submitter);
        }
    }

    /// A run that was broken off goes on. Its CPU has the scheduler's lock from now on for as long as it was granted, or comes for it.
    pub(super) fn ask(&mut self, disk: u32, run: BrokenOff, granted: Nanos) {
        let (now, BrokenOff { cpu, hctx }) = (self.clock.now, run);
        self.probe.enter(disk, None);
        let Disk { front, driver, section, broken_off, .. } = &mut self.disks[disk as usize];
        if let Some(place) = broken_off.iter().position(|other| *other == run) {
            broken_off.swap_remove(place);
        }
        if granted > Nanos::ZERO {
            self.meter.begin_granted(self.now, cpu, *section, granted);
        } else {
            self.meter.begin(self.now, cpu, *section);
        }
        let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
        front.run_hctx(&mut cx, hctx);
        self.meter.end_granted();
        self.settle(disk, cpu);
        let spent = self.meter.spent();
        if spent > Nanos::ZERO && self.disks[disk as usize].is_used_by_tasks {
            let task = self.cpus.goes_on_with_run(self.now, cpu, spent);
            self.tasks[task as usize].charge(self.now, spent);
        }
    }
}
