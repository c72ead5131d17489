//! CFFQ, a scheduler from research that is not in the Linux kernel: the classes and levels of CFQ, with virtual time instead of slices, so
//! that an SSD always serves several processes.
//!
//! **Promises**: real-time requests go before best-effort ones and these before idle ones; within a class processes get bytes by the
//! weights of their levels; whatever waits goes while there is a slot. **Costs**: O(log n) a request in the number of processes that wait,
//! one lock; a higher class starves lower ones; what a device does with more than `slots` requests. **Rules**: docs/rules/cffq.md.

use crate::bio::Op;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::{HctxId, RqId, SECTOR_BYTES};
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
use crate::policy::{Choice, Place, PolicyCx, Scheduler, SchedulerEvent};
use crate::request::Request;
use crate::watch::reason::Reason;

use super::fair_queue::{FairQueue, FlowKey, Weight};

/// Real time, best effort, idle.
const CLASSES: usize = 3;
/// Virtual time of a byte at level 4.
const TAGS_PER_BYTE: u64 = 16;
/// What an operation without data counts, bytes.
const WITHOUT_DATA_BYTES: u64 = 4096;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct Cffq {
    queue: FairQueue,
}

static TUNABLES: Tunables<Cffq> = Tunables {
    grammar: Grammar::InRange,
    rows: &[TunableRow::new(
        "slots",
        (Unit::Requests, 64, 1, 65_535),
        "Most requests at the device. Smaller: the order here counts; larger: throughput.",
        |cffq| i128::from(cffq.queue.slots),
        |cffq, requests| cffq.queue.slots = requests as u32,
    )],
};

/// The class and the weight within it of a priority (CFFQ-2, CFFQ-3).
fn class_of(priority: IoPriority) -> (usize, Weight) {
    match priority.class() {
        PriorityClass::RealTime => (0, Weight::of_level(priority.level())),
        PriorityClass::BestEffort => (1, Weight::of_level(priority.level())),
        PriorityClass::None => (1, Weight::of_level(4)),
        PriorityClass::Idle => (2, Weight::of_level(7)),
    }
}

/// What a request costs, in virtual time at level 4 (CFFQ-4).
fn cost_of(rq: &Request) -> u64 {
    let bytes = match rq.op {
        Op::Read | Op::Write => u64::from(rq.sectors) * SECTOR_BYTES,
        Op::Flush | Op::Discard | Op::WriteZeroes => WITHOUT_DATA_BYTES,
    };
    bytes * TAGS_PER_BYTE
}

impl Cffq {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Cffq { queue: FairQueue::new(CLASSES, 64, capacity) }
    }
}

impl Scheduler for Cffq {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        let rq = cx.rq(id);
        self.queue.leave(id);
        let class = class_of(rq.ioprio).0;
        let (flow, _) = self.queue.find_or_create(FlowKey::io_context(rq.io_context).in_class(class), class);
        self.queue.insert(id, flow, place, 0);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        let Some(next) = self.queue.pop() else {
            let reason = if self.queue.is_empty() { Reason::Empty } else { Reason::NoSlot };
            return Choice { rq: None, reason };
        };
        if next.is_requeued {
            return Choice { rq: Some(next.id), reason: Reason::HeadList };
        }
        let rq = cx.rq(next.id);
        let charged = class_of(rq.ioprio).1.over(cost_of(rq));
        self.queue.charge(next.flow, charged as i64);
        Choice { rq: Some(next.id), reason: Reason::LeastStartTag }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if self.queue.leave(id) {
            cx.requested.run_queues |= self.queue.has_work();
        }
    }

    fn has_work(&self) -> bool {
        self.queue.has_work()
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, _survivor: RqId, absorbed: RqId) {
        self.queue.leave(absorbed);
    }

    fn on_event(&mut self, _cx: &mut PolicyCx<'_>, event: SchedulerEvent) {
        if let SchedulerEvent::IoContextExited(io_context) = event {
            (0..CLASSES).for_each(|class| self.queue.end(FlowKey::io_context(io_context).in_class(class)));
        }
    }

    fn grow(&mut self, capacity: u32) {
        self.queue.grow(capacity);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)?;
        cx.requested.run_queues |= self.queue.has_work();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
