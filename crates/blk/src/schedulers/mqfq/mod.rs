//! MQFQ, a research scheduler that no kernel has: weighted fair queueing of bytes, in which a flow may be ahead by a threshold.
//!
//! Used by: `schedulers::registry`, `schedulers`.
//! Tests: `crates/blk/src/schedulers/mqfq/tests.rs`, `checks/tests/shuttle/flows.rs`.
//!
//! **Promises**: of two flows that always have requests, neither gets more than about twice `threshold_kb` more than its share;
//! whatever waits goes while there is a slot. **Costs**: O(log n) an insertion and a dispatch in the number of flows that wait on a
//! hardware queue, a look at one word of each hardware queue where the earliest request changes, and what a device does with
//! more than `slots` requests. **Rules**: docs/rules/mqfq.md.
//!
//! **What CPUs share.** Each hardware queue has a lock, for the local queues of all flows on it. All queues share three words, virtual
//! time and the numbers of requests at the device and waiting, and each flow its finish tag. The lock around the table of flows is
//! taken once for each flow and hardware queue, under that of the hardware queue and never the other way round.
//!
//! **No request is left behind** while there is a slot. An inserting CPU counts the request and then looks for a slot; a CPU that
//! frees a slot then looks for waiting requests: `SeqCst`, so one of them sees the other.

mod concurrent;
mod flows;
mod local_queues;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::bio::ioprio::IoPriority;
use crate::bio::{Bio, Op};
use crate::ground::ids::{CgroupId, CpuId, HctxId, IoContextId, SECTOR_BYTES};
use crate::ground::meter::{Meter, Site};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::policy::Family;
use crate::request::cpu_map::{CpuMap, QueueType};
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Marks, Rq};
use crate::watch::reason::Reason;

use super::fair_queue::{FlowKey, Weight};
use flows::Flows;
use local_queues::LocalQueues;

/// Tags of a byte at weight 1: small requests of heavy flows still differ.
const TAGS_PER_BYTE: u64 = 16;
/// What an operation without data counts, bytes.
const WITHOUT_DATA_BYTES: u64 = 4096;
/// No start tag: nothing waits.
const NEVER: u64 = u64::MAX;

/// Makes the scheduler for a queue.
pub struct MqfqFamily {
    /// Request ids are below this.
    pub capacity: u32,
}

impl Family for MqfqFamily {
    type Of<Sh: Sharing> = Mqfq<Sh>;

    fn make<Sh: Sharing>(&self, map: &CpuMap) -> Mqfq<Sh> {
        Mqfq::new(map, self.capacity)
    }
}

/// The scheduler.
pub struct Mqfq<Sh: Sharing> {
    map: CpuMap,
    settings: Settings<Sh>,
    /// Lower bound of the start tags of waiting requests; never decreases. A CPU that reads an old value only throttles more.
    virtual_time: Padded<Sh::Word>,
    /// Requests that were dispatched and have not completed.
    inflight: Padded<Sh::Word>,
    /// Waiting requests that other CPUs can find.
    waiting: Padded<Sh::Word>,
    /// Requeued requests, which are dispatched first.
    head: Sh::Lock<VecDeque<Rq>>,
    /// Number of requeued requests.
    head_len: Sh::Word,
    flows: Flows<Sh>,
    hctxs: Vec<Padded<HctxQueues<Sh>>>,
    /// For each request slot whether it counts as being at the device.
    is_counted: Vec<Sh::Word>,
}

/// Values of the tunables.
struct Settings<Sh: Sharing> {
    /// How far a queue may be ahead of virtual time, KiB at weight 1.
    threshold_kib: Sh::Word,
    /// Most requests at the device.
    slots: Sh::Word,
    /// What a byte written counts, in percent of one read.
    write_cost: Sh::Word,
}

/// A hardware queue.
struct HctxQueues<Sh: Sharing> {
    /// The least start tag that waits here; [`NEVER`] if nothing does. Written under the lock.
    min_start: Sh::Word,
    queues: Sh::Lock<LocalQueues<Sh>>,
}

impl<Sh: Sharing> Mqfq<Sh> {
    /// A fresh scheduler for request ids below `capacity`. `map` names the hardware queues and their CPUs.
    #[must_use]
    pub fn new(map: &CpuMap, capacity: u32) -> Self {
        let hctx =
            |_| Padded(HctxQueues { min_start: Sh::Word::new(NEVER), queues: Sh::Lock::new(LocalQueues::default()) });
        Mqfq {
            map: map.clone(),
            settings: Settings {
                threshold_kib: Sh::Word::new(45),
                slots: Sh::Word::new(64),
                write_cost: Sh::Word::new(100),
            },
            virtual_time: Padded(Sh::Word::new(0)),
            inflight: Padded(Sh::Word::new(0)),
            waiting: Padded(Sh::Word::new(0)),
            head: Sh::Lock::new(VecDeque::new()),
            head_len: Sh::Word::new(0),
            flows: Flows::new(),
            hctxs: (0..map.hctxs()).map(hctx).collect(),
            is_counted: (0..capacity).map(|_| Sh::Word::new(0)).collect(),
        }
    }

    /// Virtual time, in tags.
    #[must_use]
    pub fn virtual_time(&self) -> u64 {
        self.virtual_time.load(SeqCst)
    }

    /// Requests that were dispatched and have not completed.
    #[must_use]
    pub fn inflight(&self) -> u64 {
        self.inflight.load(SeqCst)
    }

    /// Requests that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.load(SeqCst)
    }

    fn slots(&self) -> u64 {
        self.settings.slots.load(Relaxed)
    }

    /// The latest start tag that may be dispatched now.
    #[inline]
    fn limit(&self) -> u64 {
        let threshold = self.settings.threshold_kib.load(Relaxed) * 1024 * TAGS_PER_BYTE;
        self.virtual_time().saturating_add(threshold)
    }

    /// What this many sectors add to a flow's finish tag (MQFQ-4).
    #[inline]
    fn tag_increment(&self, (op, sectors, ioprio): (Op, u32, IoPriority), group_weight: Option<Weight>) -> u64 {
        let bytes = match op {
            Op::Read | Op::Write => u64::from(sectors) * SECTOR_BYTES,
            Op::Flush | Op::Discard | Op::WriteZeroes => WITHOUT_DATA_BYTES,
        };
        let percent = if op == Op::Read { 100 } else { self.settings.write_cost.load(Relaxed) };
        let weight = group_weight.unwrap_or_else(|| Weight::of_priority(ioprio));
        bytes * TAGS_PER_BYTE * u64::from(weight.default) * percent / (100 * u64::from(weight.value))
    }

    fn key(&self, io_context: IoContextId, cgroup: CgroupId) -> FlowKey {
        self.flows.key(io_context, cgroup)
    }

    // --- virtual time ---

    /// Advances virtual time to at least this tag.
    #[inline]
    fn advance_to(&self, tag: u64) {
        let mut old = self.virtual_time.load(SeqCst);
        while old < tag && !self.virtual_time.compare_exchange(old, tag, SeqCst) {
            old = self.virtual_time.load(SeqCst);
        }
    }

    /// The hardware queue with the least start tag of all, and that tag.
    #[inline]
    fn earliest(&self) -> Option<(HctxId, u64)> {
        let mut earliest = (0, NEVER);
        for (index, hctx) in self.hctxs.iter().enumerate() {
            let tag = hctx.min_start.load(SeqCst);
            if tag < earliest.1 {
                earliest = (index, tag);
            }
        }
        (earliest.1 != NEVER).then_some((HctxId(earliest.0 as u16), earliest.1))
    }

    /// Publishes the least start tag of a hardware queue (MQFQ-5). Its lock is held.
    #[inline]
    fn publish(&self, hctx: &HctxQueues<Sh>, min_start: u64) {
        if hctx.min_start.load(Relaxed) == min_start {
            return;
        }
        hctx.min_start.store(min_start, SeqCst);
        if let Some((_, min_start)) = self.earliest() {
            self.advance_to(min_start);
        }
    }

    // --- insertion ---

    /// Inserts a request (MQFQ-4).
    #[inline]
    fn enqueue(&self, meter: &impl Meter, rq: Rq) {
        let hctx = &self.hctxs[rq.hctx.index()];
        let key = self.key(rq.io_context, rq.cgroup);
        hctx.queues.with(meter, Site::HardwareQueue, |queues| {
            let queue = queues.find_or_create(key, || self.flows.find_or_create(key));
            let flow = queues.flow(queue);
            let added = self.tag_increment((rq.op, rq.sectors, rq.ioprio), flow.group_weight());
            let start = flow.assign_start_tag(self.virtual_time(), added);
            queues.push(queue, rq, start);
            self.publish(hctx, queues.min_start());
            // Counted once it can be found.
            self.waiting.fetch_add(1, SeqCst);
        });
    }

    /// Inserts a request that is dispatched before all others.
    fn insert_at_head(&self, meter: &impl Meter, rq: Rq) {
        self.head.with(meter, Site::HardwareQueue, |head| {
            head.push_front(rq);
            self.head_len.fetch_add(1, SeqCst);
            self.waiting.fetch_add(1, SeqCst);
        });
    }

    /// Tries to merge a bio into what its flow has on its hardware queue (MQFQ-11).
    #[inline]
    fn merge(&self, meter: &impl Meter, hctx: HctxId, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        let hctx = &self.hctxs[hctx.index()];
        // A hardware queue that looks empty is not worth the lock.
        if hctx.min_start.load(Relaxed) == NEVER {
            return None;
        }
        let (io, key) =
            bio.as_ref().map(|bio| ((bio.op, bio.sectors, bio.ioprio), self.key(bio.io_context, bio.cgroup)))?;
        hctx.queues.with(meter, Site::HardwareQueue, |queues| {
            let queue = queues.find(key)?;
            let edge = rules.merge_with_newest(queues.requests_mut(queue), bio)?;
            let flow = queues.flow(queue);
            flow.charge(self.tag_increment(io, flow.group_weight()));
            Some(edge)
        })
    }

    // --- dispatch and completion ---

    /// Takes one of the slots, if there is one (MQFQ-6).
    #[inline]
    fn take_slot(&self) -> bool {
        loop {
            let old = self.inflight.load(SeqCst);
            if old >= self.slots() {
                return false;
            }
            if self.inflight.compare_exchange(old, old + 1, SeqCst) {
                return true;
            }
        }
    }

    /// Dispatches the next request for a hardware queue.
    #[inline]
    fn dispatch_next(&self, meter: &impl Meter, asking: HctxId) -> (Option<Rq>, Reason) {
        loop {
            if !self.take_slot() {
                return (None, Reason::NoSlot);
            }
            if let Some((mut rq, reason)) = self.take_next(meter, asking) {
                self.is_counted[rq.id().index()].store(1, Relaxed);
                rq.marks.set(Marks::STARTED);
                return (Some(rq), reason);
            }
            self.inflight.fetch_sub(1, SeqCst);
            // A CPU that inserted meanwhile may have found no free slot.
            if self.waiting.load(SeqCst) == 0 {
                return (None, Reason::Empty);
            }
        }
    }

    /// Takes the next request out (MQFQ-7, MQFQ-8). The caller has a slot for it.
    #[inline]
    fn take_next(&self, meter: &impl Meter, asking: HctxId) -> Option<(Rq, Reason)> {
        if self.head_len.load(SeqCst) != 0
            && let Some(rq) = self.take_from_head(meter)
        {
            return Some((rq, Reason::HeadList));
        }
        loop {
            let limit = self.limit();
            if self.hctxs[asking.index()].min_start.load(SeqCst) <= limit
                && let Some(taken) = self.take_from_hctx(meter, asking, limit)
            {
                return Some(taken);
            }
            let (hctx, min_start) = self.earliest()?;
            self.advance_to(min_start);
            if let Some((rq, _)) = self.take_from_hctx(meter, hctx, self.limit()) {
                return Some((rq, Reason::LeastStartTag));
            }
            // Another CPU has taken it.
        }
    }

    /// Takes the request with the least start tag of a hardware queue, if that is within the limit.
    #[inline]
    fn take_from_hctx(&self, meter: &impl Meter, hctx: HctxId, limit: u64) -> Option<(Rq, Reason)> {
        let hctx = &self.hctxs[hctx.index()];
        hctx.queues.with(meter, Site::HardwareQueue, |queues| {
            let start = queues.min_start();
            if start > limit || start == NEVER {
                return None;
            }
            let reason = if start <= self.virtual_time() { Reason::LeastStartTag } else { Reason::OwnStartTag };
            let rq = queues.pop()?;
            // No longer counted before it can no longer be found.
            self.waiting.fetch_sub(1, SeqCst);
            self.publish(hctx, queues.min_start());
            Some((rq, reason))
        })
    }

    fn take_from_head(&self, meter: &impl Meter) -> Option<Rq> {
        self.head.with(meter, Site::HardwareQueue, |head| {
            let rq = head.pop_front()?;
            self.waiting.fetch_sub(1, SeqCst);
            self.head_len.fetch_sub(1, SeqCst);
            Some(rq)
        })
    }

    /// Removes a request from those at the device. Returns whether a waiting request can be dispatched now that could not before.
    #[inline]
    fn leave_device(&self, rq: usize) -> bool {
        if self.is_counted[rq].swap(0, Relaxed) == 0 {
            return false;
        }
        let old = self.inflight.fetch_sub(1, SeqCst);
        old >= self.slots() && self.has_requests()
    }

    /// Whether a request waits and a slot is free.
    #[inline]
    fn has_requests(&self) -> bool {
        self.waiting.load(SeqCst) != 0 && self.inflight.load(SeqCst) < self.slots()
    }

    /// The hardware queue that a bio takes on a CPU.
    #[inline]
    fn hctx_for(&self, cpu: CpuId, bio: &Bio) -> HctxId {
        self.map.hctx_of(cpu, QueueType::of(bio.op, bio.flags))
    }

    // --- flows ---

    /// A flow has ended (MQFQ-13): it serves what waits, and one of the same number is a new flow.
    fn end(&self, key: FlowKey) {
        self.flows.end(key);
        for hctx in &self.hctxs {
            hctx.queues.aside(|queues| queues.end(key));
        }
    }
}
