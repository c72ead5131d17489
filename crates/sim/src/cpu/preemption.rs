//! Wake-up preemption: when a woken task replaces the running one.
//!
//! A woken task that is owed CPU time (`fair`) preempts the running task as soon as the interrupt that woke it is over, or, if the running
//! task is in a system call, when that call returns. The preempted task finishes its step when it next has the CPU. All tasks that one
//! interrupt wakes are queued before one of them is chosen.

use hoistway_blk::ground::{CpuId, Instant, Nanos};

use super::{Cpu, Cpus};
use crate::fair::Wait;
use crate::task::Task;

/// One part in this many at the end of a submission's CPU time runs inside the system call, where a task is not preempted: assumed.
const NON_PREEMPTIBLE_PARTS: u64 = 4;

/// The result of queueing a task on a CPU.
pub(crate) struct Enqueued {
    /// The task that was preempted in the middle of its turn, and the rest of its step.
    pub(crate) stopped: Option<(u32, Nanos)>,
    /// Time of the switch to the next task, if an event has to be set for it.
    pub(crate) next: Option<Instant>,
}

impl Cpu {
    /// Rest of the first step of a task that woke on a free CPU and that only interrupts have delayed; `None` if other tasks used the CPU.
    fn remaining_entry_time(&self, now: Instant, task: &Task) -> Option<Nanos> {
        let began = Instant(now.0.saturating_sub(task.entry.0));
        // A task that arrives while the CPU is in the first step of another one has its whole first step before it.
        if self.in_turn || self.next_task.is_some() || !self.waiting.is_empty() || self.turn_ended > began {
            return None;
        }
        let late = self.free_at.since(began).min(Nanos(self.interrupted.0 - task.interrupted.0));
        Some((now + late).since(self.free_at.max(now)))
    }

    /// Chooses the next task again, now that the running one has been preempted.
    fn reschedule_waiting(&mut self, now: Instant) -> Option<Instant> {
        self.free_at = now.max(self.interrupts_until);
        let (task, wait) = self.waiting.next()?;
        self.setting += 1;
        Some(self.switch_to_task(task, false, (now, now), [wait.entry + wait.switch, wait.in_call]))
    }
}

impl Cpus {
    /// Final part of a task's first or next step that runs inside a system call.
    pub(super) fn in_call(&self, task: &Task) -> Nanos {
        if task.sleeps_in_submission() {
            task.entry
        } else {
            Nanos(self.submit.0 / NON_PREEMPTIBLE_PARTS + self.extra_page_pin_time(task).0)
        }
    }

    /// Adds a woken task to the run queue of its CPU, and preempts the running task if the woken one goes first.
    pub(crate) fn enqueue(&mut self, now: Instant, task: &mut Task) -> Enqueued {
        let (slice, switch, in_call) = (self.slice, self.late_switch, self.in_call(task));
        let state = self.cpu_mut(task.cpu);
        let has_just_chosen = state.next_task.is_some_and(|next| next.began == now && !next.is_outside_run_queue);
        if state.in_turn {
            state.waiting.charge_running(now, state.turn_began, slice);
        } else if let Some(next) = state.next_task.as_mut().filter(|_| state.awake_at <= now && !has_just_chosen) {
            // The chosen task is in its first step.
            if !std::mem::replace(&mut next.is_outside_run_queue, true) {
                state.waiting.start_running(next.began, next.task);
            }
            state.waiting.charge_running(now, next.began, slice);
        }
        let wait = match state.remaining_entry_time(now, task) {
            Some(left) => Wait { since: now, entry: left, switch: Nanos::ZERO, in_call },
            None => {
                if task.switch > Nanos::ZERO {
                    task.switch = switch.draw(&mut task.wake_random);
                }
                Wait { since: now, entry: task.entry, switch: task.switch, in_call }
            }
        };
        state.waiting.add_woken(task.number, task.lag_ns, slice, wait);
        if has_just_chosen {
            state.next_task = None;
            return Enqueued { stopped: None, next: state.reschedule_waiting(now) };
        }
        if state.waiting.preempted().is_some() {
            self.preempt_running(now, task.cpu)
        } else {
            self.set_next(now, task.cpu)
        }
    }

    fn set_next(&mut self, now: Instant, cpu: CpuId) -> Enqueued {
        Enqueued { stopped: None, next: self.choose_next(now, cpu) }
    }

    /// Preempts the running task of a CPU, unless it is in a system call.
    fn preempt_running(&mut self, now: Instant, cpu: CpuId) -> Enqueued {
        let (slice, switch) = (self.slice, self.switch);
        let state = self.cpu_mut(cpu);
        let (task, until, in_call) = match state.next_task {
            Some(next) => (next.task, state.free_at, next.in_call),
            None => (state.task, state.task_until, state.in_call),
        };
        let left = until.since(now);
        if left <= in_call {
            return self.set_next(now, cpu);
        }
        state.waiting.preempt_task(task, slice, Wait { since: now, entry: left, switch, in_call });
        let was_taken = std::mem::take(&mut state.in_turn);
        if was_taken {
            (state.task_until, state.turn_ended) = (now, now);
        }
        state.next_task = None;
        Enqueued { stopped: was_taken.then_some((task, left)), next: state.reschedule_waiting(now) }
    }

    /// Whether to preempt a task that is in the middle of its turn and outside a system call.
    #[inline]
    pub(super) fn is_to_be_preempted(&mut self, now: Instant, task: &Task) -> bool {
        let slice = self.slice;
        let state = self.cpu_mut(task.cpu);
        if state.waiting.is_empty() {
            return false;
        }
        state.waiting.charge_running(now, state.turn_began, slice);
        state.waiting.preempted().is_some() || state.waiting.slice_is_over()
    }

    /// Preempts a task in the middle of its turn. Returns the end of the next task's first step.
    pub(super) fn preempt_task(&mut self, now: Instant, task: &mut Task) -> Option<Instant> {
        task.switch = self.late_switch.draw(&mut task.wake_random);
        let in_call = self.in_call(task);
        let (slice, wait) = (self.slice, Wait { since: now, entry: task.entry, switch: task.switch, in_call });
        let state = self.cpu_mut(task.cpu);
        state.waiting.preempt_task(task.number, slice, wait);
        state.end_turn(now, task);
        self.choose_next(now, task.cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NextTurn, SLICE};
    use super::*;
    use crate::host::Host;

    const CPU: CpuId = CpuId(0);

    /// Task 1 woke alone; its first step lasts until 2000, from 1700 on in a system call. Task 2, which is owed time, wakes at `at`.
    fn one_runs_and_another_wakes(wakes_at: u64) -> (Cpus, Enqueued) {
        let text =
            "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 0\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n";
        let mut cpus = Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 1, 1);
        let (now, began) = (Instant(wakes_at), Instant(1000));
        let state = cpus.cpu_mut(CPU);
        state.switch_to_task(1, true, (began, began), [Nanos(1000), Nanos(300)]);
        state.waiting.charge_running(now, began, SLICE);
        let wait = Wait { since: now, entry: Nanos(50), switch: Nanos(7), in_call: Nanos(50) };
        state.waiting.add_woken(2, 500, SLICE, wait);
        assert!(state.waiting.preempted().is_some());
        let enqueued = cpus.preempt_running(now, CPU);
        (cpus, enqueued)
    }

    #[test]
    fn a_task_that_is_owed_time_preempts_at_once_and_the_other_resumes_later() {
        let (mut cpus, enqueued) = one_runs_and_another_wakes(1200);
        assert_eq!(enqueued.next, Some(Instant(1257)));
        assert!(enqueued.stopped.is_none(), "its turn has not begun");
        let setting = cpus.cpu_mut(CPU).setting;
        assert!(
            matches!(cpus.next(Instant(1257), CPU, setting - 1), NextTurn::NoTask),
            "what was set before counts no more"
        );
        assert!(matches!(cpus.next(Instant(1257), CPU, setting), NextTurn::Run(2)));
        cpus.cpu_mut(CPU).waiting.put_to_sleep(2);
        assert_eq!(cpus.choose_next(Instant(1300), CPU), Some(Instant(1300 + 800)));
    }

    #[test]
    fn a_task_is_not_preempted_in_a_system_call() {
        let (mut cpus, enqueued) = one_runs_and_another_wakes(1750);
        assert_eq!(enqueued.next, None);
        let setting = cpus.cpu_mut(CPU).setting;
        assert!(matches!(cpus.next(Instant(2000), CPU, setting), NextTurn::Run(1)));
        assert!(cpus.cpu_mut(CPU).waiting.preempted().is_some(), "it does when it returns");
    }
}
