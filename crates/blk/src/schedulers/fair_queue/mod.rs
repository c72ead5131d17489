//! Start-time fair queueing for policies behind one lock: flows with virtual time instead of slices, a bound on the requests at the
//! device, and classes of which the first that has requests goes.
//!
//! Used by: `schedulers::vfair`, `schedulers::cffq`, `schedulers::mqfq`.
//! Tests: `crates/blk/src/schedulers/fair_queue/tests.rs`, `crates/blk/src/schedulers/mqfq/tests.rs`.
//!
//! A flow has a tag: what it has been charged, in virtual time. The waiting flow with the least tag goes next, and virtual time is the
//! largest tag that went so far, so it never steps back. A flow that comes back from idleness starts at virtual time less its credit,
//! or at its own tag if that is later. What is charged, and when, is the policy's business.

mod flows;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::RqId;
use crate::policy::Place;
use crate::policy::key_order::KeyOrder;
use crate::schedulers::process_queue::Scatter;

pub(super) use flows::{FlowKey, Weight};

/// Tags end here; the largest number is no key of [`KeyOrder`].
const TAG_MAX: u64 = u64::MAX - 2;

/// The number of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct FlowId(u32);

impl FlowId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Flows by class, and their requests.
#[derive(Clone)]
pub(super) struct FairQueue {
    /// Most requests at the device.
    pub(super) slots: u32,
    inflight: u32,
    /// Requests that wait, requeued ones included.
    waiting: u32,
    /// Requeued requests, which go before all others.
    head: IdList,
    classes: Vec<Class>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    by_key: HashMap<FlowKey, u32, BuildHasherDefault<Scatter>>,
    entries: Vec<Entry>,
    links: Links,
}

#[derive(Clone, Default)]
struct Class {
    virtual_time: u64,
    /// The flows that have waiting requests, by tag.
    order: KeyOrder,
}

#[derive(Clone)]
struct Flow {
    class: usize,
    waiting: IdList,
    /// What it has been charged, in virtual time.
    tag: u64,
    /// Its requests that wait at the head or are at the device.
    elsewhere: u32,
    /// Virtual time when it had no request any more.
    idle_since: u64,
    /// Its process or group has ended: without requests it is forgotten.
    has_ended: bool,
}

/// The state of a request.
#[derive(Clone, Copy, Default)]
struct Entry {
    flow: FlowId,
    location: Location,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Location {
    #[default]
    NotHere,
    Head,
    Flow,
    Device,
}

/// The request that goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Next {
    pub(super) id: RqId,
    pub(super) flow: FlowId,
    /// It came back from the device before.
    pub(super) is_requeued: bool,
}

impl FairQueue {
    /// No flows. Request ids are below `capacity`.
    pub(super) fn new(classes: usize, slots: u32, capacity: u32) -> Self {
        let capacity = capacity as usize;
        FairQueue {
            slots,
            inflight: 0,
            waiting: 0,
            head: IdList::default(),
            classes: vec![Class::default(); classes],
            flows: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::default(),
            entries: vec![Entry::default(); capacity],
            links: Links::new(capacity),
        }
    }

    /// Virtual time of a class.
    #[cfg(test)]
    pub(super) fn virtual_time(&self, class: usize) -> u64 {
        self.classes[class].virtual_time
    }

    /// Whether something waits and a slot is free.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.waiting > 0 && self.inflight < self.slots
    }

    /// Whether nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Requests that were dispatched and have not ended.
    #[inline]
    pub(super) fn inflight(&self) -> u32 {
        self.inflight
    }

    /// Whether a request was dispatched and has not left the device.
    #[inline]
    pub(super) fn is_at_device(&self, id: RqId) -> bool {
        self.entries[id.index()].location == Location::Device
    }

    /// The flow of a request that is here.
    #[inline]
    pub(super) fn flow_of(&self, id: RqId) -> FlowId {
        self.entries[id.index()].flow
    }

    /// The flow of this key.
    pub(super) fn find(&self, key: FlowKey) -> Option<FlowId> {
        self.by_key.get(&key).copied().map(FlowId)
    }

    /// The flow of this key, and whether it is new.
    #[inline]
    pub(super) fn find_or_create(&mut self, key: FlowKey, class: usize) -> (FlowId, bool) {
        match self.find(key) {
            Some(flow) => (flow, false),
            None => (self.create(key, class), true),
        }
    }

    #[cold]
    fn create(&mut self, key: FlowKey, class: usize) -> FlowId {
        let virtual_time = self.classes[class].virtual_time;
        let new = Flow {
            class,
            waiting: IdList::default(),
            tag: virtual_time,
            elsewhere: 0,
            idle_since: virtual_time,
            has_ended: false,
        };
        let flow = match self.free.pop() {
            Some(flow) => {
                self.flows[flow as usize] = new;
                flow
            }
            None => {
                self.flows.push(new);
                self.flows.len() as u32 - 1
            }
        };
        self.by_key.insert(key, flow);
        FlowId(flow)
    }

    /// Inserts a request of a flow. One that comes back from the device keeps the flow that it had.
    pub(super) fn insert(&mut self, id: RqId, flow: FlowId, place: Place, credit: u64) {
        self.waiting += 1;
        match place {
            Place::Head => {
                self.flows[flow.index()].elsewhere += 1;
                self.entries[id.index()] = Entry { flow, location: Location::Head };
                self.head.push_front(&mut self.links, id.0);
            }
            Place::Sorted => {
                self.entries[id.index()] = Entry { flow, location: Location::Flow };
                let record = &mut self.flows[flow.index()];
                if record.waiting.is_empty() {
                    let class = &mut self.classes[record.class];
                    record.tag = started(record, class.virtual_time, credit);
                    class.order.insert(flow.0, record.tag);
                }
                record.waiting.push_back(&mut self.links, id.0);
            }
        }
    }

    /// Takes out the request that goes next, if there is a slot for it.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Next> {
        if !self.has_work() {
            return None;
        }
        let next = match self.head.first() {
            Some(id) => {
                self.head.remove(&mut self.links, id);
                Next { id: RqId(id), flow: self.entries[id as usize].flow, is_requeued: true }
            }
            None => {
                let class = self.classes.iter_mut().find(|class| !class.order.is_empty())?;
                let flow = FlowId(class.order.at_or_after(0)?);
                let record = &self.flows[flow.index()];
                class.virtual_time = class.virtual_time.max(record.tag);
                let id = record.waiting.first()?;
                self.take_out(flow, id);
                self.flows[flow.index()].elsewhere += 1;
                Next { id: RqId(id), flow, is_requeued: false }
            }
        };
        self.entries[next.id.index()].location = Location::Device;
        self.waiting -= 1;
        self.inflight += 1;
        Some(next)
    }

    /// Removes a request from its flow's list.
    fn take_out(&mut self, flow: FlowId, id: u32) {
        let record = &mut self.flows[flow.index()];
        record.waiting.remove(&mut self.links, id);
        if record.waiting.is_empty() {
            self.classes[record.class].order.remove(flow.0, record.tag);
        }
    }

    /// Charges a flow, in virtual time; less than 0 if it was charged too much before.
    #[inline]
    pub(super) fn charge(&mut self, flow: FlowId, amount: i64) {
        let record = &mut self.flows[flow.index()];
        let tag = record.tag.saturating_add_signed(amount).min(TAG_MAX);
        if !record.waiting.is_empty() {
            let order = &mut self.classes[record.class].order;
            order.remove(flow.0, record.tag);
            order.insert(flow.0, tag);
        }
        record.tag = tag;
    }

    /// A request leaves the device, or was absorbed by another one. Returns whether it was at the device.
    pub(super) fn leave(&mut self, id: RqId) -> bool {
        let Entry { flow, location } = std::mem::take(&mut self.entries[id.index()]);
        match location {
            Location::NotHere => return false,
            Location::Device => self.inflight -= 1,
            Location::Head => {
                self.head.remove(&mut self.links, id.0);
                self.waiting -= 1;
            }
            Location::Flow => {
                self.take_out(flow, id.0);
                self.waiting -= 1;
            }
        }
        let record = &mut self.flows[flow.index()];
        record.elsewhere -= u32::from(location != Location::Flow);
        if record.elsewhere == 0 && record.waiting.is_empty() {
            record.idle_since = self.classes[record.class].virtual_time;
            if record.has_ended {
                self.free.push(flow.0);
            }
        }
        location == Location::Device
    }

    /// The process or group of a flow has ended: what it has is served, and one of the same key is a new flow.
    pub(super) fn end(&mut self, key: FlowKey) {
        let Some(flow) = self.by_key.remove(&key) else { return };
        let record = &mut self.flows[flow as usize];
        record.has_ended = true;
        if record.elsewhere == 0 && record.waiting.is_empty() {
            self.free.push(flow);
        }
    }

    /// Makes room for request ids below `capacity`.
    pub(super) fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.entries.len());
        self.entries.resize(capacity, Entry::default());
        self.links.grow(capacity);
    }
}

/// The tag of a flow whose first request arrives. How far it is behind virtual time is what it did not use; of that it keeps what
/// passed while it had a request, up to the credit.
fn started(flow: &Flow, virtual_time: u64, credit: u64) -> u64 {
    let unused = virtual_time.saturating_sub(flow.tag);
    let idle = if flow.elsewhere == 0 { virtual_time - flow.idle_since } else { 0 };
    let kept = unused.saturating_sub(idle).min(credit);
    flow.tag.max(virtual_time - kept)
}
