//! kyber: a token limit for each kind of request, adjusted by latency targets, for fast multi-queue devices.
//!
//! Used by: `schedulers`, `elevator`, `schedulers::registry`; crate `evidence`.
//! Tests: `crates/blk/src/schedulers/kyber/tests/`, `crates/evidence/tests/kyber.rs`.
//!
//! **Promises**: at most as many requests of a kind are at the device as its [domain](Domain) has tokens; the others wait
//! here, where they delay no other kind and may still merge. Domains take turns by count; within one the order is first in,
//! first out. No sorting, no expiry, no fairness between tasks. **Costs**: O(1) an insertion and a dispatch. No lock is
//! shared by two hardware queues, except that of a wait queue when tokens run out. **Rules**: docs/rules/kyber.md.
//!
//! The parts, in the order in which a request passes through them: `hctx` (staging, turns), `tokens` (limits, waiting),
//! `controller` (samples, timer) with its two algorithms: `percentiles` with `histogram` (4.20 and later) and `windows`
//! (before).
//!
//! Its words are `Relaxed`, except those in `tokens` and `hctx`, where comments say why: they are samples, hints, and data of
//! a request, which are ordered by passing on the request.
//!
//! kyber is not a [`Scheduler`](crate::policy::Scheduler), which is a single-threaded policy behind one lock, but a
//! [`Concurrent`](crate::policy::Concurrent) one: many CPUs call it at once, with `&self`. Queues name its type, so that calls are
//! inlined.

mod concurrent;
mod config;
mod controller;
mod domain;
mod hctx;
mod histogram;
mod percentiles;
mod replay;
mod tokens;
mod windows;

#[cfg(test)]
mod tests;

pub(crate) use config::ASYNC_PERCENT;
pub use config::KyberConfig;
pub use domain::Domain;
pub use percentiles::{ControllerRound, LatencyReading};
pub use replay::{KyberChoice, KyberTurn};

use std::sync::atomic::Ordering::Relaxed;

use crate::bio::{Bio, Op, is_sync};
use crate::ground::ids::{CpuId, HctxId, RqId};
use crate::ground::meter::Meter;
use crate::ground::sharing::{Padded, Sharing, Word};
use crate::ground::time::Instant;
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::{ElevatorCx, Place, SchedulerEvent};
use crate::request::cpu_map::{CpuMap, QueueType};
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Marks, Request, Rq};
use crate::tags::Depth;
use crate::watch::reason::Reason;

use config::{TARGETS_NS, TUNABLES, Targets};
use controller::{Controller, Latencies};
use domain::{DOMAINS, Rules};
use hctx::{Drawn, HctxQueues};
use histogram::MEASURED;
use tokens::TokenPool;

/// The scheduler.
pub struct Kyber<Sh: Sharing> {
    config: KyberConfig,
    rules: &'static Rules,
    /// Tokens by [`Domain`].
    pools: [TokenPool<Sh>; DOMAINS],
    hctxs: Vec<Padded<HctxQueues<Sh>>>,
    /// The place of the software queue for each type and CPU.
    queues: Vec<QueuePlace>,
    /// Number of CPUs.
    cpus: usize,
    /// The token that each request holds, as packed by [`Held`].
    held: Vec<Sh::Word>,
    controller: Controller<Sh>,
    /// Latency targets of reads, writes and discards, ns.
    targets_ns: [Sh::Word; MEASURED],
    /// Shallow depth of async requests; 0 for no limit.
    async_depth: Sh::Word,
}

/// A software queue's hardware queue and its index there.
#[derive(Clone, Copy, Debug)]
struct QueuePlace {
    hctx: HctxId,
    index: usize,
}

/// A token, with its domain and the hardware queue that took it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    token: u32,
    domain: Domain,
    hctx: HctxId,
}

impl Held {
    /// The word of a request without a token.
    const NOTHING: u64 = 0;

    fn pack(self) -> u64 {
        1 << 63 | u64::from(self.token) << 32 | u64::from(self.hctx.0) << 8 | self.domain as u64
    }

    fn unpack(word: u64) -> Option<Held> {
        (word != Held::NOTHING).then(|| Held {
            token: (word >> 32) as u32 & 0x7FFF_FFFF,
            domain: Domain::ALL[(word & 3) as usize],
            hctx: HctxId((word >> 8) as u16),
        })
    }
}

impl<Sh: Sharing> Kyber<Sh> {
    /// A new scheduler with default tunables, for request ids below `capacity`. `map`: the hardware queues and their CPUs.
    #[must_use]
    pub fn new(config: KyberConfig, map: &CpuMap, capacity: u32) -> Self {
        let rules = Rules::of(config.generation);
        let hctxs = usize::from(map.hctxs());
        let cpus = || (0..map.cpus() as u32).map(CpuId);
        let places = QueueType::ALL.into_iter().flat_map(|kind| cpus().map(move |cpu| (kind, cpu)));
        let queues = places.map(|(kind, cpu)| {
            let hctx = map.hctx_of(cpu, kind);
            QueuePlace { hctx, index: map.served(hctx).binary_search(&cpu).unwrap_or(0) }
        });
        let pool = |domain: Domain| {
            let depth_max = rules.depth_max(domain);
            TokenPool::new(config.positions(depth_max), depth_max, hctxs, rules.keeps_waiting)
        };
        Kyber {
            config,
            rules,
            pools: Domain::ALL.map(pool),
            hctxs: (0..hctxs)
                .map(|index| {
                    let hctx = HctxId(index as u16);
                    Padded(HctxQueues::new(hctx, rules, map.served(hctx).len()))
                })
                .collect(),
            cpus: map.cpus(),
            queues: queues.collect(),
            held: (0..capacity).map(|_| Sh::Word::new(Held::NOTHING)).collect(),
            controller: Controller::new(rules.steering, config.hz, map.cpus()),
            targets_ns: TARGETS_NS.map(Sh::Word::new),
            async_depth: Sh::Word::new(u64::from(config.shallow_depth(config.nr_requests))),
        }
    }

    /// The domain of a request.
    #[inline]
    #[must_use]
    pub fn domain_of(&self, rq: &Request) -> Domain {
        self.rules.domain_of(rq.op, rq.flags)
    }

    /// How many requests of a domain may be at the device.
    #[must_use]
    pub fn depth(&self, domain: Domain) -> u32 {
        self.pools[domain.index()].depth()
    }

    /// Tokens of a domain that are taken; more than [`depth`](Self::depth) for a while after that was reduced.
    #[must_use]
    pub fn tokens_in_use(&self, domain: Domain) -> u32 {
        self.pools[domain.index()].in_use()
    }

    /// Hardware queues that wait for a token of a domain.
    #[must_use]
    pub fn waiting(&self, domain: Domain) -> u64 {
        self.pools[domain.index()].waiting()
    }

    /// What the controller's last round did; `None` before 4.20.
    #[must_use]
    pub fn last_round(&self) -> Option<ControllerRound> {
        self.controller.last_round()
    }

    // --- insertion ---

    #[inline]
    fn place_of(&self, cpu: CpuId, kind: QueueType) -> QueuePlace {
        self.queues[kind as usize * self.cpus + cpu.index()]
    }

    /// Tries to merge a bio into what its CPU has staged. It is taken out of its option exactly when that succeeded.
    #[inline]
    pub fn merge_bio(&self, meter: &impl Meter, cpu: CpuId, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        let (op, flags) = bio.as_ref().map(|bio| (bio.op, bio.flags))?;
        let (domain, place) = (self.rules.domain_of(op, flags), self.place_of(cpu, QueueType::of(op, flags)));
        self.hctxs[place.hctx.index()].merge(meter, place.index, domain, rules, bio)
    }

    /// Inserts requests, in order.
    #[inline]
    pub fn insert(&self, meter: &impl Meter, list: impl Iterator<Item = Rq>, at: Place) {
        for mut rq in list {
            rq.marks.set(Marks::INSERTED);
            let (domain, place) = (self.domain_of(&rq), self.place_of(rq.ctx, QueueType::of(rq.op, rq.flags)));
            self.hctxs[place.hctx.index()].stage(meter, place.index, domain, rq, at);
        }
    }

    /// How many scheduler tags an allocation may use.
    #[inline]
    pub fn limit_depth(&self, bio: &Bio) -> Depth {
        let is_free = if self.config.async_depth.is_some() { bio.op == Op::Read } else { true };
        if is_free && is_sync(bio.op, bio.flags) {
            return Depth::Full;
        }
        self.min_shallow().map_or(Depth::Full, Depth::Shallow)
    }

    /// The one shallow depth it asks for, if any.
    #[inline]
    #[must_use]
    pub fn min_shallow(&self) -> Option<u32> {
        let depth = self.async_depth.load(Relaxed) as u32;
        (depth > 0).then_some(depth)
    }

    /// `nr_requests` or `async_depth` has changed. It knows of no process and no cgroup.
    pub fn on_event(&self, event: SchedulerEvent) {
        if let SchedulerEvent::Depths { nr_requests, async_depth } = event
            && self.rules.depth_limit_follows
        {
            let depth = async_depth.unwrap_or_else(|| self.config.shallow_depth(nr_requests));
            self.async_depth.store(u64::from(depth), Relaxed);
        }
    }

    /// Request ids below `capacity` will come from now on.
    pub fn grow(&mut self, capacity: u32) {
        if capacity as usize > self.held.len() {
            self.held.resize_with(capacity as usize, || Sh::Word::new(Held::NOTHING));
        }
    }

    // --- dispatch and completion ---

    /// Whether there may be a request to dispatch for `hctx`. Takes no lock.
    #[inline]
    #[must_use]
    pub fn has_work(&self, hctx: HctxId) -> bool {
        self.hctxs[hctx.index()].has_work()
    }

    /// The next request for `hctx`, one of its own. If there is no token for it, `hctx` then waits for one.
    #[inline]
    pub fn dispatch(&self, meter: &impl Meter, hctx: HctxId) -> (Option<Rq>, Reason) {
        match self.hctxs[hctx.index()].dispatch_one(meter, &self.pools) {
            Ok(Drawn { mut rq, domain, token, reason }) => {
                self.held[rq.id().index()].store(Held { token, domain, hctx }.pack(), Relaxed);
                rq.marks.set(Marks::STARTED);
                (Some(rq), reason)
            }
            Err(reason) => (None, reason),
        }
    }

    /// A request has completed on `cpu`: its latencies are sampled.
    #[inline]
    pub fn on_completed(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        let now = cx.now;
        // A request that never reached the device (an empty flush) has no device latency.
        if rq.issued == Instant::NEVER {
            return;
        }
        let latencies = Latencies { total: now.at.since(rq.start), io: now.at.since(rq.issued) };
        self.controller.completed(cx, self.domain_of(rq), latencies, &self.targets_ns);
    }

    /// A request has been released: its token goes back.
    #[inline]
    pub fn finish(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        if let Some(Held { token, domain, hctx }) = Held::unpack(self.held[id.index()].swap(Held::NOTHING, Relaxed)) {
            self.pools[domain.index()].give_back(meter, token, hctx, |woken| cx.requested.run_hctxs.push(woken));
        }
    }

    /// A dispatched request is requeued and returns its token. Its insertion at the head follows.
    pub fn on_requeued(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        self.finish(meter, cx, id);
    }

    /// Its timer has fired, for the controller's round or the end of its window.
    pub fn on_timer(&self, meter: &impl Meter, cx: &mut ElevatorCx<'_>) {
        self.controller.timer(meter, cx, &self.pools, &self.targets_ns);
    }

    // --- tunables ---

    fn targets(&self) -> Targets {
        std::array::from_fn(|domain| self.targets_ns[domain].load(Relaxed))
    }

    /// Its tunables, each with its current value.
    #[must_use]
    pub fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(&self.targets())
    }

    /// Writes a tunable. A new target applies to samples from now on.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let before = self.targets();
        let mut targets = before;
        TUNABLES.store(&mut targets, name, text)?;
        for (domain, word) in self.targets_ns.iter().enumerate() {
            // Others may be written meanwhile.
            if targets[domain] != before[domain] {
                word.store(targets[domain], Relaxed);
            }
        }
        Ok(())
    }
}
