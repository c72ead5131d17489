//! Work of a kernel thread that takes turns with the processes of its CPU: it begins when the CPU has done all that it has to do now, and
//! only interrupts delay it.

use hoistway_blk::ground::{CpuId, Instant, Nanos};

use super::Cpus;

/// Work that a CPU has accepted.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Work {
    /// When it ends if no further interrupts come.
    pub(crate) until: Instant,
    /// Total interrupt time of its CPU that `until` includes.
    interrupted: Nanos,
}

impl Cpus {
    /// Whether a process has its turn on a CPU before the next work: one that has begun its turn, or the one that is chosen for the next if the
    /// thread `has_worked`. Returns the end of the process's current step.
    pub(crate) fn turn_before_work(&self, now: Instant, cpu: CpuId, has_worked: bool) -> Option<Instant> {
        let state = &self.cpus[cpu.index()];
        let has_begun = state.in_turn && state.free_at > now;
        (has_begun || has_worked && state.next_task.is_some()).then_some(state.free_at.max(now))
    }

    /// The CPU that has done all that it has to do first.
    pub(crate) fn first_free(&self, now: Instant) -> CpuId {
        let free_at = |state: &super::Cpu| state.free_at.max(state.interrupts_until).max(now);
        let first = (0..).zip(&self.cpus).min_by_key(|(_, state)| free_at(state));
        CpuId(first.map_or(0, |(number, _)| number))
    }

    /// Adds work of this length to what a CPU has to do.
    pub(crate) fn add_work(&mut self, now: Instant, cpu: CpuId, time: Nanos) -> Work {
        let exit_latency = self.exit_latency(now, cpu);
        let state = self.cpu_mut(cpu);
        state.free_at = state.free_at.max(now + exit_latency) + time;
        Work { until: state.free_at, interrupted: state.interrupted }
    }

    /// Whether work is done. Otherwise interrupts have delayed it until the end that it has now.
    pub(crate) fn is_done(&self, cpu: CpuId, work: &mut Work) -> bool {
        let interrupted = self.cpus[cpu.index()].interrupted;
        let delay = Nanos(interrupted.0 - std::mem::replace(&mut work.interrupted, interrupted).0);
        work.until += delay;
        delay == Nanos::ZERO
    }
}
