//! `io.max`, `io.cost` and `io.latency` in the event loop: bios that wait, and the worker that submits them when allowed.

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::{CpuId, Instant, Nanos};
use hoistway_blk::request::Request;
use hoistway_blk::watch::Probe;
use hoistway_measure::{IoCostGroup, IoCostSummary, IoLatencyGroup, IoLatencySummary};

use super::{Simulation, wake};
use crate::cpu::Cpus;
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::events::{Event, EventQueue, Kind};
use crate::identity::{Sleeper, submitting_task};
use crate::task::Task;
use crate::throttling::Hold;

impl SimulatedDisk {
    /// Throttles the bio that a task is about to submit. If it has to wait, its release has to be scheduled.
    #[inline(never)]
    pub(in super::super) fn hold(&mut self, now: Instant, task: &mut Task) -> Hold {
        let SimulatedDisk { queue, throttling: Some(throttling), .. } = self else { return Hold::Passes };
        if task.take_admitted() {
            return Hold::Passes;
        }
        if let Some(owner) = task.still_sleeps_for() {
            return Hold::Submitter(owner);
        }
        throttling.hold(now, queue, &mut task.current_disk.submitter)
    }

    /// The same for a task that does not sleep for `io.latency`. Returns whether its bio has to wait.
    pub(in super::super) fn throttles(&mut self, now: Instant, task: &mut Task) -> bool {
        self.hold(now, task) != Hold::Passes
    }

    /// A process sleeps because no tag is free.
    #[cold]
    pub(in super::super) fn tags_ran_out(&mut self) {
        if let Some(throttling) = &mut self.throttling {
            throttling.tags_ran_out();
        }
    }
}

/// Wakes the process that sleeps for a bio until `io.latency` admits it. Returns the bio if none does.
fn hand_over(now: Instant, bio: Bio, tasks: &mut [Task], (cpus, events): (&mut Cpus, &mut EventQueue)) -> Option<Bio> {
    let task = submitting_task(&bio).map(|task| &mut tasks[task as usize]);
    let Some(task) = task.filter(|task| task.sleeps_for(bio.owner)) else { return Some(bio) };
    task.admit(bio);
    wake(now, task, cpus, events);
    None
}

impl<P: Probe> Simulation<'_, P> {
    /// Notifies the controllers of a disk of a completed request, and wakes the processes whose I/Os may pass now. The request comes without
    /// its `Rq`, which would have to leave its register in runs without limits.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn completed_under_limits(&mut self, disk: u32, rq: &Request) {
        let Simulation { now, tasks, cpus, events, disks, .. } = self;
        let SimulatedDisk { queue, throttling: Some(throttling), .. } = &mut disks[disk as usize] else { return };
        let due =
            throttling.completed(*now, queue, rq, &mut |bio| hand_over(*now, bio, tasks, (&mut *cpus, &mut *events)));
        if let Some(due) = due {
            self.events.push(due, Event::new(Kind::Actor, Sleeper::Limits(disk).waiter().0));
        }
    }

    pub(in super::super) fn schedule_release(&mut self, disk: u32) {
        let due = self.disks[disk as usize].throttling.as_mut().and_then(|throttling| throttling.schedule_next());
        if let Some(due) = due {
            self.events.push(due.max(self.now), Event::new(Kind::Actor, Sleeper::Limits(disk).waiter().0));
        }
    }

    /// Has a process sleep in its submission until `io.latency` admits the bio of this owner.
    #[cold]
    pub(in super::super) fn sleep_for_latency(&mut self, number: u32, owner: u64) {
        let task = &mut self.tasks[number as usize];
        task.sleep_for(owner);
        let disk = task.current_disk.disk;
        if task.current_disk.submitter.is_plugged() || task.has_other_disks() {
            self.flush_plugs(number);
        }
        self.schedule_release(disk);
    }

    /// Runs the worker that submits a device's throttled bios.
    pub(super) fn release(&mut self, disk: u32) {
        let (now, cpu) = (self.clock.now, CpuId(0));
        self.probe.enter(disk, None);
        self.begin_call(disk, cpu);
        let Simulation { tasks, cpus, events, disks, caller, probe, meter, .. } = self;
        let SimulatedDisk { queue, driver, throttling, .. } = &mut disks[disk as usize];
        let Some(throttling) = throttling else { return };
        let mut cx = caller.cx::<Machine<P>>(now, cpu, driver, probe, meter);
        let has_sent_all =
            throttling.send(&mut cx, queue, &mut |bio| hand_over(now.at, bio, tasks, (&mut *cpus, &mut *events)));
        self.settle(disk, cpu);
        if has_sent_all {
            self.schedule_release(disk);
        }
    }

    /// What `io.cost` did on each device that has it, until now.
    pub(in super::super) fn io_cost_summaries(&self) -> Vec<IoCostSummary> {
        let names = self.workload.files.iter();
        let with_cost = self.disks.iter().zip(names).filter_map(|(disk, name)| {
            let io_cost = disk.throttling.as_ref()?.io_cost.as_ref().filter(|io_cost| io_cost.qos().is_enabled)?;
            let group = |(path, id): (&str, _)| {
                let cost = io_cost.group_cost(self.now, id);
                IoCostGroup {
                    cgroup: path.to_owned(),
                    weight: io_cost.weight(id),
                    device_time_ms: cost.device_time.as_secs_f64() * 1e3,
                    throttled_ms: cost.throttled.as_secs_f64() * 1e3,
                    delayed: cost.delayed,
                }
            };
            Some(IoCostSummary {
                disk: name.clone(),
                qos: io_cost.qos().to_string(),
                model: io_cost.model().to_string(),
                mean_rate_percent: f64::from(io_cost.mean_rate(self.now).0) / 100.0,
                groups: self.cgroups.paths().map(group).collect(),
            })
        });
        with_cost.collect()
    }

    /// Schedules the worker of a device's limits.
    pub(super) fn schedule_limit_worker(&mut self, disk: u32) {
        let at = self.worker_ready_at(disk);
        self.events.push(at, Event::new(Kind::Actor, Sleeper::Limits(disk).waiter().0));
    }

    /// What `io.latency` did on each device that has it, until now.
    pub(in super::super) fn io_latency_summaries(&self) -> Vec<IoLatencySummary> {
        let us = |time: Nanos| time.as_secs_f64() * 1e6;
        let with_targets = self.disks.iter().zip(&self.workload.files).filter_map(|(disk, name)| {
            let io_latency = disk.throttling.as_ref()?.io_latency.as_ref()?;
            let group = |(path, id): (&str, _)| {
                let figures = io_latency.group_latency(self.now, id);
                IoLatencyGroup {
                    cgroup: path.to_owned(),
                    target_us: (figures.target.unwrap_or_default().0 / 1000) as u32,
                    depth: figures.depth,
                    avg_lat_us: us(figures.average),
                    win_ms: us(figures.window) / 1e3,
                    use_delay: figures.use_delay,
                    delay_us: us(figures.delay),
                    lowest_depth: figures.lowest_depth,
                    windows: figures.windows,
                    missed: figures.missed,
                    throttled_ms: us(figures.throttled) / 1e3,
                    delayed: figures.delayed,
                }
            };
            Some(IoLatencySummary { disk: name.clone(), groups: self.cgroups.paths().map(group).collect() })
        });
        with_targets.collect()
    }
}
