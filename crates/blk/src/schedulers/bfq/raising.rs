//! Weight raising: interactive and soft real-time queues get a multiple of their weight for a while. Rules:
//! BFQ-91 to BFQ-99.

use super::Bfq;
use super::config::{
    INTERACTIVE_RAISE_MIN_MS, LONG_AGO_TICK, MIN_ASYNC_GAP_MS, MIN_IDLE_MS, RAISE_INTERACTIVE, RAISE_SERVICE_MAX,
    RAISE_SOFT_RT, REFERENCE_RAISE_MS, SOFT_RT_RAISE_MS, SOFT_RT_RATE_MAX,
};
use super::contexts::ContextId;
use super::entity::QueueId;
use super::queue::Raising;
use super::rate::reference_rate;
use super::state_lines::StateChange;
use super::weights::DEFAULT_WEIGHT;

/// 4.12: devices slower than this are in the slow class (rotational, flash).
const SLOW_BELOW: [u64; 2] = [1333, 14_266];
/// 4.12: reference rates and raise durations (ms) of the slow class.
const SLOW_REFERENCE: [(u64, u64); 2] = [(1000, 3500), (10_700, 6000)];
/// If a pause is longer than `slice_idle` by this many ticks, the process is not greedy.
const PAUSE_TICKS: i64 = 4;

/// Why a queue that gets work might be raised (BFQ-92).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Claim {
    /// It is new, or gets work after a long time.
    pub interactive: bool,
    /// It came no sooner than a soft real-time process would.
    pub soft_rt: bool,
    /// It may be raised for one of these reasons.
    pub deserved: bool,
}

impl Bfq {
    /// How long interactive raising lasts, ticks (BFQ-94): as long as a large application takes to start.
    pub(super) fn interactive_duration(&self) -> i64 {
        let kind = usize::from(!self.config.rotational);
        let slow = self.config.variant.speed_classes && self.rate.rate < SLOW_BELOW[kind];
        let (rate, ms) = if slow {
            SLOW_REFERENCE[kind]
        } else {
            (reference_rate(self.config.rotational), REFERENCE_RAISE_MS[kind])
        };
        let ticks = rate as i64 * self.config.ticks(ms) / self.rate.rate as i64;
        let max = self.config.ticks(self.config.variant.interactive_raise_max_ms);
        ticks.clamp(self.config.ticks(INTERACTIVE_RAISE_MIN_MS), max)
    }

    /// What a queue that gets work from a process may claim (BFQ-92).
    pub(super) fn claim(&self, q: QueueId, context: ContextId) -> Claim {
        let variant = &self.config.variant;
        let queue = &self.queues[q];
        let ordinary = self.entity(q).requested_weight == DEFAULT_WEIGHT;
        let idle_for_long = self.is_idle_for_long(q);
        let soft_rt = !queue.in_large_burst
            && queue.raising.soft_rt_next_start < self.now.tick
            && (!variant.soft_rt_filters || (queue.dispatched == 0 && !queue.is_totally_seeky()))
            && (ordinary || !variant.raise_needs_default_weight);
        let interactive = !queue.in_large_burst && idle_for_long && (ordinary || !variant.raise_needs_default_weight);
        let own = queue.owner.is_some() || self.contexts[context].queues[usize::from(queue.actuator)].stably_merged;
        let deserved =
            self.settings.low_latency && (self.is_raised(q) || (queue.sync && own && (interactive || soft_rt)));
        Claim { interactive, soft_rt, deserved }
    }

    /// Whether a queue has had no requests for a long time.
    pub(super) fn is_idle_for_long(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        queue.dispatched == 0 && queue.budget_timeout + self.config.ticks(MIN_IDLE_MS) < self.now.tick
    }

    /// Starts, continues or ends the raising of a queue that gets work (BFQ-93).
    pub(super) fn update_raising(&mut self, q: QueueId, claim: Claim) {
        let now = self.now.tick;
        if !self.is_raised(q) {
            if !claim.deserved {
                return;
            }
            if claim.interactive {
                self.raise_interactively(q);
                self.queues[q].raising.service = 0;
            } else {
                let start_at_switch = if self.config.variant.soft_rt_filters { LONG_AGO_TICK } else { now };
                self.raise_for_soft_rt(q, start_at_switch);
            }
            let most = 2 * self.min_budget();
            let entity = self.entity_mut(q);
            entity.budget = entity.budget.min(most);
        } else if claim.interactive {
            self.raise_interactively(q);
        } else if self.queues[q].in_large_burst {
            self.set_raise(q, 1);
        } else if claim.soft_rt {
            if self.entity(q).raise != RAISE_SOFT_RT {
                let start = self.queues[q].raising.start;
                self.raise_for_soft_rt(q, start);
            }
            self.queues[q].raising.start = now;
        }
    }

    fn raise_interactively(&mut self, q: QueueId) {
        self.set_raise(q, RAISE_INTERACTIVE);
        self.queues[q].raising.duration = self.interactive_duration();
    }

    fn raise_for_soft_rt(&mut self, q: QueueId, start_at_switch: i64) {
        self.set_raise(q, RAISE_SOFT_RT);
        self.queues[q].raising.start_at_switch = start_at_switch;
        self.queues[q].raising.duration = self.config.ticks(SOFT_RT_RAISE_MS);
    }

    /// Asks for another factor; the weight follows when the queue next gets onto an active tree.
    pub(super) fn set_raise(&mut self, q: QueueId, raise: u64) {
        let entity = self.queues[q].entity;
        if self.hierarchy.entities[entity].raise == raise {
            return;
        }
        let (was, is) = (self.is_raised(q), raise > 1);
        if self.queues[q].busy && was != is {
            self.raised_busy = if is { self.raised_busy + 1 } else { self.raised_busy - 1 };
        }
        self.hierarchy.request_change(entity, |entity| entity.raise = raise);
    }

    /// An async request arrives at a busy async queue: after a pause it is raised (BFQ-99).
    pub(super) fn maybe_raise_async(&mut self, q: QueueId) {
        let rested = self.queues[q].raising.start + self.config.ticks(MIN_ASYNC_GAP_MS) < self.now.tick;
        if self.settings.low_latency && !self.is_raised(q) && rested {
            self.raise_interactively(q);
        }
    }

    /// Computes the earliest arrival that may count as soft real time (BFQ-95).
    pub(super) fn compute_soft_rt_start(&mut self, q: QueueId) {
        let hz = i64::from(self.config.hz.0);
        let slice_idle = self.config.ticks(self.settings.slice_idle / super::config::MS);
        let queue = &self.queues[q];
        let by_service = queue.backlogged_at + hz * queue.service_since_backlogged as i64 / SOFT_RT_RATE_MAX as i64;
        let by_pause = self.now.tick + slice_idle + PAUSE_TICKS;
        let before = if self.config.variant.soft_rt_filters { queue.raising.soft_rt_next_start } else { i64::MIN };
        self.queues[q].raising.soft_rt_next_start = before.max(by_service).max(by_pause);
    }

    /// A request of the queue in service is dispatched: raising may be over (BFQ-97).
    pub(super) fn check_raising(&mut self, q: QueueId) {
        if self.is_raised(q) {
            self.log_raised(q);
            let Raising { start, duration, service, .. } = self.queues[q].raising;
            if self.queues[q].in_large_burst {
                self.end_raising(q);
            } else if start + duration < self.now.tick {
                self.end_or_resume_interactive_raise(q);
            }
            if self.config.variant.raise_ends_by_service
                && self.entity(q).raise == RAISE_INTERACTIVE
                && service > RAISE_SERVICE_MAX
            {
                self.end_raising(q);
            }
        }
        let entity = self.entity(q);
        if entity.accounted && (entity.raise > 1) != (entity.weight > entity.base_weight) {
            let entity = self.queues[q].entity;
            self.hierarchy.apply_change(entity, false);
        }
    }

    fn log_raised(&mut self, q: QueueId) {
        let Raising { start, duration, .. } = self.queues[q].raising;
        let (since_ms, max_ms) = (self.config.millis(self.now.tick - start), self.config.millis(duration));
        let entity = self.entity(q);
        let (coeff, weight, base_weight) = (entity.raise, entity.weight, entity.base_weight);
        self.log_queue(q, || StateChange::Raised { since_ms, max_ms, coeff, weight, base_weight });
    }

    /// Ends raising, or returns from soft real-time raising to the rest of the interactive raising before it.
    pub(super) fn end_or_resume_interactive_raise(&mut self, q: QueueId) {
        let interactive_until = self.queues[q].raising.start_at_switch + self.interactive_duration();
        if self.entity(q).raise != RAISE_SOFT_RT || interactive_until < self.now.tick {
            self.end_raising(q);
        } else {
            self.raise_interactively(q);
            self.queues[q].raising.start = self.queues[q].raising.start_at_switch;
        }
    }

    /// Ends the raising of a queue.
    pub(super) fn end_raising(&mut self, q: QueueId) {
        if self.config.variant.soft_rt_filters && self.entity(q).raise == RAISE_INTERACTIVE {
            self.queues[q].raising.soft_rt_next_start = self.now.tick;
        }
        self.set_raise(q, 1);
        self.queues[q].raising.duration = 0;
        self.queues[q].raising.start = self.now.tick;
    }

    /// `low_latency` is switched off: all raising ends.
    pub(super) fn end_all_raising(&mut self) {
        for at in 0..self.queues.len() {
            let q = QueueId(at as u32);
            if self.queues[q].alive && self.is_raised(q) {
                self.end_raising(q);
            }
        }
    }

    /// A slot starts: the time that a soft real-time queue had to wait does not count towards the duration of its
    /// raising (BFQ-98).
    pub(super) fn exclude_wait_from_soft_rt(&mut self, q: QueueId) {
        let soft_rt = self.entity(q).raise == RAISE_SOFT_RT;
        let now = self.now.tick;
        let queue = &mut self.queues[q];
        let (since, waited_from) = (queue.raising.start, queue.budget_timeout);
        if soft_rt && since < now && waited_from < now {
            queue.raising.start = if waited_from > since { since + (now - waited_from) } else { now };
        }
    }
}
