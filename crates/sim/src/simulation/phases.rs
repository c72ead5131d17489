//! Which processes run when: phases (`stonewall`), who waits for whom, and who ends whom.

use hoistway_blk::{CpuId, Nanos, Probe};
use hoistway_load::Ends;

use super::Simulation;
use crate::events::{Event, Kind};
use crate::steady_state::SAMPLE;

impl<P: Probe> Simulation<'_, P> {
    /// Starts the processes of the next phase that has any.
    pub(super) fn start_phase(&mut self) {
        while self.running == 0 && self.tasks.iter().any(|task| task.phase() >= self.phase && !task.has_exited) {
            let of_phase = self.tasks.iter().filter(|task| task.phase() == self.phase);
            self.running += of_phase.count() as u32;
            self.phase += 1;
            self.start_tasks();
        }
    }

    /// Starts the processes of this phase that wait for no other.
    pub(super) fn start_tasks(&mut self) {
        let mut begun: Vec<(CpuId, Nanos, u64)> = Vec::new();
        for number in 0..self.tasks.len() {
            let (process, task) = (&self.workload.processes[number], &self.tasks[number]);
            let mut of_all = self.workload.processes.iter().zip(&self.tasks);
            let waits = |job| of_all.any(|(process, task)| process.schedule.job == job && !task.has_exited);
            if task.has_started || task.phase() >= self.phase || process.schedule.wait_for.is_some_and(waits) {
                continue;
            }
            let delay = process.schedule.start_delay;
            let task = &mut self.tasks[number];
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
            let start = self.now + delay + Nanos(apart.0 * place);
            task.has_started = true;
            task.start_at(process, start);
            task.alarm_setting += 1;
            if let Some((watched, at)) = self.steady.begin(number as u32, start + process.schedule.ramp) {
                self.events.push(at, Event::of(Kind::Steady, watched));
            }
            self.events.push(start, Event::of(Kind::Task, task.number).with_setting(task.alarm_setting));
        }
    }

    /// A second of results that are watched for being steady is over.
    #[cold]
    pub(super) fn watch(&mut self, watched: u32) {
        let of = &mut self.steady.watched[watched as usize];
        let done = of.members.iter().map(|&member| self.tasks[member as usize].done());
        let done = done.fold((0, 0), |sum, done| (sum.0 + done.0, sum.1 + done.1));
        let is_over = of.members.iter().all(|&member| self.tasks[member as usize].has_exited);
        if is_over {
            return;
        }
        if !of.sample(done) {
            self.events.push(self.now + SAMPLE, Event::of(Kind::Steady, watched));
            return;
        }
        for index in 0..of.members.len() {
            self.end_task(self.steady.watched[watched as usize].members[index]);
        }
    }

    /// Ends a task, which may not have begun.
    fn end_task(&mut self, number: u32) {
        self.tasks[number as usize].end();
        if self.tasks[number as usize].has_started {
            self.wake(number);
        }
    }

    /// `exitall`: a task that has exited takes others with it.
    pub(super) fn end_others(&mut self, number: u32) {
        let process = &self.workload.processes[number as usize];
        let Some(ends) = process.schedule.ends else { return };
        for other in 0..self.tasks.len() as u32 {
            let of_other = &self.workload.processes[other as usize];
            let is_meant = match ends {
                Ends::Group => of_other.schedule.group == process.schedule.group,
                Ends::Phase => of_other.schedule.phase == process.schedule.phase,
                Ends::All => true,
            };
            if is_meant {
                self.end_task(other);
            }
        }
    }
}
