//! Dispatch: which request goes to the device next. Rules: BFQ-45 to BFQ-47, BFQ-119, BFQ-128.

use super::super::process_queue::SEEK_DISTANCE;
use super::Bfq;
use super::entity::{EntityId, Owner, QueueId};
use super::rate::{RateEvent, Sample};
use super::requests::Whereabouts;
use super::state_lines::{Expiration, StateChange};
use crate::ground::ids::RqId;
use crate::policy::Choice;
use crate::watch::reason::Reason;

/// An actuator with fewer requests than this is underused.
const ACTUATOR_LOAD_MIN: u32 = 4;

impl Bfq {
    /// Chooses the next request (BFQ-119).
    pub(super) fn choose(&mut self) -> Choice {
        let no = |reason| Choice { rq: None, reason };
        if let Some(id) = self.immediate.first() {
            self.take_immediate(id);
            return Choice { rq: Some(RqId(id)), reason: Reason::HeadList };
        }
        if self.busy_queues() == 0 {
            return no(Reason::Empty);
        }
        if self.settings.strict_guarantees && self.in_driver > 0 {
            return no(Reason::DeviceDrains);
        }
        match self.decide() {
            (Some(q), reason) => {
                let Some(id) = self.queues[q].next() else { return no(Reason::Empty) };
                self.take_from(q, id);
                Choice { rq: Some(RqId(id)), reason }
            }
            (None, reason) => no(reason),
        }
    }

    fn take_immediate(&mut self, id: u32) {
        self.immediate.remove(&mut self.immediate_links, id);
        let Some(q) = self.entries[id as usize].queue else {
            self.entries[id as usize].whereabouts = Whereabouts::Elsewhere;
            return;
        };
        self.entries[id as usize].whereabouts = Whereabouts::Dispatched;
        self.queues[q].dispatched += 1;
        self.count_in_driver(q);
    }

    fn count_in_driver(&mut self, q: QueueId) {
        self.in_driver += 1;
        self.in_driver_of[usize::from(self.queues[q].actuator)] += 1;
    }

    /// The queue to take a request from (BFQ-45, BFQ-46).
    fn decide(&mut self) -> (Option<QueueId>, Reason) {
        let mut reason = Reason::InService;
        let mut q = match self.in_service {
            Some(q) => q,
            None => {
                let Some(q) = self.start_slot() else { return (None, Reason::Empty) };
                reason = Reason::NewSlot;
                q
            }
        };
        let waits = !self.config.variant.modern_preemption && self.queues[q].waiting;
        let mut ends = (self.may_time_out(q) && !waits && !self.must_idle(q)).then_some(Expiration::BudgetTimeout);
        loop {
            if let Some(why) = ends.take() {
                self.expire(q, false, why);
                match self.start_slot() {
                    Some(next) => q = next,
                    None => return (None, Reason::Empty),
                }
                reason = Reason::NewSlot;
            }
            if let Some(other) = self.underused_actuator_queue(q) {
                return (Some(other), Reason::Injected);
            }
            if self.queues[q].next().is_some() {
                if self.next_fits(q) {
                    self.stop_waiting(q);
                    return (Some(q), reason);
                }
                ends = Some(Expiration::BudgetExhausted);
            } else if self.queues[q].waiting || (self.queues[q].dispatched > 0 && self.better_to_idle(q)) {
                return match self.injection_source(q) {
                    Some(source) => (Some(source), Reason::Injected),
                    None => (None, Reason::Idling),
                };
            } else {
                ends = Some(Expiration::NoMoreRequests);
            }
        }
    }

    /// With several actuators: a queue whose actuator has little to do, if that is not the one in service (BFQ-128).
    fn underused_actuator_queue(&self, q: QueueId) -> Option<QueueId> {
        let loads = &self.in_driver_of;
        if loads.len() == 1 {
            return None;
        }
        let underused = (0..loads.len()).filter(|&actuator| {
            loads[actuator] < ACTUATOR_LOAD_MIN && loads.get(actuator + 1).is_none_or(|&next| loads[actuator] < next)
        });
        for actuator in underused {
            if usize::from(self.queues[q].actuator) == actuator {
                return None;
            }
            let list = &self.hierarchy.active_queues[actuator];
            let found = list.iter(&self.hierarchy.active_links).find_map(|entity| {
                match self.hierarchy.entities[EntityId(entity)].owner {
                    Owner::Queue(other) if self.next_fits(other) => Some(other),
                    _ => None,
                }
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Dispatches a request of a queue (BFQ-47).
    fn take_from(&mut self, q: QueueId, id: u32) {
        self.serve(q, self.charge_of(q, id));
        if self.in_service == Some(q) {
            self.measurement.dispatched(id);
        }
        self.queues[q].dispatched += 1;
        self.estimate_rate(q, id);
        self.remove_request(q, id);
        self.entries[id as usize].whereabouts = Whereabouts::Dispatched;
        if self.in_service == Some(q) {
            self.check_raising(q);
        }
        self.count_in_driver(q);
        // The IDLE class gets one request at a time while others have work (BFQ-18).
        if self.in_service == Some(q) && self.is_idle_class(q) && self.busy_queues() > 1 {
            self.expire(q, false, Expiration::BudgetExhausted);
        }
    }

    /// Tells the rate estimator about a dispatch, and updates the last positions.
    fn estimate_rate(&mut self, q: QueueId, id: u32) {
        let entry = self.entries[id as usize];
        let near = if self.config.variant.rate_knows_flash {
            !self.is_far(entry.sector, entry.sectors, self.last_position)
        } else {
            self.last_position.abs_diff(entry.sector) < SEEK_DISTANCE
        };
        let sample = Sample { now: self.now.ns, sectors: u64::from(entry.sectors), near, in_driver: self.in_driver };
        let event = self.rate.dispatched(sample);
        self.note_rate_event(event);
        self.last_position = entry.sector + u64::from(entry.sectors);
        if self.in_service == Some(q) {
            self.in_service_last_position = self.last_position;
        }
    }

    /// After an event of the rate estimator.
    pub(super) fn note_rate_event(&mut self, event: RateEvent) {
        if event.updated {
            self.rate_updated();
        }
        if event.reset {
            let (samples, sequential, sectors) = (self.rate.samples, self.rate.sequential, self.rate.sectors);
            self.hierarchy.log.device(|| StateChange::RateReset { samples, sequential, sectors });
        }
    }

    /// Follows the choice of a recorded kernel: the request's queue gets the slot, unless the request was injected.
    pub(super) fn adopt_choice(&mut self, id: u32) {
        let entry = self.entries[id as usize];
        match (entry.whereabouts, entry.queue) {
            (Whereabouts::Immediate, _) => self.take_immediate(id),
            (Whereabouts::Queued, Some(q)) => {
                let injected = self.in_service.is_some_and(|served| {
                    let queue = &self.queues[served];
                    queue.is_empty() && (queue.waiting || (queue.dispatched > 0 && self.better_to_idle(served)))
                });
                if self.in_service != Some(q) && !injected {
                    if let Some(served) = self.in_service {
                        self.expire(served, false, Expiration::BudgetExhausted);
                    }
                    self.hierarchy.nominate(self.queues[q].entity);
                    self.start_slot();
                }
                if self.in_service == Some(q) {
                    self.stop_waiting(q);
                }
                self.queues[q].backlog.set_next(Some(RqId(id)));
                self.take_from(q, id);
            }
            _ => {}
        }
    }
}
