//! Limits of cgroups in the event loop: what they keep, and the worker that sends it when it may go.

use hoistway_blk::ground::{CpuId, Instant};
use hoistway_blk::watch::Probe;

use super::Simulation;
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::events::{Event, Kind};
use crate::identity::Sleeper;
use crate::task::Task;

impl SimulatedDisk {
    /// Whether the bio that a task is about to submit is kept by a limit. If so its release has to be set.
    pub(in super::super) fn keeps(&mut self, now: Instant, task: &mut Task) -> bool {
        let SimulatedDisk { front, throttling: Some(throttling), .. } = self else { return false };
        throttling.keeps(now, front, &mut task.lane.submitter)
    }
}

impl<P: Probe> Simulation<'_, P> {
    pub(in super::super) fn set_release(&mut self, disk: u32) {
        let due = self.disks[disk as usize].throttling.as_mut().and_then(|throttling| throttling.next_setting());
        if let Some(due) = due {
            self.events.push(due.max(self.now), Event::of(Kind::Actor, Sleeper::Limits(disk).waiter().0));
        }
    }

    /// The worker of a device's limits sends what may go.
    pub(super) fn release(&mut self, disk: u32) {
        let (now, cpu) = (self.clock.now, CpuId(0));
        self.probe.enter(disk, None);
        self.begin_call(disk, cpu);
        let SimulatedDisk { front, driver, throttling, .. } = &mut self.disks[disk as usize];
        let Some(throttling) = throttling else { return };
        let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
        let has_sent_all = throttling.send(&mut cx, front);
        self.settle(disk, cpu);
        if has_sent_all {
            self.set_release(disk);
        }
    }

    /// The worker of a device's limits comes as soon as it can.
    pub(super) fn set_worker_of_limits(&mut self, disk: u32) {
        let at = self.worker_ready_at(disk);
        self.events.push(at, Event::of(Kind::Actor, Sleeper::Limits(disk).waiter().0));
    }
}
