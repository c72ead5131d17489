//! What happens when a process is woken.
//!
//! An idle CPU wakes up for it, and chooses when it is awake: others that were woken meanwhile, often by the same interrupt, are there, too,
//! and it is not always the first of them that has it. So the process that has reaped may take the tag again that it has just given back, before
//! the sleeper that was woken for it, and the sleeper is owed time then and goes first when they meet again.
//!
//! A CPU that is awake and busy learns of it when the interrupt is over.

use hoistway_blk::ground::{Instant, Nanos};

use super::Cpus;
use crate::fair::Wait;
use crate::task::Task;

/// What comes of a wake-up.
pub(crate) enum Woken {
    /// The task is at its CPU then, which is busy.
    Arrives(Instant),
    /// Its CPU wakes up, and the task that it chooses has done then what it does first.
    Chooses(Instant),
    /// Its CPU wakes up for others as well, and what was said of these holds.
    Joins,
}

impl Cpus {
    /// A task is woken.
    #[inline]
    pub(crate) fn wake(&mut self, now: Instant, task: &mut Task) -> Woken {
        task.entry = if task.sleeps_for_tag() { self.resume } else { self.submission(task) };
        task.switch = Nanos::ZERO;
        let (spins_since, switch) = (task.spins_since.take(), self.switch);
        let on = self.on(task.cpu);
        task.interrupted = on.interrupted;
        if on.task_until > now && on.task == task.number {
            // It has not slept.
            on.claims += u32::from(spins_since.is_none());
            return Woken::Arrives(on.task_until + task.entry);
        }
        if let Some(since) = spins_since {
            let at = on.free_at.max(now) + task.entry;
            task.charge(now, now.since(since));
            return Woken::Arrives(at);
        }
        task.switch = switch;
        let is_idle = on.is_idle(now);
        let stays = is_idle && !self.is_taken_by_kernel_thread(task);
        // If no other CPU is idle, whatever has taken its own is taken to be over by then.
        if stays || self.migrate_to_idle_cpu(now, task) || is_idle {
            return Woken::Chooses(self.wake_idle_cpu(now, task));
        }
        let on = self.on(task.cpu);
        if on.coming.is_some() && on.awake_at > now {
            return self.joins(now, task);
        }
        on.claims += 1;
        if on.is_taken || on.coming.is_some() {
            // The CPU is awake, and its scheduler knows of the task as soon as the interrupt is over.
            return Woken::Arrives(now + self.complete);
        }
        Woken::Arrives(self.awake(now, task) + task.entry)
    }

    /// When the CPU of a task is awake that wakes up for it now.
    #[inline(always)]
    fn awake(&mut self, now: Instant, task: &mut Task) -> Instant {
        let exit = self.exit(now, task.cpu);
        let from = now.max(self.cpus[task.cpu.index()].slept_until);
        from + self.complete + exit + self.wake.draw(&mut task.wake_random)
    }

    /// An idle CPU wakes up for a task. Returns when that has done what it does first, if no others come.
    #[inline(always)]
    pub(super) fn wake_idle_cpu(&mut self, now: Instant, task: &mut Task) -> Instant {
        let (awake, in_call) = (self.awake(now, task), self.in_call(task));
        let on = self.on(task.cpu);
        on.awake_at = on.free_at.max(awake);
        on.switch_to_task(task.number, true, (on.awake_at, on.awake_at), [task.entry, in_call])
    }

    /// A task is woken while its CPU wakes up for others: that chooses among them.
    #[cold]
    fn joins(&mut self, now: Instant, task: &mut Task) -> Woken {
        task.switch = self.late_switch.draw(&mut task.wake_random);
        let (slice, switch, in_call) = (self.slice, self.switch, self.in_call(task));
        let on = self.on(task.cpu);
        let Some(first) = on.coming.take() else { unreachable!("it wakes up for a task") };
        let (before, awake) = (on.free_at, on.awake_at);
        on.free_at = Instant(before.0 - first.entry.0);
        if first.is_outside_run_queue {
            // A task that comes alone is owed nothing.
            let wait = Wait { since: now, entry: first.entry, switch, in_call: first.in_call };
            on.waiting.wakes(first.task, 0, slice, wait);
        }
        task.interrupted = on.interrupted;
        let wait = Wait { since: now, entry: task.entry, switch: task.switch, in_call };
        on.waiting.wakes(task.number, task.lag_ns, slice, wait);
        let Some((chosen, wait)) = on.waiting.next() else { unreachable!("two wait") };
        // Its switch is a part of the wake-up.
        let at = on.switch_to_task(chosen, false, (awake, awake), [wait.entry, wait.in_call]);
        if at >= before {
            return Woken::Joins;
        }
        on.setting += 1;
        Woken::Chooses(at)
    }
}

#[cfg(test)]
mod tests;
