//! blk-switch, a research policy that no kernel has: the block layer as a network switch. Each CPU has a queue for requests that a process
//! waits for and one for the others, which gives way; what does not fit there goes to other CPUs, and processes move.
//!
//! Used by: `schedulers`, `schedulers::registry`.
//! Tests: `crates/blk/src/schedulers/blk_switch/tests.rs`.
//!
//! **Promises**: a latency request waits for no throughput request on its CPU but the one that is being sent. **Costs**: a few words that
//! CPUs share, and no lock; a look at all CPUs for each throughput request beyond the threshold, and the cache misses of requests and
//! processes that move. It needs a device behind a transport, whose workers are where requests wait. **Rules**: docs/rules/blk-switch.md.
//!
//! **What CPUs share.** Words, all `Relaxed`: a choice from a count that is a little late is a worse choice, never a wrong one.

mod moving;
mod tunables;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::bio::{Bio, BioFlags};
use crate::ground::ids::{CpuId, HctxId};
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::{ElevatorCx, Steering, SteeringFamily};
use crate::request::Request;
use crate::request::cpu_map::{CpuMap, QueueClass};
use crate::watch::reason::Reason;

use tunables::Settings;

/// Indices of the two classes.
const LATENCY: usize = 0;
const THROUGHPUT: usize = 1;

/// Modes from which on requests are steered, and processes moved.
const STEERS: u64 = 1;
const MOVES: u64 = 2;

/// Makes the policy for a queue.
pub struct BlkSwitchFamily {
    /// Requests of a batch of the transport.
    pub batch: u16,
    /// Requests of a hardware queue.
    pub queue_depth: u32,
    /// Seed of the random choices between CPUs.
    pub seed: u64,
}

impl SteeringFamily for BlkSwitchFamily {
    type Of<Sh: Sharing> = BlkSwitch<Sh>;

    fn make<Sh: Sharing>(&self, map: &CpuMap) -> BlkSwitch<Sh> {
        let cores = (0..map.cpus()).map(|_| Padded(Core::new())).collect();
        let requests = u32::from(map.hctxs()) * self.queue_depth;
        BlkSwitch {
            map: map.clone(),
            batch: self.batch.into(),
            settings: Settings::new(),
            cores,
            counted: (0..requests).map(|_| Sh::Word::new(0)).collect(),
            random: Sh::Word::new(self.seed),
            turn: Sh::Word::new(LATENCY as u64),
            turn_ends: Sh::Word::new(0),
            last_submission: Sh::Word::new(0),
        }
    }
}

/// The policy.
pub struct BlkSwitch<Sh: Sharing> {
    map: CpuMap,
    /// Requests of a batch of the transport.
    batch: u64,
    settings: Settings<Sh>,
    /// One for each CPU.
    cores: Vec<Padded<Core<Sh>>>,
    /// The bytes with which each request is counted on the CPU of its submitter, by its id, times two, and its class: merging may change
    /// both. 0 if it is not counted.
    counted: Vec<Sh::Word>,
    /// State of the random draws.
    random: Sh::Word,
    /// Number of the turn: even ones are those of latency processes.
    turn: Sh::Word,
    /// When the turn ends, ns.
    turn_ends: Sh::Word,
    /// When the last request was submitted, ns.
    last_submission: Sh::Word,
}

/// What is counted for a CPU; pairs are of the classes latency and throughput.
struct Core<Sh: Sharing> {
    /// Requests outstanding in its throughput queue, whichever CPU submitted them.
    outstanding: Sh::Word,
    /// Requests that its throughput queue has had so far.
    issued: Sh::Word,
    /// Bytes outstanding that were submitted here and not steered.
    bytes: [Sh::Word; 2],
    /// Smoothed loads, bytes.
    loads: [Sh::Word; 2],
    /// Loads at the beginning of the turn, bytes.
    snapshot: [Sh::Word; 2],
    /// Whether a process here has submitted in this turn.
    is_used: [Sh::Word; 2],
}

impl<Sh: Sharing> Core<Sh> {
    fn new() -> Self {
        let pair = || [0; 2].map(Sh::Word::new);
        Core {
            outstanding: Sh::Word::new(0),
            issued: Sh::Word::new(0),
            bytes: pair(),
            loads: pair(),
            snapshot: pair(),
            is_used: pair(),
        }
    }
}

/// The class of a request (BS-2).
fn class_of(ioprio: IoPriority, flags: BioFlags) -> usize {
    if ioprio.class() == PriorityClass::RealTime && !flags.contains(BioFlags::FUA) { LATENCY } else { THROUGHPUT }
}

impl<Sh: Sharing> BlkSwitch<Sh> {
    /// The throughput queue of a CPU.
    fn throughput_queue(&self, cpu: CpuId, home: HctxId) -> HctxId {
        self.map.hctx_of_class(cpu, QueueClass::Low).unwrap_or(home)
    }

    /// The CPU of a throughput queue; `None` for a latency queue.
    fn core_of(&self, hctx: HctxId) -> Option<&Core<Sh>> {
        self.cores.get(hctx.index().checked_sub(self.cores.len())?).map(|core| &core.0)
    }

    /// A number below `bound`.
    fn draw(&self, bound: usize) -> usize {
        // SplitMix64: any state is as good as any other, so that CPUs may draw at once.
        let mut bits = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(bits ^ bits >> 31) * bound as u128) >> 64) as usize
    }

    /// The CPU whose worker gets a throughput request of a CPU that has too many (BS-6, BS-7).
    fn steer(&self, own: CpuId) -> (CpuId, Reason) {
        let outstanding = |cpu: usize| self.cores[cpu].outstanding.load(Relaxed);
        let mut best: Option<((u64, u64, bool), usize)> = None;
        for (cpu, core) in self.cores.iter().enumerate() {
            let is_candidate = core.loads[LATENCY].load(Relaxed) == 0 && outstanding(cpu) < self.batch;
            if !is_candidate {
                continue;
            }
            let missing = self.batch - core.issued.load(Relaxed) % self.batch;
            let key = (missing, outstanding(cpu), cpu != own.index());
            let is_better = best.is_none_or(|(best, _)| match key.cmp(&best) {
                Ordering::Less => true,
                Ordering::Equal => self.draw(2) == 0,
                Ordering::Greater => false,
            });
            if is_better {
                best = Some((key, cpu));
            }
        }
        if let Some((_, cpu)) = best {
            return (CpuId(cpu as u32), Reason::SteeredToBatch);
        }
        let first = self.draw(self.cores.len());
        let second = (first + 1 + self.draw(self.cores.len() - 1)) % self.cores.len();
        let cpu = if outstanding(second) < outstanding(first) { second } else { first };
        (CpuId(cpu as u32), Reason::SteeredOfTwo)
    }
}

impl<Sh: Sharing> Steering<Sh> for BlkSwitch<Sh> {
    fn place(&self, cx: &mut ElevatorCx<'_>, bio: &Bio, home: HctxId) -> (HctxId, Reason) {
        if class_of(bio.ioprio, bio.flags) == LATENCY {
            return (home, Reason::ForLatency);
        }
        let is_steered = self.settings.mode.load(Relaxed) >= STEERS
            && self.cores.len() > 1
            && self.cores[cx.cpu.index()].outstanding.load(Relaxed) > 2 * self.settings.thresh_b.load(Relaxed);
        let (cpu, reason) = if is_steered { self.steer(cx.cpu) } else { (cx.cpu, Reason::ForThroughput) };
        (self.throughput_queue(cpu, home), reason)
    }

    fn on_issued(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        let mut is_steered = false;
        if let Some(core) = self.core_of(rq.hctx) {
            core.outstanding.fetch_add(1, Relaxed);
            core.issued.fetch_add(1, Relaxed);
            is_steered = rq.hctx != self.throughput_queue(rq.ctx, rq.hctx);
        }
        if self.settings.mode.load(Relaxed) >= MOVES {
            let class = class_of(rq.ioprio, rq.flags);
            self.begin_turn_if_due(cx.now.at.0);
            self.count_load(rq, class, is_steered);
            self.move_if_better(cx, rq, class);
        }
    }

    fn on_ended(&self, _: &mut ElevatorCx<'_>, rq: &Request) {
        if let Some(core) = self.core_of(rq.hctx) {
            core.outstanding.fetch_sub(1, Relaxed);
        }
        let counted = self.counted[rq.id().index()].swap(0, Relaxed);
        self.cores[rq.ctx.index()].bytes[(counted % 2) as usize].fetch_sub(counted / 2, Relaxed);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.settings.shown()
    }

    fn set_tunable(&self, _: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        self.settings.set(name, text)
    }
}
