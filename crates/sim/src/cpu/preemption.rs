//! Which task gives way to which on a CPU that several want, and when.
//!
//! A task that wakes and is owed time goes before the one that runs (`fair`): at once, as soon as the interrupt that woke it is over, if that
//! task is outside of a system call, else when its call returns. The rest of its step is done when it has its CPU again.
//! Those that one interrupt wakes are all there before one is chosen.

use hoistway_blk::ground::{CpuId, Instant, Nanos};

use super::{Cpu, Cpus};
use crate::fair::Wait;
use crate::task::Task;

/// The last part of the CPU time of a submission is inside of a system call, where a task does not give way: assumed.
const NON_PREEMPTIBLE_PARTS: u64 = 4;

/// What comes of a task that wants a CPU.
pub(crate) struct Enqueued {
    /// The task that was in the middle of its turn has been stopped, with this much of its step to do.
    pub(crate) stopped: Option<(u32, Nanos)>,
    /// When to give the CPU to the next task, if that is not set yet.
    pub(crate) next: Option<Instant>,
}

impl Cpu {
    /// What is left to do for a task that woke on a free CPU, and that only interrupts have kept from running by now.
    fn remaining_entry_time(&self, now: Instant, task: &Task) -> Option<Nanos> {
        let began = Instant(now.0.saturating_sub(task.entry.0));
        if self.is_taken || !self.waiting.is_empty() || self.turn_ended > began {
            return None;
        }
        let late = self.free_at.since(began).min(Nanos(self.interrupted.0 - task.interrupted.0));
        Some((now + late).since(self.free_at.max(now)))
    }

    /// A task that waits in the queue is chosen once more, now: the one that has run has been put off.
    fn reschedule_waiting(&mut self, now: Instant) -> Option<Instant> {
        self.free_at = now.max(self.interrupts_until);
        let (task, wait) = self.waiting.next()?;
        self.setting += 1;
        Some(self.switch_to_task(task, false, (now, now), [wait.entry + wait.switch, wait.in_call]))
    }
}

impl Cpus {
    /// The last part of what a task does first, or next, in which it is in a system call.
    pub(super) fn in_call(&self, task: &Task) -> Nanos {
        if task.sleeps_for_tag() {
            task.entry
        } else {
            Nanos(self.submit.0 / NON_PREEMPTIBLE_PARTS + self.extra_page_pin_time(task).0)
        }
    }

    /// A task wants its CPU.
    pub(crate) fn enqueue(&mut self, now: Instant, task: &mut Task) -> Enqueued {
        let (slice, switch, in_call) = (self.slice, self.late_switch, self.in_call(task));
        let on = self.on(task.cpu);
        let has_just_chosen = on.coming.is_some_and(|coming| coming.began == now && !coming.is_outside_run_queue);
        if on.is_taken {
            on.waiting.count(now, on.turn_began, slice);
        } else if let Some(coming) = on.coming.as_mut().filter(|_| on.awake_at <= now && !has_just_chosen) {
            // It is doing what it does first.
            if !std::mem::replace(&mut coming.is_outside_run_queue, true) {
                on.waiting.runs(coming.began, coming.task);
            }
            on.waiting.count(now, coming.began, slice);
        }
        let wait = match on.remaining_entry_time(now, task) {
            Some(left) => Wait { since: now, entry: left, switch: Nanos::ZERO, in_call },
            None => {
                if task.switch > Nanos::ZERO {
                    task.switch = switch.draw(&mut task.wake_random);
                }
                Wait { since: now, entry: task.entry, switch: task.switch, in_call }
            }
        };
        on.waiting.wakes(task.number, task.lag_ns, slice, wait);
        if has_just_chosen {
            on.coming = None;
            return Enqueued { stopped: None, next: on.reschedule_waiting(now) };
        }
        if on.waiting.preempted().is_some() { self.stop(now, task.cpu) } else { self.set_next(now, task.cpu) }
    }

    fn set_next(&mut self, now: Instant, cpu: CpuId) -> Enqueued {
        Enqueued { stopped: None, next: self.set(now, cpu) }
    }

    /// The task that runs on a CPU gives way, unless it is in a system call.
    fn stop(&mut self, now: Instant, cpu: CpuId) -> Enqueued {
        let (slice, switch) = (self.slice, self.switch);
        let on = self.on(cpu);
        let (task, until, in_call) = match on.coming {
            Some(coming) => (coming.task, on.free_at, coming.in_call),
            None => (on.task, on.task_until, on.in_call),
        };
        let left = until.since(now);
        if left <= in_call {
            return self.set_next(now, cpu);
        }
        on.waiting.preempt_task(task, slice, Wait { since: now, entry: left, switch, in_call });
        let was_taken = std::mem::take(&mut on.is_taken);
        if was_taken {
            (on.task_until, on.turn_ended) = (now, now);
        }
        on.coming = None;
        Enqueued { stopped: was_taken.then_some((task, left)), next: on.reschedule_waiting(now) }
    }

    /// Whether others go before a task that is in the middle of its turn, and outside of a system call.
    #[inline]
    pub(super) fn is_to_be_preempted(&mut self, now: Instant, task: &Task) -> bool {
        let slice = self.slice;
        let on = self.on(task.cpu);
        if on.waiting.is_empty() {
            return false;
        }
        on.waiting.count(now, on.turn_began, slice);
        on.waiting.preempted().is_some() || on.waiting.slice_is_over()
    }

    /// A task in the middle of its turn waits until others have had its CPU. Returns when the first of them has it.
    pub(super) fn preempt_task(&mut self, now: Instant, task: &mut Task) -> Option<Instant> {
        task.switch = self.late_switch.draw(&mut task.wake_random);
        let in_call = self.in_call(task);
        let (slice, wait) = (self.slice, Wait { since: now, entry: task.entry, switch: task.switch, in_call });
        let on = self.on(task.cpu);
        on.waiting.preempt_task(task.number, slice, wait);
        on.end_turn(now, task);
        self.set(now, task.cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NextTurn, SLICE};
    use super::*;
    use crate::host::Host;

    const CPU: CpuId = CpuId(0);

    /// Task 1 has woken alone, and does until 2000 what it does first, from 1700 on in a system call; task 2 wakes then, and is owed time.
    fn one_runs_and_another_wakes(at: u64) -> (Cpus, Enqueued) {
        let text =
            "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 0\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n";
        let mut cpus = Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 1, 1);
        let (now, began) = (Instant(at), Instant(1000));
        let on = cpus.on(CPU);
        on.switch_to_task(1, true, (began, began), [Nanos(1000), Nanos(300)]);
        on.waiting.count(now, began, SLICE);
        let wait = Wait { since: now, entry: Nanos(50), switch: Nanos(7), in_call: Nanos(50) };
        on.waiting.wakes(2, 500, SLICE, wait);
        assert!(on.waiting.preempted().is_some());
        let enqueued = cpus.stop(now, CPU);
        (cpus, enqueued)
    }

    #[test]
    fn a_task_that_is_owed_time_preempts_at_once_and_the_other_resumes_later() {
        let (mut cpus, enqueued) = one_runs_and_another_wakes(1200);
        assert_eq!(enqueued.next, Some(Instant(1257)));
        assert!(enqueued.stopped.is_none(), "its turn has not begun");
        let setting = cpus.on(CPU).setting;
        assert!(
            matches!(cpus.next(Instant(1257), CPU, setting - 1), NextTurn::NoTask),
            "what was set before counts no more"
        );
        assert!(matches!(cpus.next(Instant(1257), CPU, setting), NextTurn::Run(2)));
        cpus.on(CPU).waiting.sleeps(2);
        assert_eq!(cpus.set(Instant(1300), CPU), Some(Instant(1300 + 800)));
    }

    #[test]
    fn a_task_is_not_preempted_in_a_system_call() {
        let (mut cpus, enqueued) = one_runs_and_another_wakes(1750);
        assert_eq!(enqueued.next, None);
        let setting = cpus.on(CPU).setting;
        assert!(matches!(cpus.next(Instant(2000), CPU, setting), NextTurn::Run(1)));
        assert!(cpus.on(CPU).waiting.preempted().is_some(), "it does when it returns");
    }
}
