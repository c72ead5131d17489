//! How the behaviour of bfq differs between kernel releases, as numbers and switches. Rules: docs/rules/bfq.md.

use crate::ground::kernel::Kernel;

/// The behaviour of one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BfqVariant {
    /// Sectors that an async request is charged for each of its own (BFQ-34).
    pub async_charge_factor: u64,
    /// 4.12: the factor doubles while a raised queue has work, and asymmetry does not matter.
    pub async_charge_doubles: bool,
    /// This number of the last 32 requests may be far without making the queue seeky (BFQ-64).
    pub seeky_above: u32,
    /// Slots that took the whole timeout or longer are not charged for time (BFQ-36).
    pub long_slots_uncharged: bool,
    /// Service is reset when a slot starts, not when it ends (BFQ-32).
    pub service_reset_at_selection: bool,
    /// The device is taken to queue commands if it was seen with more requests than this (BFQ-70).
    pub ncq_above: u32,
    /// Phases without enough work are not considered for that (BFQ-70).
    pub ncq_skips_thinkers: bool,
    /// The idling rules BFQ-72 to BFQ-75 rather than BFQ-76.
    pub modern_idling: bool,
    /// Idling is free by BFQ-73 rather than by BFQ-76: on flash without queueing for streams alone.
    pub idling_by_pattern: bool,
    /// A flag of a queue says whether it is worth waiting for; seeks and long think times both clear it (BFQ-66,
    /// BFQ-67).
    pub idle_window: bool,
    /// Long thinking begins at half of `slice_idle` rather than at all of it (BFQ-66, BFQ-67).
    pub long_think_above_half: bool,
    /// Every arrival is a sample of think time, also one at a queue that has requests (BFQ-65).
    pub think_always_sampled: bool,
    /// The estimator takes no large request on flash for a seek, however far it is (BFQ-52).
    pub rate_knows_flash: bool,
    /// A queue is I/O-bound if it is busy 80 % of the time, rather than by counting arrivals (BFQ-68, BFQ-69).
    pub io_bound_by_window: bool,
    /// Preemption by recovery, class, weight, and of queues that are not idled for (BFQ-83).
    pub modern_preemption: bool,
    /// Any arrival preempts a queue that is not worth waiting for (BFQ-83).
    pub unworthy_preempted: bool,
    /// A recovery needs budget that is left (BFQ-81).
    pub recovery_needs_budget: bool,
    /// An empty queue that is preempted is kept if its guarantees need it (BFQ-50).
    pub preempted_empty_kept: bool,
    /// The next candidate is looked up anew rather than kept (BFQ-30).
    pub full_lookup: bool,
    /// Virtual time jumps at an expiration even under an in-service child (BFQ-23).
    pub jump_at_expiration: bool,
    /// Longest interactive raising, ms (BFQ-94).
    pub interactive_raise_max_ms: u64,
    /// Slow and fast devices have different reference rates (BFQ-55).
    pub speed_classes: bool,
    /// Raising ends after 120000 sectors (BFQ-97).
    pub raise_ends_by_service: bool,
    /// Soft real time needs nothing in flight and some locality, and its next start outlives what is in flight (BFQ-92,
    /// BFQ-95, BFQ-97).
    pub soft_rt_filters: bool,
    /// Only queues of default weight are raised (BFQ-92).
    pub raise_needs_default_weight: bool,
    /// The only queue that has work is waited for (BFQ-74).
    pub lone_queue_kept: bool,
    /// The idle timer of raised queues is at least 20 ms (BFQ-77).
    pub raised_timer_floor: bool,
    /// Tags are limited by kind (BFQ-114).
    pub tag_limits: bool,
    /// Tags are limited by share (BFQ-115).
    pub share_limits: bool,
    /// Injection and wakers (BFQ-85 to BFQ-90).
    pub injection: bool,
    /// Queues merge also on flash with queueing (BFQ-111).
    pub merges_on_ncq_flash: bool,
    /// Queues created together merge permanently (BFQ-109).
    pub stable_merging: bool,
    /// The time for merging counts from the first I/O, not from the start of raising (BFQ-111).
    pub merge_window_by_first_io: bool,
    /// Bursts are looked for only while nothing has work, and shrink (BFQ-100 to BFQ-102).
    pub careful_bursts: bool,
    /// A queue that has work makes the whole device have work, even if it is empty (BFQ-120).
    pub busy_is_work: bool,
    /// Whether "run all" may run one hardware queue (BFQ-123).
    pub single_dispatch: bool,
    /// 4.12: service since a queue was backlogged is counted when its slot ends, without the charge for time (BFQ-35).
    pub service_counted_at_expiration: bool,
    /// Independent actuators have queues of their own (BFQ-128).
    pub actuators: bool,
    /// The first elapsed time of a queue is minus one nanosecond (BFQ-5).
    pub first_elapsed_is_minus_one: bool,
}

impl BfqVariant {
    /// The behaviour of a release. A difference that appeared somewhere in a range of releases is taken from the end of
    /// the range on, and one whose release is unknown from the first release known to have it.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        let is_from = |major, minor| kernel.is_from(major, minor);
        BfqVariant {
            async_charge_factor: if is_from(5, 0) { 3 } else { 10 },
            async_charge_doubles: !is_from(5, 0),
            seeky_above: if is_from(4, 16) { 19 } else { 4 },
            long_slots_uncharged: !is_from(4, 19),
            service_reset_at_selection: !is_from(4, 20),
            ncq_above: if is_from(5, 1) { 3 } else { 4 },
            ncq_skips_thinkers: is_from(5, 1),
            modern_idling: is_from(5, 10),
            idling_by_pattern: is_from(4, 14),
            idle_window: !is_from(4, 14),
            long_think_above_half: is_from(5, 10),
            think_always_sampled: !is_from(5, 10),
            rate_knows_flash: is_from(5, 10),
            io_bound_by_window: is_from(5, 13),
            modern_preemption: is_from(5, 3),
            unworthy_preempted: is_from(5, 13),
            recovery_needs_budget: is_from(5, 3),
            preempted_empty_kept: is_from(5, 3),
            full_lookup: is_from(4, 14),
            jump_at_expiration: is_from(4, 14),
            interactive_raise_max_ms: if is_from(4, 18) { 25_000 } else { 13_000 },
            speed_classes: !is_from(4, 18),
            raise_ends_by_service: is_from(4, 16),
            soft_rt_filters: is_from(5, 10),
            raise_needs_default_weight: is_from(5, 13),
            lone_queue_kept: is_from(5, 13),
            raised_timer_floor: is_from(5, 13),
            tag_limits: is_from(4, 16),
            share_limits: is_from(5, 17),
            injection: is_from(5, 3),
            merges_on_ncq_flash: !is_from(5, 4),
            stable_merging: is_from(5, 13),
            merge_window_by_first_io: is_from(4, 16),
            careful_bursts: is_from(5, 0),
            busy_is_work: !is_from(4, 19),
            single_dispatch: is_from(5, 12),
            // The window for merging is measured by it, so it cannot be older.
            service_counted_at_expiration: !is_from(4, 16),
            actuators: is_from(6, 3),
            first_elapsed_is_minus_one: is_from(6, 9),
        }
    }
}
