//! MQFQ, of research and in no kernel: weighted fair queueing of bytes, in which a flow may be ahead by a threshold.
//!
//! **Promises**: of two flows that always have requests, neither gets more than about twice `threshold_kb` more than its share;
//! whatever waits goes while there is a slot. **Costs**: O(log n) an insertion and a dispatch in the number of flows, one lock
//! here, and what a device does with more than `slots` requests. **Rules**: docs/rules/mqfq.md.

mod flows;

#[cfg(test)]
mod tests;

use crate::bio::{Bio, Op};
use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId, SECTOR_BYTES};
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
use crate::policy::sector_order::SectorOrder;
use crate::policy::{Choice, Needs, Place, PolicyCx, Scheduler, SchedulerEvent};
use crate::request::Request;
use crate::request::merge::Edge;
use crate::watch::reason::Reason;

use flows::{Flows, Weight};

/// Tags of a byte at weight 1: small requests of heavy flows still differ.
const TAGS_PER_BYTE: u64 = 16;
/// What an operation without data counts, bytes.
const WITHOUT_DATA_BYTES: u64 = 4096;
/// No start tag: nothing waits.
const NEVER: u64 = u64::MAX;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct Mqfq {
    /// How far a queue may be ahead of virtual time, KiB at weight 1.
    threshold_kib: u32,
    /// Most requests at the device.
    slots: u32,
    /// What a byte written counts, in percent of one read.
    write_cost: u32,
    /// Requests that were given out and have not ended.
    inflight: u32,
    /// Requests that wait.
    waiting: u32,
    /// The least start tag of the requests that wait, and never less than it was.
    virtual_time: u64,
    /// What came back, which goes first.
    head: IdList,
    flows: Flows,
    /// The requests of one flow on one hardware queue, each.
    queues: Vec<LocalQueue>,
    hctxs: Vec<Hctx>,
    entries: Vec<Entry>,
    links: Links,
}

#[derive(Clone, Debug)]
struct LocalQueue {
    list: IdList,
    hctx: u16,
    /// The start tag by which it is in its hardware queue's order; [`NEVER`] while it is empty.
    published: u64,
}

/// A hardware queue.
#[derive(Clone, Debug)]
struct Hctx {
    /// Local queues by the start tag of their first request.
    heads: SectorOrder,
    /// The least of these.
    least: u64,
}

/// What is known of a request slot.
#[derive(Clone, Copy, Default)]
struct Entry {
    start: u64,
    flow: u32,
    queue: u32,
    sectors: u32,
    place: Whereabouts,
    /// Counted in `inflight`.
    is_counted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Whereabouts {
    #[default]
    Elsewhere,
    /// Its flow is known; it is about to be inserted, or to be absorbed.
    Arrived,
    Head,
    Queue,
}

static TUNABLES: Tunables<Mqfq> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "threshold_kb",
            (Unit::Kib, 45, 0, 65_536),
            "How far a flow may be ahead of the one that is furthest behind. Smaller: fairer; larger: fewer waits.",
            |mqfq| i128::from(mqfq.threshold_kib),
            |mqfq, kib| mqfq.threshold_kib = kib as u32,
        ),
        TunableRow::new(
            "slots",
            (Unit::Requests, 64, 1, 65_535),
            "Most requests at the device. Smaller: the order here counts; larger: throughput.",
            |mqfq| i128::from(mqfq.slots),
            |mqfq, requests| mqfq.slots = requests as u32,
        ),
        TunableRow::new(
            "write_cost",
            (Unit::Number, 100, 1, 10_000),
            "What a byte written counts, in percent of a byte read.",
            |mqfq| i128::from(mqfq.write_cost),
            |mqfq, percent| mqfq.write_cost = percent as u32,
        ),
    ],
};

impl Mqfq {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Mqfq {
            threshold_kib: 45,
            slots: 64,
            write_cost: 100,
            inflight: 0,
            waiting: 0,
            virtual_time: 0,
            head: IdList::default(),
            flows: Flows::default(),
            queues: Vec::new(),
            hctxs: Vec::new(),
            entries: vec![Entry::default(); capacity],
            links: Links::new(capacity),
        }
    }

    fn threshold(&self) -> u64 {
        u64::from(self.threshold_kib) * 1024 * TAGS_PER_BYTE
    }

    /// What this many sectors of a request add to its flow's finish tag (MQFQ-4).
    #[inline]
    fn tags(&self, rq: &Request, sectors: u32, group_weight: Option<Weight>) -> u64 {
        let bytes = match rq.op {
            Op::Read | Op::Write => u64::from(sectors) * SECTOR_BYTES,
            Op::Flush | Op::Discard | Op::WriteZeroes => WITHOUT_DATA_BYTES,
        };
        let percent = if rq.op == Op::Read { 100 } else { u64::from(self.write_cost) };
        let weight = group_weight.unwrap_or_else(|| Weight::of_priority(rq.ioprio));
        bytes * TAGS_PER_BYTE * u64::from(weight.usual) * percent / (100 * u64::from(weight.own))
    }

    /// The local queue of a flow on a hardware queue.
    #[inline]
    fn queue_of(&mut self, flow: u32, hctx: HctxId) -> u32 {
        match self.flows.get(flow).queues.get(hctx.index()) {
            Some(&queue) if queue != Flows::NO_QUEUE => queue,
            _ => self.create_queue(flow, hctx),
        }
    }

    #[cold]
    fn create_queue(&mut self, flow: u32, hctx: HctxId) -> u32 {
        if self.hctxs.len() <= hctx.index() {
            self.hctxs.resize(hctx.index() + 1, Hctx { heads: SectorOrder::default(), least: NEVER });
        }
        let queue = self.queues.len() as u32;
        self.queues.push(LocalQueue { list: IdList::default(), hctx: hctx.0, published: NEVER });
        let queues = &mut self.flows.get_mut(flow).queues;
        if queues.len() <= hctx.index() {
            queues.resize(hctx.index() + 1, Flows::NO_QUEUE);
        }
        queues[hctx.index()] = queue;
        queue
    }

    /// Publishes the start tag of a queue's first request (MQFQ-5).
    #[inline]
    fn publish(&mut self, queue: u32) {
        let LocalQueue { list, hctx, published } = &mut self.queues[queue as usize];
        let tag = list.first().map_or(NEVER, |id| self.entries[id as usize].start);
        if tag == *published {
            return;
        }
        let hctx = &mut self.hctxs[usize::from(*hctx)];
        if *published != NEVER {
            hctx.heads.remove(queue, *published);
        }
        if tag != NEVER {
            hctx.heads.insert(queue, tag);
        }
        *published = tag;
        hctx.least = hctx.heads.at_or_after(0).map_or(NEVER, |queue| self.queues[queue as usize].published);
        let least = self.hctxs.iter().map(|hctx| hctx.least).min().unwrap_or(NEVER);
        if least != NEVER {
            self.virtual_time = self.virtual_time.max(least);
        }
    }

    /// Takes a request out of its queue.
    fn leave(&mut self, id: u32) {
        let Entry { queue, flow, .. } = self.entries[id as usize];
        self.queues[queue as usize].list.remove(&mut self.links, id);
        self.entries[id as usize].place = Whereabouts::Elsewhere;
        self.waiting -= 1;
        self.flows.leave(flow);
        self.publish(queue);
    }

    /// The queue that gives the next request, for a hardware queue that asks (MQFQ-7, MQFQ-8).
    #[inline]
    fn next_queue(&self, asking: HctxId) -> (Option<u32>, Reason) {
        if let Some(own) = self.hctxs.get(asking.index())
            && own.least <= self.virtual_time.saturating_add(self.threshold())
            && let Some(queue) = own.heads.at_or_after(0)
        {
            let is_least = own.least <= self.virtual_time;
            return (Some(queue), if is_least { Reason::LeastStartTag } else { Reason::OwnStartTag });
        }
        let least = self.hctxs.iter().min_by_key(|hctx| hctx.least);
        match least.and_then(|hctx| hctx.heads.at_or_after(0)) {
            Some(queue) => (Some(queue), Reason::LeastStartTag),
            None => (None, Reason::Empty),
        }
    }
}

impl Scheduler for Mqfq {
    /// Two requests of different flows must not become one.
    fn needs(&self) -> Needs {
        Needs { joins: true, ..Needs::default() }
    }

    fn on_arrived(&mut self, _cx: &mut PolicyCx<'_>, rq: &Request) {
        let flow = self.flows.find_or_create(rq.io_context, rq.cgroup);
        let entry = &mut self.entries[rq.id().index()];
        entry.flow = flow;
        entry.place = Whereabouts::Arrived;
    }

    fn on_dropped(&mut self, _cx: &mut PolicyCx<'_>, id: RqId) {
        self.entries[id.index()].place = Whereabouts::Elsewhere;
    }

    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        let rq = cx.rq(id);
        let has_arrived = self.entries[id.index()].place == Whereabouts::Arrived;
        if std::mem::take(&mut self.entries[id.index()].is_counted) {
            // It comes back from the device.
            self.inflight -= 1;
        }
        self.waiting += 1;
        if place == Place::Head {
            self.entries[id.index()].place = Whereabouts::Head;
            return self.head.push_front(&mut self.links, id.0);
        }
        let flow = match has_arrived {
            true => self.entries[id.index()].flow,
            false => self.flows.find_or_create(rq.io_context, rq.cgroup),
        };
        let added = self.tags(rq, rq.sectors, self.flows.get(flow).group_weight);
        let record = self.flows.get_mut(flow);
        let start = record.finish.max(self.virtual_time);
        record.finish = start.saturating_add(added).min(NEVER - 1);
        record.waiting += 1;
        let queue = self.queue_of(flow, rq.hctx);
        self.entries[id.index()] =
            Entry { start, flow, queue, sectors: rq.sectors, place: Whereabouts::Queue, is_counted: false };
        let list = &mut self.queues[queue as usize].list;
        let was_empty = list.is_empty();
        list.push_back(&mut self.links, id.0);
        if was_empty {
            self.publish(queue);
        }
    }

    fn dispatch(&mut self, _cx: &mut PolicyCx<'_>, hctx: HctxId) -> Choice {
        if self.inflight >= self.slots {
            return Choice { rq: None, reason: Reason::NoSlot };
        }
        let (id, reason) = if let Some(id) = self.head.first() {
            self.head.remove(&mut self.links, id);
            self.entries[id as usize].place = Whereabouts::Elsewhere;
            self.waiting -= 1;
            (id, Reason::HeadList)
        } else {
            let (queue, reason) = self.next_queue(hctx);
            let Some(id) = queue.and_then(|queue| self.queues[queue as usize].list.first()) else {
                return Choice { rq: None, reason };
            };
            self.leave(id);
            (id, reason)
        };
        self.entries[id as usize].is_counted = true;
        self.inflight += 1;
        Choice { rq: Some(RqId(id)), reason }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        let entry = &mut self.entries[id.index()];
        if !std::mem::take(&mut entry.is_counted) {
            return;
        }
        let was_full = self.inflight >= self.slots;
        self.inflight -= 1;
        // A slot has become free, or would have become if fewer were allowed: what waits may go.
        cx.requested.run_queues |= was_full && self.has_work();
    }

    fn has_work(&self) -> bool {
        self.waiting > 0 && self.inflight < self.slots
    }

    fn allow_merge(&mut self, _cx: &mut PolicyCx<'_>, id: RqId, bio: &Bio) -> bool {
        self.flows.find(bio.io_context, bio.cgroup) == Some(self.entries[id.index()].flow)
    }

    fn allow_join(&self, first: RqId, second: RqId) -> bool {
        self.entries[first.index()].flow == self.entries[second.index()].flow
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _edge: Edge) {
        let rq = cx.rq(id);
        let entry = &mut self.entries[id.index()];
        let before = std::mem::replace(&mut entry.sectors, rq.sectors);
        let flow = entry.flow;
        let group_weight = self.flows.get(flow).group_weight;
        let added = self.tags(rq, rq.sectors, group_weight) - self.tags(rq, before, group_weight);
        let record = self.flows.get_mut(flow);
        record.finish = record.finish.saturating_add(added).min(NEVER - 1);
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        let Entry { start, sectors, .. } = self.entries[absorbed.index()];
        self.leave(absorbed.0);
        let entry = &mut self.entries[survivor.index()];
        entry.sectors += sectors;
        entry.start = entry.start.min(start);
        let queue = entry.queue;
        self.publish(queue);
    }

    fn on_event(&mut self, _cx: &mut PolicyCx<'_>, event: SchedulerEvent) {
        match event {
            SchedulerEvent::CgroupAdded { .. } => self.flows.add_group(),
            SchedulerEvent::Weight { cgroup, weight } => self.flows.set_weight(cgroup, weight),
            SchedulerEvent::CgroupRemoved(cgroup) => self.flows.end_group(cgroup),
            SchedulerEvent::IoContextExited(io_context) => self.flows.end_io_context(io_context),
            _ => {}
        }
    }

    fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.entries.len());
        self.entries.resize(capacity, Entry::default());
        self.links.grow(capacity);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)?;
        cx.requested.run_queues |= self.has_work();
        Ok(())
    }
}
