//! Wake-ups of tasks.
//!
//! An idle CPU wakes up for the task and chooses which task runs once it is awake: by then others may have been woken, often by the same
//! interrupt, and the first is not always chosen. So a process that has just reaped may take the tag that it freed before the sleeper that
//! was woken for it. The sleeper is then owed CPU time, and goes first next time.
//!
//! A CPU that is awake and busy sees the new task when the interrupt is over.

use hoistway_blk::ground::{Instant, Nanos};

use super::Cpus;
use crate::fair::Wait;
use crate::task::Task;

/// The result of a wake-up.
pub(crate) enum Woken {
    /// The task arrives on its CPU, which is busy, at this time.
    Arrives(Instant),
    /// The CPU wakes up; the task that it chooses completes its first step at this time.
    Chooses(Instant),
    /// The CPU is already waking up for others, whose scheduled event stays valid.
    Joins,
}

impl Cpus {
    /// Wakes a task.
    #[inline]
    pub(crate) fn wake(&mut self, now: Instant, task: &mut Task) -> Woken {
        task.entry = if task.sleeps_in_submission() { self.resume } else { self.submission(task) };
        task.switch = Nanos::ZERO;
        let (spins_since, switch) = (task.spins_since.take(), self.switch);
        let state = self.cpu_mut(task.cpu);
        task.interrupted = state.interrupted;
        if state.task_until > now && state.task == task.number {
            // The task has not slept.
            state.incoming_tasks += u32::from(spins_since.is_none());
            return Woken::Arrives(state.task_until + task.entry);
        }
        if let Some(since) = spins_since {
            let at = state.free_at.max(now) + task.entry;
            task.charge(now, now.since(since));
            return Woken::Arrives(at);
        }
        task.switch = switch;
        if let Some(cpu) = task.placed_elsewhere() {
            self.move_task(task, cpu);
        }
        let state = self.cpu_mut(task.cpu);
        let is_idle = state.is_idle(now);
        let stays = is_idle && !self.is_taken_by_kernel_thread(task);
        // If no other CPU is idle, the kernel thread is assumed to be finished by then.
        if stays || self.migrate_to_idle_cpu(now, task) || is_idle {
            return Woken::Chooses(self.wake_idle_cpu(now, task));
        }
        let state = self.cpu_mut(task.cpu);
        if state.next_task.is_some() && state.awake_at > now {
            return self.join_wakeup(now, task);
        }
        state.incoming_tasks += 1;
        if state.in_turn || state.next_task.is_some() {
            // The CPU is awake, and its scheduler sees the task as soon as the interrupt is over.
            return Woken::Arrives(now + self.complete);
        }
        Woken::Arrives(self.awake(now, task) + task.entry)
    }

    /// When the CPU of a task, which starts to wake up now, is awake.
    #[inline(always)]
    fn awake(&mut self, now: Instant, task: &mut Task) -> Instant {
        let exit_latency = self.exit_latency(now, task.cpu);
        let from = now.max(self.cpus[task.cpu.index()].slept_until);
        from + self.complete + exit_latency + self.wake.draw(&mut task.wake_random)
    }

    /// Wakes an idle CPU for a task. Returns the end of its first step, if no other task arrives meanwhile.
    #[inline(always)]
    pub(super) fn wake_idle_cpu(&mut self, now: Instant, task: &mut Task) -> Instant {
        let (awake, in_call) = (self.awake(now, task), self.in_call(task));
        let state = self.cpu_mut(task.cpu);
        state.awake_at = state.free_at.max(awake);
        state.switch_to_task(task.number, true, (state.awake_at, state.awake_at), [task.entry, in_call])
    }

    /// Adds a task to those that a waking CPU chooses from.
    #[cold]
    fn join_wakeup(&mut self, now: Instant, task: &mut Task) -> Woken {
        task.switch = self.late_switch.draw(&mut task.wake_random);
        let (slice, switch, in_call) = (self.slice, self.switch, self.in_call(task));
        let state = self.cpu_mut(task.cpu);
        let Some(first) = state.next_task.take() else { unreachable!("it wakes up for a task") };
        let (before, awake) = (state.free_at, state.awake_at);
        state.free_at = Instant(before.0 - first.entry.0);
        if first.is_outside_run_queue {
            // A task that woke alone is owed nothing.
            let wait = Wait { since: now, entry: first.entry, switch, in_call: first.in_call };
            state.waiting.add_woken(first.task, 0, slice, wait);
        }
        task.interrupted = state.interrupted;
        let wait = Wait { since: now, entry: task.entry, switch: task.switch, in_call };
        state.waiting.add_woken(task.number, task.lag_ns, slice, wait);
        let Some((chosen, wait)) = state.waiting.next() else { unreachable!("two wait") };
        // The switch is part of the wake-up.
        let at = state.switch_to_task(chosen, false, (awake, awake), [wait.entry, wait.in_call]);
        if at >= before {
            return Woken::Joins;
        }
        state.setting += 1;
        Woken::Chooses(at)
    }
}

#[cfg(test)]
mod tests;
