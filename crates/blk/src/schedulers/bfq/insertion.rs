//! Insertion: a request is assigned to its queue, enters the statistics, and activates the queue if that had no work.
//! Rules: BFQ-78, BFQ-80, BFQ-118.

use super::super::process_queue::{SEEK_DISTANCE, SMALL_ON_FLASH, ThinkTime, distance};
use super::Bfq;
use super::config::{MIN_IDLE_MS, RAISE_SOFT_RT};
use super::contexts::ContextId;
use super::entity::QueueId;
use super::raising::Claim;
use super::requests::{Entry, Whereabouts};
use super::state_lines::Expiration;
use crate::bio::ioprio::IoPriority;
use crate::bio::{Bio, BioFlags};
use crate::ground::ids::{RqId, Sector};
use crate::policy::Place;
use crate::request::merge::Edge;
use crate::request::{Marks, Request};

/// A request shorter than this may soon be merged with the next, sectors.
const SMALL: u32 = 32;
/// Changes of think time reset the injection limit at most once in this time, ms.
const THINK_RESET_GAP_MS: u64 = 100;

impl Bfq {
    /// The actuator of a request: that of its last sector (BFQ-128).
    pub(super) fn actuator_of(&self, sector: u64, sectors: u32) -> u8 {
        let last = sector + u64::from(sectors.max(1)) - 1;
        self.config.actuators.iter().take_while(|start| start.0 <= last).count() as u8
    }

    /// A request arrives: it gets a queue and counts from now on as allocated.
    pub(super) fn set_up(&mut self, rq: &Request) {
        let (sector, sectors, sync) = (rq.sector.0, rq.sectors, rq.is_sync());
        let context = self.meet(rq);
        let told = self.contexts[context].reported_ioprio;
        self.follow_priority(context, if rq.ioprio == IoPriority::UNSET { told } else { rq.ioprio });
        self.follow_cgroup(context, rq.cgroup);
        let actuator = self.actuator_of(sector, sectors);
        let q = self.queue_for(context, sync, actuator);
        self.entries[rq.id().index()] = Entry {
            sector,
            sectors,
            sync,
            meta: rq.flags.contains(BioFlags::META),
            queue: Some(q),
            context: Some(context),
            whereabouts: Whereabouts::SetUp,
        };
        self.count_allocated(q, true);
        self.contexts.hold(context);
        if self.queues[q].just_created {
            if rq.marks.contains(Marks::CLOCK_RAN) {
                // Some time passes until the request arrives, however little, so it cannot have ended later (BFQ-5).
                self.queues[q].think = ThinkTime::new(self.now.ns as i64);
            }
            self.note_newcomer(q);
        }
    }

    /// Inserts a request that was set up or that comes back from the driver.
    pub(super) fn insert_request(&mut self, id: u32, place: Place) {
        let entry = self.entries[id as usize];
        let (Some(q), Some(context), Place::Sorted) = (entry.queue, entry.context, place) else {
            self.entries[id as usize].whereabouts = Whereabouts::Immediate;
            match place {
                Place::Head => self.immediate.push_front(&mut self.immediate_links, id),
                Place::Sorted => self.immediate.push_back(&mut self.immediate_links, id),
            }
            return;
        };
        let mut q = q;
        if let Some(target) = self.cooperate(q, context, entry.sector) {
            self.count_allocated(q, false);
            self.count_allocated(target, true);
            self.entries[id as usize].queue = Some(target);
            let own = self.contexts[context].queues[usize::from(self.queues[q].actuator)].sync == Some(q);
            let emptied = q;
            q = target;
            if own {
                self.execute_merge(context, emptied);
            }
        }
        self.update_statistics(q, context, id);
        self.add_request(q, context, id);
        self.queues[q].seeks.set_last_end(Sector(entry.sector) + entry.sectors);
        self.entries[id as usize].whereabouts = Whereabouts::Queued;
        self.arrived_while_waiting(q, entry.sectors);
    }

    /// Updates the think time, whether it is short, and the seeks (BFQ-64 to BFQ-67).
    fn update_statistics(&mut self, q: QueueId, context: ContextId, id: u32) {
        let variant = self.config.variant;
        let (now, slice_idle) = (self.now.ns as i64, self.settings.slice_idle as i64);
        let queue = &mut self.queues[q];
        if variant.think_always_sampled || (!queue.busy && queue.dispatched == 0) {
            queue.think.arrived(now, slice_idle);
        }
        if variant.idle_window {
            self.update_idle_window(q, context);
        } else {
            self.update_short_think(q, context);
        }
        let (sector, sectors) = (self.entries[id as usize].sector, self.entries[id as usize].sectors);
        let far = self.is_far(sector, sectors, self.queues[q].seeks.last_end().0);
        self.queues[q].seeks.push(far);
        if variant.soft_rt_filters && self.entity(q).raise == RAISE_SOFT_RT && self.queues[q].is_totally_seeky() {
            self.end_or_resume_interactive_raise(q);
        }
    }

    /// Whether a request is far from a position, so that it costs a seek (BFQ-64).
    pub(super) fn is_far(&self, sector: u64, sectors: u32, position: u64) -> bool {
        let distance = distance(Sector(position), Sector(sector));
        distance > SEEK_DISTANCE && (self.config.rotational || sectors < SMALL_ON_FLASH)
    }

    fn update_short_think(&mut self, q: QueueId, context: ContextId) {
        let queue = &self.queues[q];
        let just_split = queue.split + self.config.ticks(MIN_IDLE_MS) >= self.now.tick;
        if !queue.sync || self.is_idle_class(q) || self.settings.slice_idle == 0 || just_split {
            return;
        }
        let parts = if self.config.variant.long_think_above_half { 2 } else { 1 };
        let long = self.contexts[context].exited || queue.think.exceeds(self.settings.slice_idle as i64 / parts);
        let changed = queue.short_think == long;
        let rested = queue.injection.decreased + self.config.ticks(THINK_RESET_GAP_MS) <= self.now.tick;
        let unmeasured = queue.injection.baseline == 0;
        self.queues[q].short_think = !long;
        if changed && unmeasured && (rested || long) {
            self.reset_injection(q);
        }
    }

    /// 4.12: whether the queue is worth waiting for.
    fn update_idle_window(&mut self, q: QueueId, context: ContextId) {
        let seeky = self.is_seeky(q);
        if self.entity(q).service <= self.current_max_budget() / 8 && seeky {
            return;
        }
        let (raised, queues) = (self.is_raised(q), self.ncq.queues());
        let slice_idle = self.settings.slice_idle;
        let exited = self.contexts[context].exited;
        let queue = &mut self.queues[q];
        if !queue.sync {
            return;
        }
        if exited || slice_idle == 0 || (queues && seeky && !raised) {
            queue.idle_window = false;
        } else if let Some(mean) = queue.think.trusted_mean() {
            queue.idle_window = mean <= slice_idle as i64 || raised;
        }
    }

    fn add_request(&mut self, q: QueueId, context: ContextId, id: u32) {
        let variant = self.config.variant;
        let queue = &self.queues[q];
        if queue.sync {
            if variant.injection && self.contexts[context].users() <= 1 {
                self.look_for_waker(q);
                self.maybe_measure(q);
            }
            if variant.io_bound_by_window {
                let now = self.now.ns;
                let queue = &mut self.queues[q];
                let gap = (queue.is_empty() && queue.dispatched == 0).then(|| queue.think.elapsed(now as i64));
                queue.io_bound.arrival(now, gap, queue.just_created);
            }
        }
        self.queued += 1;
        let next_changed = self.take_in(q, id);
        if next_changed {
            self.reindex(q);
        }
        let was_raised = self.is_raised(q);
        let mut interactive = false;
        if self.queues[q].busy {
            if !self.queues[q].sync {
                self.maybe_raise_async(q);
            }
            if next_changed {
                self.update_budget_for_next_request(q);
            }
        } else {
            interactive = self.get_work(q, context).interactive;
        }
        if self.settings.low_latency && (!was_raised || !self.is_raised(q) || interactive) {
            self.queues[q].raising.start = self.now.tick;
        }
    }

    /// A queue without work gets a request (BFQ-80).
    fn get_work(&mut self, q: QueueId, context: ContextId) -> Claim {
        let claim = self.claim(q, context);
        let in_time = self.is_back_in_time(q);
        let recovers = self.set_budget_for_return(q, in_time);
        self.maybe_forget_burst(q);
        self.queues[q].just_created = false;
        if !self.config.variant.io_bound_by_window {
            self.queues[q].io_bound.count_arrival(in_time);
        }
        if self.settings.low_latency && self.queues[q].split + self.config.ticks(MIN_IDLE_MS) < self.now.tick {
            self.update_raising(q, claim);
        }
        let queue = &mut self.queues[q];
        queue.backlogged_at = self.now.tick;
        queue.service_since_backlogged = 0;
        queue.soft_rt_pending = false;
        self.become_busy(q);
        let wants = if self.config.variant.modern_preemption {
            recovers
        } else {
            recovers || self.is_raised(q) || claim.deserved
        };
        self.maybe_preempt(q, wants);
        claim
    }

    /// A request has arrived for the queue that the device is kept for (BFQ-78).
    fn arrived_while_waiting(&mut self, q: QueueId, sectors: u32) {
        if self.in_service != Some(q) || !self.queues[q].waiting {
            return;
        }
        let timed_out = self.timed_out(q);
        let hopes_for_merge = !self.config.variant.modern_idling || self.idling_is_free(q);
        if self.queues[q].queued() == 1 && sectors < SMALL && hopes_for_merge && !timed_out {
            return;
        }
        self.stop_waiting(q);
        if timed_out {
            self.expire(q, false, Expiration::BudgetTimeout);
        }
    }

    /// The queue in which a request waits.
    pub(super) fn queue_if_queued(&self, id: RqId) -> Option<QueueId> {
        let entry = &self.entries[id.index()];
        entry.queue.filter(|_| entry.whereabouts == Whereabouts::Queued)
    }

    /// The queue that a bio's request would go to, if it exists.
    pub(super) fn queue_of_bio(&self, bio: &Bio) -> Option<QueueId> {
        let context = self.contexts.find(bio.io_context)?;
        let actuator = self.actuator_of(bio.sector.0, bio.sectors);
        let queues = &self.contexts[context].queues[usize::from(actuator)];
        if bio.is_sync() { queues.sync } else { queues.async_ }
    }

    /// Whether a bio may join a queued request: one of its own queue, after a merge of queues if that is due, and never
    /// a sync bio an async request (BFQ-62).
    pub(super) fn bio_may_join(&mut self, id: u32, bio: &Bio) -> bool {
        let sync = bio.is_sync();
        if sync && !self.entries[id as usize].sync {
            return false;
        }
        let (Some(mut q), Some(context)) = (self.queue_of_bio(bio), self.contexts.find(bio.io_context)) else {
            return false;
        };
        if let Some(target) = self.cooperate(q, context, bio.sector.0) {
            self.execute_merge(context, q);
            q = target;
        }
        self.entries[id as usize].queue == Some(q)
    }

    /// A queued request has grown (BFQ-62).
    pub(super) fn request_grew(&mut self, id: RqId, sector: u64, sectors: u32, edge: Edge) {
        let entry = &mut self.entries[id.index()];
        (entry.sector, entry.sectors) = (sector, sectors);
        let Some(q) = self.queue_if_queued(id) else { return };
        if edge == Edge::Front {
            self.moved_forward(q, id.0);
        }
    }

    /// A queued request absorbs its neighbour (BFQ-63).
    pub(super) fn request_absorbed(&mut self, survivor: RqId, absorbed: RqId, sector: u64, sectors: u32) {
        self.inherit(survivor, absorbed);
        if let Some(q) = self.queue_if_queued(absorbed) {
            self.remove_request(q, absorbed.0);
            self.entries[absorbed.index()].whereabouts = Whereabouts::SetUp;
        }
        let entry = &mut self.entries[survivor.index()];
        (entry.sector, entry.sectors) = (sector, sectors);
    }
}
