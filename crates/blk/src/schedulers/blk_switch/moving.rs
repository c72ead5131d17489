//! Which process moves to which CPU (BS-9 to BS-14).

use std::sync::atomic::Ordering::Relaxed;

use super::{BlkSwitch, Core, LATENCY, MOVES, THROUGHPUT};
use crate::ground::ids::CpuId;
use crate::ground::sharing::{Sharing, Word};
use crate::ground::time::Nanos;
use crate::policy::ElevatorCx;
use crate::request::Request;

/// A load below this many bytes is none.
const LOAD_MIN: u64 = 10;
/// A throughput process moves only to a CPU with less throughput load than this, bytes.
const T_MAX: u64 = 8 << 20;
/// Without a submission for this long everything starts from zero.
const RESET: Nanos = Nanos::from_secs(1);

/// The new value of a smoothed load.
pub(super) fn smoothed(load: u64, sample: u64) -> u64 {
    let next = if load == 0 { sample } else { load.wrapping_add_signed((sample as i64 - load as i64) / 8) };
    if next < LOAD_MIN { 0 } else { next }
}

impl<Sh: Sharing> BlkSwitch<Sh> {
    /// Counts a request that its own CPU has accepted, and smooths the load of that CPU.
    pub(super) fn count_load(&self, rq: &Request, class: usize, is_steered: bool) {
        let (core, bytes) = (&self.cores[rq.ctx.index()], u64::from(rq.sectors) * 512);
        let before = core.bytes[class].load(Relaxed);
        let sample = before + bytes;
        if !is_steered {
            core.bytes[class].fetch_add(bytes, Relaxed);
            self.counted[rq.id().index()].store(2 * bytes + class as u64, Relaxed);
        }
        core.loads[class].store(smoothed(core.loads[class].load(Relaxed), sample), Relaxed);
        core.is_used[class].store(1, Relaxed);
    }

    /// Begins the next turn if the current one is over, with a snapshot of all loads.
    pub(super) fn begin_turn_if_due(&self, now: u64) {
        let last = self.last_submission.swap(now, Relaxed);
        let ends = self.turn_ends.load(Relaxed);
        let is_reset = now.saturating_sub(last) >= RESET.0;
        if now < ends && !is_reset {
            return;
        }
        let next_end = now.saturating_add(Nanos::from_millis(self.settings.app_ms.load(Relaxed)).0);
        // One of the CPUs that see it begins the turn.
        if !self.turn_ends.compare_exchange(ends, next_end, Relaxed) {
            return;
        }
        if is_reset {
            self.turn.store(LATENCY as u64, Relaxed);
        } else {
            self.turn.fetch_add(1, Relaxed);
        }
        for core in &self.cores {
            for class in [LATENCY, THROUGHPUT] {
                let was_used = core.is_used[class].swap(0, Relaxed) != 0 || core.bytes[class].load(Relaxed) != 0;
                if is_reset || !was_used {
                    core.loads[class].store(0, Relaxed);
                }
                core.snapshot[class].store(core.loads[class].load(Relaxed), Relaxed);
            }
        }
    }

    /// Requests a move of the submitter of a request, if it is the turn of its class and another CPU is better.
    pub(super) fn move_if_better(&self, cx: &mut ElevatorCx<'_>, rq: &Request, class: usize) {
        if self.settings.mode.load(Relaxed) < MOVES || self.turn.load(Relaxed) % 2 != class as u64 {
            return;
        }
        let target = if class == LATENCY { self.latency_target(rq.ctx) } else { self.throughput_target(rq.ctx) };
        if let Some(cpu) = target {
            cx.requested.move_submitter = Some((rq.io_context, cpu));
        }
    }

    /// The other CPUs that may be a target, with their loads.
    fn targets(&self, own: CpuId) -> impl Iterator<Item = (CpuId, [u64; 2])> {
        let l_max = self.settings.l_max_bytes.load(Relaxed);
        let loads = (0..).map(CpuId).zip(&self.cores).map(|(cpu, core)| (cpu, core.snapshot()));
        loads.filter(move |&(cpu, [latency, _])| cpu != own && latency <= l_max)
    }

    /// Of the CPUs with latency load and less in all than the own one, the one with the least, if throughput load shares the own one.
    fn latency_target(&self, own: CpuId) -> Option<CpuId> {
        let [latency, throughput] = self.cores[own.index()].snapshot();
        if throughput == 0 {
            return None;
        }
        let better = self.targets(own).filter(|(_, [l, t])| *l > 0 && l + t < latency + throughput);
        better.min_by_key(|(_, [l, t])| l + t).map(|(cpu, _)| cpu)
    }

    /// Of the CPUs with less latency load than the own one, the one with the least throughput load; none while a CPU has more latency load,
    /// whose processes move first.
    fn throughput_target(&self, own: CpuId) -> Option<CpuId> {
        let [latency, _] = self.cores[own.index()].snapshot();
        if self.targets(own).any(|(_, [l, _])| l > latency) {
            return None;
        }
        let quieter = self.targets(own).filter(|(_, [l, _])| *l < latency);
        quieter.min_by_key(|(_, [_, t])| *t).filter(|(_, [_, t])| *t < T_MAX).map(|(cpu, _)| cpu)
    }
}

impl<Sh: Sharing> Core<Sh> {
    fn snapshot(&self) -> [u64; 2] {
        [LATENCY, THROUGHPUT].map(|class| self.snapshot[class].load(Relaxed))
    }
}
