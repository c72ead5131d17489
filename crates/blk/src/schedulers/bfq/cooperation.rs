//! Cooperation: processes that read interleaved pieces of one sequential stream get one queue. Rules:
//! BFQ-104 to BFQ-108, BFQ-111.

use super::super::process_queue::PositionTree;
use super::Bfq;
use super::config::{CLOSE, LONG_AGO_TICK, RAISE_INTERACTIVE};
use super::contexts::{ContextId, Saved};
use super::entity::{IDLE, QueueId};
use super::queue::Raising;
use super::state_lines::StateChange;
use crate::ground::ids::Sector;

/// Merging is considered only this long after a queue has become active, ms.
const WINDOW_MS: u64 = 100;

impl Bfq {
    /// Whether a queue should be merged into another before I/O at `sector`: returns the queue that is to take its
    /// place (BFQ-106).
    pub(super) fn cooperate(&mut self, q: QueueId, context: ContextId, sector: u64) -> Option<QueueId> {
        if let Some(target) = self.queues[q].merge_target {
            return Some(self.end_of_chain(target));
        }
        let queueing_flash = self.is_queueing_flash();
        if !queueing_flash && let Some(candidate) = self.due_stable_merge(q, context) {
            return self.plan_stable_merge(q, candidate, context);
        }
        if (queueing_flash && !self.config.variant.merges_on_ncq_flash)
            || self.is_too_late(q)
            || self.busy_queues() == 1
        {
            return None;
        }
        if let Some(served) = self.in_service
            && served != q
            && self.in_service_position().abs_diff(sector) <= CLOSE
            && self.may_cooperate(q, served)
            && let Some(target) = self.plan_merge(q, served)
        {
            return Some(target);
        }
        let closest = self.closest(q, sector)?;
        if closest == q || !self.may_cooperate(q, closest) {
            return None;
        }
        self.plan_merge(q, closest)
    }

    /// Where the queue in service is reading.
    fn in_service_position(&self) -> u64 {
        // 4.12 takes the device's position.
        if self.config.variant.merge_window_by_first_io { self.in_service_last_position } else { self.last_position }
    }

    /// Whether a queue has been active for too long to be merged.
    fn is_too_late(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let window = self.config.ticks(WINDOW_MS);
        if self.config.variant.merge_window_by_first_io {
            queue.service_since_backlogged > 0 && queue.first_io + window < self.now.tick
        } else {
            self.is_raised(q) && queue.raising.start + window < self.now.tick
        }
    }

    /// Whether two queues are alike (BFQ-107) and of the same actuator (BFQ-128).
    fn may_cooperate(&self, q: QueueId, target: QueueId) -> bool {
        let (class, other_class) = (self.entity(q).class, self.entity(target).class);
        !self.is_too_late(target)
            && class == other_class
            && class != IDLE
            && !self.is_seeky(q)
            && !self.is_seeky(target)
            && self.queues[q].sync
            && self.queues[target].sync
            && self.queues[q].actuator == self.queues[target].actuator
    }

    fn end_of_chain(&self, mut q: QueueId) -> QueueId {
        while let Some(target) = self.queues[q].merge_target {
            q = target;
        }
        q
    }

    /// Decides that all processes of a queue move to another queue of its group. Returns the queue at the end of the
    /// other's merge chain.
    pub(super) fn plan_merge(&mut self, q: QueueId, target: QueueId) -> Option<QueueId> {
        if self.queues[target].process_refs == 0 {
            return None;
        }
        let target = self.end_of_chain(target);
        let processes = self.queues[q].process_refs;
        if target == q
            || processes == 0
            || self.queues[target].process_refs == 0
            || self.queues[q].group != self.queues[target].group
        {
            return None;
        }
        self.queues[q].merge_target = Some(target);
        self.queues[target].process_refs += processes;
        if let Some(with) = self.entity(target).label.and_then(|label| label.io_context) {
            self.log_queue(q, || StateChange::MergePlanned { with });
        }
        Some(target)
    }

    /// A process moves from a queue to the one at the end of its merge chain (BFQ-108).
    pub(super) fn execute_merge(&mut self, context: ContextId, q: QueueId) {
        let mut at = q;
        while let Some(target) = self.queues[at].merge_target {
            self.switch_to_merge_target(context, at, target);
            at = target;
        }
    }

    fn switch_to_merge_target(&mut self, context: ContextId, q: QueueId, target: QueueId) {
        self.log_queue(q, || StateChange::Merge);
        self.save_state(q);
        self.save_state(target);
        if self.queues[q].io_bound.is {
            self.queues[target].io_bound.is = true;
        }
        if self.queues[target].waker.known.is_none()
            && let Some(waker) = self.queues[q].waker.known
            && waker != target
        {
            self.set_waker(target, Some(waker));
        }
        let raise = self.entity(q).raise;
        if raise > 1 {
            if !self.is_raised(target) {
                let Raising { start, duration, start_at_switch, .. } = self.queues[q].raising;
                let raising = &mut self.queues[target].raising;
                raising.start = start;
                raising.duration = duration;
                raising.start_at_switch = start_at_switch;
                self.set_raise(target, raise);
            }
            self.set_raise(q, 1);
        }
        let actuator = usize::from(self.queues[q].actuator);
        self.contexts[context].queues[actuator].sync = Some(target);
        self.queues[target].shared = true;
        self.queues[target].owner = None;
        if let Some(label) = &mut self.entity_mut(target).label {
            label.io_context = None;
        }
        self.queues[q].owner = None;
        let group = self.queues[q].group;
        if self.groups[group].last_created == Some(q) {
            self.groups[group].last_created = Some(target);
        }
        self.release_process_ref(Some(q));
    }

    /// Saves the state of a queue for its only process, in case that leaves the shared queue later.
    fn save_state(&mut self, q: QueueId) {
        let Some(context) = self.queues[q].owner else { return };
        let in_burst_list = self.burst.contains(q);
        let duration = self.interactive_duration();
        let entity = self.entity(q);
        let (weight, raise) = (entity.base_weight, entity.raise);
        let queue = &self.queues[q];
        let newcomer = queue.just_created && !queue.in_large_burst && self.settings.low_latency;
        // A new queue has had no chance yet to be raised.
        let (raise, raising) = if newcomer {
            let raising = Raising { start: self.now.tick, duration, start_at_switch: LONG_AGO_TICK, ..queue.raising };
            (RAISE_INTERACTIVE, raising)
        } else {
            (raise, queue.raising)
        };
        let saved = Saved {
            think: queue.think,
            short_think: queue.short_think,
            idle_window: queue.idle_window,
            io_bound: queue.io_bound,
            injection: queue.injection,
            weight,
            raise,
            raising,
            service_since_backlogged: queue.service_since_backlogged,
            in_large_burst: queue.in_large_burst,
            in_burst_list,
        };
        self.contexts[context].queues[usize::from(self.queues[q].actuator)].saved = Some(saved);
    }

    // --- the index by sector (BFQ-105) ---

    /// Puts a queue into the index at its next request, or leaves it out if it does not qualify.
    pub(super) fn reindex(&mut self, q: QueueId) {
        self.unindex(q);
        if (self.is_queueing_flash() && !self.config.variant.merges_on_ncq_flash)
            || self.is_idle_class(q)
            || self.is_too_late(q)
        {
            return;
        }
        let Some(next) = self.queues[q].backlog.next() else { return };
        let sector = self.requests.sector(next);
        let index = &mut self.groups[self.queues[q].group].index;
        self.queues[q].indexed = index.insert(&mut self.index_nodes, q.0, sector);
    }

    /// The next request of a queue has another first sector, but the queue keeps its place in the index.
    pub(super) fn note_position(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        if let (true, Some(next)) = (queue.indexed, queue.backlog.next()) {
            PositionTree::moved(&mut self.index_nodes, q.0, self.requests.sector(next));
        }
    }

    /// Takes a queue out of the index.
    pub(super) fn unindex(&mut self, q: QueueId) {
        if std::mem::take(&mut self.queues[q].indexed) {
            self.groups[self.queues[q].group].index.remove(&mut self.index_nodes, q.0);
        }
    }

    /// The queue whose next request is close to `sector`, by the shape of the index.
    fn closest(&self, q: QueueId, sector: u64) -> Option<QueueId> {
        let close = |other: Sector| other.0.abs_diff(sector) <= CLOSE;
        self.groups[self.queues[q].group].index.close_to(&self.index_nodes, Sector(sector), close).map(QueueId)
    }
}
