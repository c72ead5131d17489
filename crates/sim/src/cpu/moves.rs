//! To which CPU a process goes that is woken: to its own if that is idle, else to an idle one that it may run on, one that shares a
//! cache with its own first, and of these the next one round; if none is idle it waits for its own.
//!
//! A CPU is idle that no process runs on, waits for, polls on or is on its way to. Interrupts leave it idle, and so do workers: they are
//! gone before the process has woken. Now and then a process finds its idle CPU taken by something else of the host, and moves as well:
//! otherwise none would ever leave the CPU that takes the interrupts. One that waits stays where it waits: there is no periodic balance.
//! `keeps_cpus` of a host profile says that none moves.

use hoistway_blk::ground::{CpuId, Instant};

use super::{Cpu, Cpus};
use crate::task::Task;

impl Cpu {
    /// Whether a process that wakes finds no other here.
    #[inline]
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        // A process that comes next waits this long.
        !self.is_taken && self.claims == 0 && self.coming.is_none() && self.waiting.is_empty() && self.task_until <= now
    }
}

impl Cpus {
    /// Whether something else of the host, such as a thread of the kernel, has the CPU of a task that is woken.
    #[inline]
    pub(super) fn is_taken_by_kernel_thread(&mut self, task: &Task) -> bool {
        self.chances[task.cpu.index()].is_taken()
    }

    /// A task whose CPU is not idle is woken: it goes to one that is, if there is any that it can go to.
    #[inline(never)]
    pub(super) fn migrate_to_idle_cpu(&mut self, now: Instant, task: &mut Task) -> bool {
        let from = task.cpu;
        if self.keeps || task.is_in_turn {
            return false;
        }
        let Some(to) = self.nearest_idle_cpu(now, from, |cpu| task.may_run_on(cpu)) else { return false };
        self.on(from).waiting.leaves(task.number);
        task.cpu = to;
        task.interrupted = self.on(to).interrupted;
        true
    }

    /// The idle CPU that is nearest to one that is not.
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
            let on = cpus.on(cpu);
            // Each for another reason.
            match cpu.0 {
                0 => on.claims = 1,
                2 => on.is_taken = true,
                3 => on.task_until = Instant(1001),
                _ => on.waiting.wakes(
                    7,
                    0,
                    SLICE,
                    Wait { since: now, entry: Nanos::ZERO, switch: Nanos::ZERO, in_call: Nanos::ZERO },
                ),
            }
            // An interrupt makes none of the others busy.
            cpus.complete(now, CpuId(5), CompletionPlace::Interrupt);
        }
        assert_eq!(taken, [2, 0, 3, 5], "CPU 4 is not allowed, and it wakes on CPU 1");
    }

    #[test]
    fn a_cpu_is_idle_as_soon_as_its_last_process_has_run() {
        let text =
            "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 1\ncomplete_ns = 1\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n";
        let mut cpus = Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 1, 1);
        cpus.on(CpuId(0)).task_until = Instant(1000);
        assert_eq!([999, 1000].map(|now| cpus.cpus[0].is_idle(Instant(now))), [false, true]);
    }
}
