//! mq-deadline's tunables, and its tag limit.

use crate::ground::kernel::{DeadlineGeneration, Generation, ShallowRule};
use crate::ground::time::Hz;
use crate::ground::tunables::{Grammar, TunableRow, Tunables, Unit};
use crate::tags::word_bits;

use super::MqDeadline;

const I32_MAX: i128 = i32::MAX as i128;
const I32_MIN: i128 = i32::MIN as i128;

const ALL_ROWS: [TunableRow<MqDeadline>; 7] = [
    TunableRow::new(
        "read_expire",
        (Unit::Millis, 500, 0, I32_MAX),
        "How long a read may wait before a new batch begins with it. Given to reads as they are inserted.",
        |policy| policy.shown_millis(policy.expire_ticks[0]),
        |policy, ms| policy.expire_ticks[0] = policy.ticks(ms),
    ),
    TunableRow::new(
        "write_expire",
        (Unit::Millis, 5000, 0, I32_MAX),
        "How long a write may wait before a new batch begins with it. Given to writes as they are inserted.",
        |policy| policy.shown_millis(policy.expire_ticks[1]),
        |policy, ms| policy.expire_ticks[1] = policy.ticks(ms),
    ),
    TunableRow::new(
        "writes_starved",
        (Unit::Batches, 2, I32_MIN, I32_MAX),
        "Batches of reads that may start while writes wait. 0: writes go first; negative: they never overtake.",
        |policy| i128::from(policy.writes_starved),
        |policy, batches| policy.writes_starved = batches as i32,
    ),
    TunableRow::new(
        "front_merges",
        (Unit::Switch, 1, 0, 1),
        "Whether a bio that ends where a request starts is looked for and merged.",
        |policy| i128::from(policy.front_merges),
        |policy, on| policy.front_merges = on != 0,
    ),
    TunableRow::new(
        "fifo_batch",
        (Unit::Requests, 16, 0, I32_MAX),
        "Longest batch in sector order. Shorter: latency; longer: throughput on rotating disks.",
        |policy| i128::from(policy.fifo_batch),
        |policy, requests| policy.fifo_batch = requests as u32,
    ),
    TunableRow::<MqDeadline>::new(
        "async_depth",
        (Unit::Requests, 256, 1, I32_MAX),
        "Scheduler tags for everything but sync reads. Set anew whenever nr_requests changes.",
        |policy| i128::from(policy.async_depth),
        |policy, tags| policy.async_depth = tags as u32,
    )
    .with_default_note("nr_requests (5.14 to 6.9: 3/4 of it)"),
    TunableRow::new(
        "prio_aging_expire",
        (Unit::Millis, 10_000, 0, I32_MAX),
        "How long a best-effort or idle request may be held back by higher priority classes.",
        |policy| policy.shown_millis(policy.prio_aging_ticks),
        |policy, ms| policy.prio_aging_ticks = policy.ticks(ms),
    ),
];

static ROWS: [TunableRow<MqDeadline>; 7] = ALL_ROWS;

static WITHOUT_ASYNC_DEPTH: [TunableRow<MqDeadline>; 6] = {
    let [first, second, third, fourth, fifth, _, last] = ALL_ROWS;
    [first, second, third, fourth, fifth, last]
};

/// The tunables of a generation. Later generations added files at the end, until `async_depth` became a file of the
/// queue.
pub(super) fn tunables(config: &MqDeadlineConfig) -> Tunables<MqDeadline> {
    let (grammar, rows) = match config.generation {
        _ if config.queue_async_depth => (Grammar::CInt32, &WITHOUT_ASYNC_DEPTH[..]),
        DeadlineGeneration::A => (Grammar::LeadingDecimal, &ROWS[..5]),
        DeadlineGeneration::B1 => (Grammar::CInt32, &ROWS[..6]),
        DeadlineGeneration::B2 | DeadlineGeneration::C | DeadlineGeneration::CPrime => (Grammar::CInt32, &ROWS[..]),
    };
    Tunables { grammar, rows }
}

impl MqDeadline {
    /// The kernel prints milliseconds as a 32-bit int, into which the largest ones do not fit.
    fn shown_millis(&self, ticks: u64) -> i128 {
        i128::from(self.config.hz.millis_from_ticks(ticks) as i32)
    }

    fn ticks(&self, ms: i128) -> u64 {
        self.config.hz.ticks_from_millis(ms as u64)
    }
}

/// The configuration of an mq-deadline: the generation, and the properties of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MqDeadlineConfig {
    /// The generation.
    pub generation: DeadlineGeneration,
    /// Length of a tick.
    pub hz: Hz,
    /// How the kernel applies a shallow depth.
    pub shallow: ShallowRule,
    /// Whether async I/O is limited to 3/4 of the tags by default.
    pub limits_async: bool,
    /// Whether the limit is `queue/async_depth` rather than a tunable.
    pub queue_async_depth: bool,
    /// Scheduler tags per hardware queue.
    pub nr_requests: u32,
}

impl MqDeadlineConfig {
    /// The configuration in a kernel of this generation, for a queue of `nr_requests` scheduler tags.
    #[must_use]
    pub fn new(generation: &Generation, nr_requests: u32) -> Self {
        MqDeadlineConfig {
            generation: generation.deadline,
            hz: generation.hz,
            shallow: generation.shallow,
            limits_async: generation.deadline_limits_async,
            queue_async_depth: generation.queue_async_depth,
            nr_requests,
        }
    }

    /// The default of `async_depth`.
    pub(super) fn default_async_depth(&self) -> u32 {
        if self.limits_async { (3 * self.nr_requests / 4).max(1) } else { self.nr_requests }
    }

    /// The smallest shallow depth that this scheduler announces to the tag bitmap. It bounds the wake-up batches (DD-24).
    pub(super) fn announced_depth(&self, async_depth: u32) -> Option<u32> {
        match self.generation {
            _ if self.queue_async_depth => Some(async_depth),
            DeadlineGeneration::A => None,
            // These kernels announce the default only, so a smaller depth that is written later can leave sleepers waiting for a
            // batch of freed tags that never comes. No load may hang here: the smaller depth counts as well.
            _ if self.limits_async => Some(self.default_async_depth().min(async_depth)),
            _ => Some(1),
        }
    }

    /// The shallow depth that follows from an `async_depth` (DD-22, DD-23).
    pub(super) fn shallow_depth(&self, async_depth: u32) -> Option<u32> {
        let tags = self.nr_requests;
        match (self.generation, self.shallow) {
            (DeadlineGeneration::A, _) => None,
            // The default of 3/4 of all tags was used with a rule that counts bits of each word, where it limits nothing.
            (_, ShallowRule::PerWord) if self.limits_async => Some(async_depth),
            _ if async_depth >= tags => None,
            (_, ShallowRule::PerWord) => {
                Some((u64::from(async_depth) * u64::from(word_bits(tags))).div_ceil(u64::from(tags)) as u32)
            }
            (_, ShallowRule::WholeMap) => Some(async_depth),
        }
    }
}
