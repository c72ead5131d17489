//! The beginning and the end of tasks.

use hoistway_blk::ground::{CpuId, Nanos};
use hoistway_blk::watch::Probe;
use hoistway_load::process::{STEADY_SAMPLE, start_times};

use super::Simulation;
use crate::events::{Event, Kind};
use crate::incidental::shuffle;
use crate::task::Task;

impl<P: Probe> Simulation<'_, P> {
    /// Starts the processes that may start now, in any order: fio releases them all at once, and each wakes up.
    pub(super) fn start_tasks(&mut self) {
        let mut begun: Vec<(CpuId, Nanos, u64)> = Vec::new();
        let order = self.phases.start();
        let schedules = order.iter().map(|&number| &self.workload.processes[number as usize].schedule);
        let mut order: Vec<(u32, Nanos)> = order.iter().copied().zip(start_times(schedules, self.start)).collect();
        shuffle(&mut order, &mut self.starts);
        for (number, delay) in order {
            let process = &self.workload.processes[number as usize];
            let task = &mut self.tasks[number as usize];
            let before = begun.iter_mut().find(|(cpu, other, _)| (*cpu, *other) == (task.cpu, delay));
            let place = match before {
                Some((.., count)) => {
                    *count += 1;
                    *count
                }
                None => {
                    begun.push((task.cpu, delay, 0));
                    0
                }
            };
            let apart = if delay == Nanos::ZERO { self.release } else { self.start };
            let late = self.cpus.first_wake_latency(&mut self.starts);
            let start = self.now + delay + Nanos(apart.0 * place) + late;
            task.start_at(process, start);
            task.alarm_setting += 1;
            if let Some((watched, at)) = self.steady.begin(number, start + process.schedule.ramp) {
                self.events.push(at, Event::of(Kind::Steady, watched));
            }
            self.events.push(start, Event::of(Kind::Task, number).with_setting(task.alarm_setting));
        }
    }

    /// A second of results that are watched for being steady is over.
    #[cold]
    pub(super) fn watch(&mut self, watched: u32) {
        let members = self.steady.members(watched).iter().map(|&member| &self.tasks[member as usize]);
        if members.clone().all(Task::has_exited) {
            return;
        }
        let done = members.map(Task::done).fold((0, 0), |sum, done| (sum.0 + done.0, sum.1 + done.1));
        if !self.steady.sample(watched, done) {
            self.events.push(self.now + STEADY_SAMPLE, Event::of(Kind::Steady, watched));
            return;
        }
        for index in 0..self.steady.members(watched).len() {
            self.end_task(self.steady.members(watched)[index]);
        }
    }

    /// Ends a task, which may not have begun.
    fn end_task(&mut self, number: u32) {
        self.tasks[number as usize].end();
        if self.phases.has_started(number) {
            self.wake(number);
        }
    }

    /// A task has exited: some end with it (`exitall`), others start.
    #[cold]
    pub(super) fn task_exited(&mut self, number: u32) {
        self.flows.leave(number);
        for other in self.phases.exited(number) {
            self.end_task(other);
        }
        self.start_tasks();
    }
}
