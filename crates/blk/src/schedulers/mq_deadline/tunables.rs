//! mq-deadline's tunables, and its tag limit.

use crate::kernel::{DeadlineGeneration, Generation, ShallowRule};
use crate::tags::word_bits;
use crate::time::Hz;
use crate::tunables::{Tunable, Unit};

const I32_MAX: i128 = i32::MAX as i128;
const I32_MIN: i128 = i32::MIN as i128;

const ALL: [Tunable; 7] = [
    Tunable {
        name: "read_expire",
        unit: Unit::Millis,
        default: 500,
        default_note: None,
        min: 0,
        max: I32_MAX,
        doc: "How long a read may wait before a new batch begins with it. Given to reads as they are inserted.",
    },
    Tunable {
        name: "write_expire",
        unit: Unit::Millis,
        default: 5000,
        default_note: None,
        min: 0,
        max: I32_MAX,
        doc: "How long a write may wait before a new batch begins with it. Given to writes as they are inserted.",
    },
    Tunable {
        name: "writes_starved",
        unit: Unit::Batches,
        default: 2,
        default_note: None,
        min: I32_MIN,
        max: I32_MAX,
        doc: "Batches of reads that may start while writes wait. 0: writes go first; negative: they never overtake.",
    },
    Tunable {
        name: "front_merges",
        unit: Unit::Switch,
        default: 1,
        default_note: None,
        min: 0,
        max: 1,
        doc: "Whether a bio that ends where a request starts is looked for and merged.",
    },
    Tunable {
        name: "fifo_batch",
        unit: Unit::Requests,
        default: 16,
        default_note: None,
        min: 0,
        max: I32_MAX,
        doc: "Longest batch in sector order. Shorter: latency; longer: throughput on rotating disks.",
    },
    Tunable {
        name: "async_depth",
        unit: Unit::Requests,
        default: 256,
        default_note: Some("nr_requests (5.14 to 6.9: 3/4 of it)"),
        min: 1,
        max: I32_MAX,
        doc: "Scheduler tags for everything but sync reads. Set anew whenever nr_requests changes.",
    },
    Tunable {
        name: "prio_aging_expire",
        unit: Unit::Millis,
        default: 10_000,
        default_note: None,
        min: 0,
        max: I32_MAX,
        doc: "How long a best-effort or idle request may be held back by higher priority classes.",
    },
];

/// The tunables of a generation: later ones added files at the end, until `async_depth` became a file of the queue.
pub(super) fn table(config: &MqDeadlineConfig) -> &'static [Tunable] {
    static TABLE: [Tunable; 7] = ALL;
    static WITHOUT_ASYNC_DEPTH: [Tunable; 6] = [ALL[0], ALL[1], ALL[2], ALL[3], ALL[4], ALL[6]];
    match config.generation {
        _ if config.queue_async_depth => &WITHOUT_ASYNC_DEPTH,
        DeadlineGeneration::A => &TABLE[..5],
        DeadlineGeneration::B1 => &TABLE[..6],
        DeadlineGeneration::B2 | DeadlineGeneration::C | DeadlineGeneration::CPrime => &TABLE,
    }
}

/// What mq-deadline is made for: the variant, and the queue that it serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MqDeadlineConfig {
    /// The generation.
    pub generation: DeadlineGeneration,
    /// Length of a tick.
    pub hz: Hz,
    /// What a shallow depth means.
    pub shallow: ShallowRule,
    /// Whether async I/O is limited to 3/4 of the tags by default.
    pub limits_async: bool,
    /// Whether the limit is `queue/async_depth` and no tunable.
    pub queue_async_depth: bool,
    /// Scheduler tags per hardware queue.
    pub nr_requests: u32,
}

impl MqDeadlineConfig {
    /// As a kernel has it, for a queue of `nr_requests` scheduler tags.
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

    /// The shallow depth that an `async_depth` amounts to (`mq-deadline.md` 8).
    pub(super) fn shallow_depth(&self, async_depth: u32) -> Option<u32> {
        let tags = self.nr_requests;
        match (self.generation, self.shallow) {
            (DeadlineGeneration::A, _) => None,
            // The default of 3/4 was given to a rule that counts bits of each word, where it limits nothing.
            (_, ShallowRule::PerWord) if self.limits_async => Some(async_depth),
            _ if async_depth >= tags => None,
            (_, ShallowRule::PerWord) => {
                Some((u64::from(async_depth) * u64::from(word_bits(tags))).div_ceil(u64::from(tags)) as u32)
            }
            (_, ShallowRule::WholeMap) => Some(async_depth),
        }
    }
}
