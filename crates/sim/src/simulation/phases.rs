//! Start and end of tasks.

use hoistway_blk::ground::{CpuId, Nanos};
use hoistway_blk::watch::Probe;
use hoistway_load::process::{STEADY_SAMPLE, start_times};

use super::Simulation;
use crate::events::{Event, Kind};
use crate::incidental::shuffle;
use crate::task::Task;

impl<P: Probe> Simulation<'_, P> {
    /// Starts the processes that may start now, in a random order: fio releases them all at once, and each has to wake
    /// up.
    pub(super) fn start_tasks(&mut self) {
        let mut begun: Vec<(CpuId, Nanos, u64)> = Vec::new();
        let order = self.phases.start();
        let schedules = order.iter().map(|&number| &self.workload.processes[number as usize].schedule);
        let mut order: Vec<(u32, Nanos)> = order.iter().copied().zip(start_times(schedules, self.start)).collect();
        shuffle(&mut order, &mut self.starts);
        for (number, delay) in order {
            let process = &self.workload.processes[number as usize];
            let task = &mut self.tasks[number as usize];
            let same_start = begun.iter_mut().find(|(cpu, other, _)| (*cpu, *other) == (task.cpu, delay));
            let rank = match same_start {
                Some((.., count)) => {
                    *count += 1;
                    *count
                }
                None => {
                    begun.push((task.cpu, delay, 0));
                    0
                }
            };
            let spacing = if delay == Nanos::ZERO { self.release } else { self.start };
            let wake_latency = self.cpus.first_wake_latency(&mut self.starts);
            let start = self.now + delay + Nanos(spacing.0 * rank) + wake_latency;
            task.start_at(process, start);
            task.alarm_setting += 1;
            if let Some((check, at)) = self.steady.begin(number, start + process.schedule.ramp) {
                self.events.push(at, Event::new(Kind::Steady, check));
            }
            self.events.push(start, Event::new(Kind::Task, number).with_setting(task.alarm_setting));
        }
    }

    /// Takes a one-second sample for a steady-state check.
    #[cold]
    pub(super) fn take_steady_sample(&mut self, check: u32) {
        let members = self.steady.members(check).iter().map(|&member| &self.tasks[member as usize]);
        if members.clone().all(Task::has_exited) {
            return;
        }
        let done = members.map(Task::done).fold((0, 0), |sum, done| (sum.0 + done.0, sum.1 + done.1));
        if !self.steady.sample(check, done) {
            self.events.push(self.now + STEADY_SAMPLE, Event::new(Kind::Steady, check));
            return;
        }
        for index in 0..self.steady.members(check).len() {
            self.end_task(self.steady.members(check)[index]);
        }
    }

    /// Ends a task, even one that has not started.
    fn end_task(&mut self, number: u32) {
        self.tasks[number as usize].end();
        if self.phases.has_started(number) {
            self.wake(number);
        }
    }

    /// Handles the exit of a task: some tasks end with it (`exitall`), others start.
    #[cold]
    pub(super) fn task_exited(&mut self, number: u32) {
        self.flows.leave(number);
        for other in self.phases.exited(number) {
            self.end_task(other);
        }
        self.start_tasks();
    }
}
