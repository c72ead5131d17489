//! How the releases differ: a table of numbers and switches, never copies of code. Rules: bfq.md 26.

use crate::kernel::Kernel;

/// The behaviour of one release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BfqVariant {
    /// Sectors that an async request is charged for each of its own (8.1).
    pub async_charge_factor: u64,
    /// 4.12: the factor doubles while a raised queue has work, and asymmetry does not matter.
    pub async_charge_doubles: bool,
    /// So many of the last 32 requests may be far without making the queue seeky (13.1).
    pub seeky_above: u32,
    /// Slots that took the whole timeout or longer are not charged for time (8.3).
    pub long_slots_uncharged: bool,
    /// Service is reset when a slot starts, not when it ends (7.12).
    pub service_reset_at_selection: bool,
    /// The device queues commands if more requests than this were seen in it (14).
    pub ncq_above: u32,
    /// Phases without enough work are left out of that judgement (14).
    pub ncq_skips_thinkers: bool,
    /// The idling rules of 15.2 to 15.6 rather than those of 15.7.
    pub modern_idling: bool,
    /// Idling is free by 15.3 rather than by A of 15.7: on flash without queueing for streams alone.
    pub idling_by_pattern: bool,
    /// One flag of a queue, which seeks close as well as long thinking, says whether it is worth waiting for (13.3).
    pub idle_window: bool,
    /// Long thinking begins at half of `slice_idle` rather than at all of it (13.3).
    pub long_think_above_half: bool,
    /// Every arrival is a sample of think time, also one at a queue that has requests (13.2).
    pub think_always_sampled: bool,
    /// The estimator takes no large request on flash for a seek, however far it is (11.2).
    pub rate_knows_flash: bool,
    /// A queue is I/O-bound if it is busy 80 % of the time, rather than by counting arrivals (13.4).
    pub io_bound_by_window: bool,
    /// Preemption by recovery, class, weight, and of whom nobody idles for (16.4).
    pub modern_preemption: bool,
    /// A recovery needs budget that is left (16.2).
    pub recovery_needs_budget: bool,
    /// An empty queue that is preempted is kept if its guarantees need it (10.6).
    pub preempted_empty_kept: bool,
    /// The next candidate is looked up anew rather than kept (7.10).
    pub full_lookup: bool,
    /// Virtual time jumps at an expiration even under an in-service child (7.3).
    pub jump_at_expiration: bool,
    /// Longest interactive raising, ms (18.4).
    pub interactive_raise_max_ms: u64,
    /// Slow and fast devices have different reference rates (11.5).
    pub speed_classes: bool,
    /// Raising ends after 120000 sectors (18.7).
    pub raise_ends_by_service: bool,
    /// Soft real time needs a default weight, nothing in flight, some locality (18.2, 18.7).
    pub soft_rt_filters: bool,
    /// Only queues of default weight are raised (18.2).
    pub raise_needs_default_weight: bool,
    /// The idle timer of raised queues is at least 20 ms (15.8).
    pub raised_timer_floor: bool,
    /// Tags are limited by kind (21.4).
    pub tag_limits: bool,
    /// Tags are limited by share (21.5).
    pub share_limits: bool,
    /// Injection and wakers (17).
    pub injection: bool,
    /// Queues merge also on flash with queueing (20.8).
    pub merges_on_ncq_flash: bool,
    /// Queues created together merge for good (20.6).
    pub stable_merging: bool,
    /// The time for merging counts from the first I/O, not from the start of raising (20.8).
    pub merge_window_by_first_io: bool,
    /// Bursts are looked for only while nothing has work, and shrink (19.1, 19.3, 19.6).
    pub careful_bursts: bool,
    /// A queue that has work makes the whole device have work, even if it is empty (22.5).
    pub busy_is_work: bool,
    /// Whether "run all" may run one hardware queue (22.10).
    pub single_dispatch: bool,
    /// 4.12: service since a queue was backlogged is counted when its slot ends, without the charge for time (8.2).
    pub service_counted_at_expiration: bool,
    /// Independent actuators have queues of their own (24).
    pub actuators: bool,
    /// The first elapsed time of a queue is minus one nanosecond (2.5.1).
    pub first_elapsed_is_minus_one: bool,
}

const V4_12: BfqVariant = BfqVariant {
    async_charge_factor: 10,
    async_charge_doubles: true,
    seeky_above: 4,
    long_slots_uncharged: true,
    service_reset_at_selection: true,
    ncq_above: 4,
    ncq_skips_thinkers: false,
    modern_idling: false,
    idling_by_pattern: false,
    idle_window: true,
    long_think_above_half: false,
    think_always_sampled: true,
    rate_knows_flash: false,
    io_bound_by_window: false,
    modern_preemption: false,
    recovery_needs_budget: false,
    preempted_empty_kept: false,
    full_lookup: false,
    jump_at_expiration: false,
    interactive_raise_max_ms: 13_000,
    speed_classes: true,
    raise_ends_by_service: false,
    soft_rt_filters: false,
    raise_needs_default_weight: false,
    raised_timer_floor: false,
    tag_limits: false,
    share_limits: false,
    injection: false,
    merges_on_ncq_flash: true,
    stable_merging: false,
    merge_window_by_first_io: false,
    careful_bursts: false,
    busy_is_work: true,
    single_dispatch: false,
    service_counted_at_expiration: true,
    actuators: false,
    first_elapsed_is_minus_one: false,
};

const V4_19: BfqVariant = BfqVariant {
    seeky_above: 19,
    long_slots_uncharged: false,
    idling_by_pattern: true,
    idle_window: false,
    full_lookup: true,
    jump_at_expiration: true,
    interactive_raise_max_ms: 25_000,
    speed_classes: false,
    raise_ends_by_service: true,
    merge_window_by_first_io: true,
    // The window above is measured by it, so it cannot be older.
    service_counted_at_expiration: false,
    tag_limits: true,
    busy_is_work: false,
    ..V4_12
};

const V5_10: BfqVariant = BfqVariant {
    async_charge_factor: 3,
    async_charge_doubles: false,
    service_reset_at_selection: false,
    ncq_above: 3,
    ncq_skips_thinkers: true,
    modern_idling: true,
    long_think_above_half: true,
    think_always_sampled: false,
    rate_knows_flash: true,
    modern_preemption: true,
    recovery_needs_budget: true,
    preempted_empty_kept: true,
    injection: true,
    merges_on_ncq_flash: false,
    careful_bursts: true,
    ..V4_19
};

const V6_3: BfqVariant = BfqVariant {
    io_bound_by_window: true,
    soft_rt_filters: true,
    raise_needs_default_weight: true,
    raised_timer_floor: true,
    share_limits: true,
    stable_merging: true,
    single_dispatch: true,
    actuators: true,
    ..V5_10
};

const V6_12: BfqVariant = BfqVariant { first_elapsed_is_minus_one: true, ..V6_3 };

impl BfqVariant {
    /// The behaviour of a release. Those between the first and the last are interpolated by the table's third
    /// column; a difference that is not dated, or dated by a range, changes with the first row at or behind its end.
    #[must_use]
    pub fn of(kernel: Kernel) -> Self {
        match kernel {
            Kernel::V4_4 | Kernel::V4_12 => V4_12,
            Kernel::V4_19 => V4_19,
            Kernel::V5_10 => V5_10,
            Kernel::V6_3 => V6_3,
            Kernel::V6_12 | Kernel::V6_18 => V6_12,
        }
    }
}
