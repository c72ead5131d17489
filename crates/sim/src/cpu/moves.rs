//! Wake-up placement: which CPU a woken task runs on (a simplified `select_idle_sibling`).  A task prefers its previous CPU if that is
//! idle, then an idle CPU that shares a cache with it, then any other idle CPU that the task may run on, searching upwards and wrapping
//! around. If no CPU is idle it waits for its previous one.
//!
//! A CPU is idle if no task is running, queued, polling or about to arrive there. Interrupts and workers do not count: they are finished
//! before the task has woken. Occasionally an idle CPU is taken by other work of the host, such as a kernel thread, and the task moves,
//! too: otherwise no task would ever leave the CPU that takes the interrupts. A waiting task is never moved, because there is no
//! periodic load balancing. `keeps_cpus` of a host profile disables all migration.

use hoistway_blk::ground::{CpuId, Instant};

use super::{Cpu, Cpus};
use crate::task::Task;

impl Cpu {
    /// Whether no task runs, waits, polls or is about to arrive here.
    #[inline]
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        // `task_until` includes the CPU time that the last task used after its turn.
        !self.in_turn
            && self.incoming_tasks == 0
            && self.next_task.is_none()
            && self.waiting.is_empty()
            && self.task_until <= now
    }
}

impl Cpus {
    /// Whether other work of the host, such as a kernel thread, occupies the CPU of a task that wakes.
    #[inline]
    pub(super) fn is_taken_by_kernel_thread(&mut self, task: &Task) -> bool {
        self.randomness[task.cpu.index()].count_wakeup()
    }

    /// Moves a task whose CPU is not idle to an idle one. Returns `false` if there is none, or the task may not migrate.
    #[inline(never)]
    pub(super) fn migrate_to_idle_cpu(&mut self, now: Instant, task: &mut Task) -> bool {
        let from = task.cpu;
        if self.no_migration || task.is_on_cpu {
            return false;
        }
        let Some(to) = self.nearest_idle_cpu(now, from, |cpu| task.may_run_on(cpu)) else { return false };
        self.move_task(task, to);
        true
    }

    /// Moves a task that sleeps.
    pub(super) fn move_task(&mut self, task: &mut Task, to: CpuId) {
        self.cpu_mut(task.cpu).waiting.remove_migrated(task.number);
        task.cpu = to;
        task.interrupted = self.cpu_mut(to).interrupted;
    }

    /// The idle CPU nearest to `from`.
    fn nearest_idle_cpu(&self, now: Instant, from: CpuId, may_run_on: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        let count = self.cpus.len() as u32;
        let round = (from.0 + 1..count).chain(0..from.0).map(CpuId);
        let mut idle = round.filter(|&cpu| self.cpus[cpu.index()].is_idle(now) && may_run_on(cpu));
        let first = idle.next()?;
        let is_near = |&cpu: &CpuId| self.share_cache(cpu, from);
        if is_near(&first) { Some(first) } else { idle.find(is_near).or(Some(first)) }
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::ground::Nanos;
    use hoistway_blk::queue::CompletionPlace;

    use super::super::SLICE;
    use super::*;
    use crate::fair::Wait;
    use crate::host::Host;

    #[test]
    fn the_next_idle_cpu_is_sought_in_the_same_cache_then_anywhere() {
        let text = "name = \"x\"\ndescription = \"x\"\ncache_cpus = 3\nsubmit_ns = 1\ncomplete_ns = 1\nwake_ns = [0, 0]\n\
                    worker_ns = [0, 0]\n";
        let mut cpus = Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 6, 1);
        let now = Instant(1000);
        let mut taken = Vec::new();
        while let Some(cpu) = cpus.nearest_idle_cpu(now, CpuId(1), |cpu| cpu != CpuId(4)) {
            taken.push(cpu.0);
            let state = cpus.cpu_mut(cpu);
            // Each CPU is busy for a different reason.
            match cpu.0 {
                0 => state.incoming_tasks = 1,
                2 => state.in_turn = true,
                3 => state.task_until = Instant(1001),
                _ => state.waiting.add_woken(
                    7,
                    0,
                    SLICE,
                    Wait { since: now, entry: Nanos::ZERO, switch: Nanos::ZERO, in_call: Nanos::ZERO },
                ),
            }
            // An interrupt does not make a CPU busy.
            cpus.complete(now, CpuId(5), CompletionPlace::Interrupt);
        }
        assert_eq!(taken, [2, 0, 3, 5], "CPU 4 is not allowed, and it wakes on CPU 1");
    }

    #[test]
    fn a_cpu_is_idle_as_soon_as_its_last_process_has_run() {
        let text =
            "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 1\ncomplete_ns = 1\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n";
        let mut cpus = Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 1, 1);
        cpus.cpu_mut(CpuId(0)).task_until = Instant(1000);
        assert_eq!([999, 1000].map(|now| cpus.cpus[0].is_idle(Instant(now))), [false, true]);
    }
}
