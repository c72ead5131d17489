//! Injection: while the device is kept for an empty queue, requests of other queues are served, as long as that does
//! not slow the queue down. Rules: BFQ-85 to BFQ-89.

use super::super::process_queue::SMALL_ON_FLASH;
use super::Bfq;
use super::entity::{EntityId, Owner, QueueId};
use super::queue::Queue;

/// The limit is neither measured nor decreased more often than this, ms.
const UPDATE_GAP_MS: u64 = 10;
/// What was learned is discarded this long after the last decrease or reset, ms.
const RESET_MS: u64 = 1000;

/// The measurement of a first request's service time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measurement {
    /// It runs, and its request has not been dispatched yet.
    awaits_dispatch: bool,
    /// Its request.
    request: Option<u32>,
    /// When the queue became non-empty, ns.
    since: u64,
    /// Something was injected meanwhile.
    pub injected: bool,
}

impl Measurement {
    /// Ends it without a result.
    pub fn cancel(&mut self) {
        self.awaits_dispatch = false;
        self.request = None;
    }

    /// Forgets its request, if one was chosen.
    pub fn forget_request(&mut self) {
        self.request = None;
    }

    /// A request of the queue in service is dispatched.
    pub fn dispatched(&mut self, id: u32) {
        if std::mem::take(&mut self.awaits_dispatch) {
            self.request = Some(id);
        }
    }
}

impl Bfq {
    /// The queue to take a request from while `q` is empty and keeps the device (BFQ-85).
    pub(super) fn injection_source(&mut self, q: QueueId) -> Option<QueueId> {
        if !self.config.variant.injection {
            return None;
        }
        if let Some(own) = self.own_async_queue(q) {
            return Some(own);
        }
        let ready = |source: QueueId| self.queues[source].busy && self.next_fits(source);
        if let Some(waker) = self.queues[q].waker.known
            && ready(waker)
        {
            return Some(waker);
        }
        if let Some(&woken) = self.queues[q].waker.woken.first()
            && ready(woken)
        {
            return Some(woken);
        }
        let open = !self.is_raised(q) || self.raised_busy > 1 || !self.queues[q].short_think;
        if !self.idling_is_free(q) && open { self.general_source(q) } else { None }
    }

    /// The async queue of the same process, if its next request is the process's own.
    fn own_async_queue(&self, q: QueueId) -> Option<QueueId> {
        let Queue { owner, actuator, .. } = &self.queues[q];
        let context = (*owner)?;
        let source = self.contexts[context].queues[usize::from(*actuator)].async_?;
        let next = self.queues[source].next()?;
        let own = self.entries[next as usize].context == Some(context);
        (self.queues[source].busy && own && self.next_fits(source)).then_some(source)
    }

    /// The most recently activated queue that has a suitable request (BFQ-86).
    fn general_source(&mut self, q: QueueId) -> Option<QueueId> {
        if self.in_driver >= self.queues[q].injection.limit {
            return None;
        }
        let raised_only = self.is_raised(q) && self.queues[q].short_think;
        let found = self.hierarchy.active_queues.iter().find_map(|list| {
            list.iter(&self.hierarchy.active_links).find_map(|entity| {
                let Owner::Queue(source) = self.hierarchy.entities[EntityId(entity)].owner else { return None };
                let next = self.queues[source].next()?;
                let stacks = !self.config.rotational
                    && self.in_driver > 0
                    && self.entries[next as usize].sectors >= SMALL_ON_FLASH;
                let suits = self.next_fits(source) && (!raised_only || self.is_raised(source)) && !stacks;
                suits.then_some(source)
            })
        });
        self.measurement.injected |= found.is_some();
        found
    }

    /// A sync request arrives from a process that has no other request: its service time may be worth measuring
    /// (BFQ-87, BFQ-88).
    pub(super) fn maybe_measure(&mut self, q: QueueId) {
        let since_decrease = self.now.tick - self.queues[q].injection.decreased;
        if since_decrease >= self.config.ticks(RESET_MS) {
            self.reset_injection(q);
        }
        let since_decrease = self.now.tick - self.queues[q].injection.decreased;
        let quiet = self.in_driver == 0;
        let under_injection = self.queues[q].injection.baseline > 0 && self.measurement.injected && !quiet;
        if self.in_service == Some(q)
            && since_decrease >= self.config.ticks(UPDATE_GAP_MS)
            && (quiet || under_injection)
        {
            self.measurement.since = self.now.ns;
            self.measurement.awaits_dispatch = true;
            if quiet {
                self.measurement.injected = false;
            }
        }
    }

    /// Discards what was learned about injection into a queue (BFQ-89).
    pub(super) fn reset_injection(&mut self, q: QueueId) {
        self.measurement.forget_request();
        let tick = self.now.tick;
        let queue = &mut self.queues[q];
        queue.injection.baseline = 0;
        queue.injection.limit = u32::from(!queue.short_think);
        queue.injection.decreased = tick;
    }

    /// A request completes: if it is the measured one the limit is learned (BFQ-87, BFQ-88).
    pub(super) fn maybe_learn_limit(&mut self, q: QueueId, id: u32) {
        if self.measurement.request != Some(id) {
            return;
        }
        let time = self.now.ns.wrapping_sub(self.measurement.since);
        let (tick, in_driver, max_in_driver) = (self.now.tick, self.in_driver, self.ncq.max_in_driver);
        let injected = self.measurement.injected;
        let learned = &mut self.queues[q].injection;
        let before = learned.limit;
        if learned.baseline > 0 && injected {
            let threshold = learned.baseline + learned.baseline / 2;
            if time >= threshold && before > 0 {
                learned.limit -= 1;
                learned.decreased = tick;
            } else if time < threshold && before <= max_in_driver {
                learned.limit += 1;
            }
        }
        if (learned.baseline == 0 && in_driver == 1) || time < learned.baseline {
            if learned.baseline == 0 {
                learned.limit = before.max(1);
            }
            learned.baseline = time;
        } else if !injected && in_driver == 1 {
            learned.baseline = time;
        }
        self.measurement.request = None;
        self.measurement.injected = false;
    }
}
