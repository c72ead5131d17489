//! The configuration of kyber, its tunables, and its limit for async requests. Rules: KY-2, KY-3, KY-25, KY-26.

use crate::ground::kernel::{Generation, KyberGeneration, ShallowRule};
use crate::ground::time::Hz;
use crate::ground::tunables::{Grammar, TunableRow, Tunables, Unit};
use crate::tags::word_bits;

use super::domain::Domain;

/// What a kyber is created with: the generation, and the properties of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KyberConfig {
    /// The generation.
    pub generation: KyberGeneration,
    /// Length of a tick.
    pub hz: Hz,
    /// How the kernel applies a shallow depth.
    pub shallow: ShallowRule,
    /// Scheduler tags per hardware queue.
    pub nr_requests: u32,
    /// Driver tags per hardware queue.
    pub queue_depth: u32,
    /// `queue/async_depth`; `None` in kernels without the file. It limits everything except sync reads, whereas kyber's own
    /// limit is for async I/O.
    pub async_depth: Option<u32>,
}

/// Share of the scheduler tags that async requests may use, percent.
pub(crate) const ASYNC_PERCENT: u32 = 75;

impl KyberConfig {
    /// The configuration in a kernel of this generation, for a queue with these numbers of scheduler and driver tags.
    #[must_use]
    pub fn new(generation: &Generation, nr_requests: u32, queue_depth: u32) -> Self {
        KyberConfig {
            generation: generation.kyber,
            hz: generation.hz,
            shallow: generation.shallow,
            nr_requests,
            queue_depth,
            async_depth: generation.queue_async_depth.then_some(nr_requests * ASYNC_PERCENT / 100),
        }
    }

    /// The shallow depth of limited requests, for a number of scheduler tags; 0 means no limit.
    pub(super) fn shallow_depth(&self, nr_requests: u32) -> u32 {
        if let Some(depth) = self.async_depth {
            return depth;
        }
        let tags = match self.shallow {
            ShallowRule::PerWord => word_bits(nr_requests),
            ShallowRule::WholeMap => nr_requests,
        };
        tags * ASYNC_PERCENT / 100
    }

    /// Positions of a token bitmap for a domain of at most `depth_max` tokens.
    pub(super) fn positions(&self, depth_max: u32) -> u32 {
        match self.generation {
            KyberGeneration::Percentiles => depth_max,
            // The pools are created for the whole device and then reduced.
            KyberGeneration::Windows | KyberGeneration::StagedWindows => self.queue_depth.max(256),
        }
    }
}

/// The default latency targets for reads, writes and discards, ns.
pub(super) const TARGETS_NS: Targets = [2_000_000, 10_000_000, 5_000_000_000];

/// The latency targets, ns, by domain.
pub(super) type Targets = [u64; 3];

/// The tunables.
pub(super) static TUNABLES: Tunables<Targets> = Tunables { grammar: Grammar::Decimal64, rows: &ROWS };

static ROWS: [TunableRow<Targets>; 2] = [
    TunableRow::new(
        "read_lat_nsec",
        (Unit::Nanos, TARGETS_NS[0] as i128, 0, u64::MAX as i128),
        "Target latency of reads. When they miss it, the tokens of domains that are well off are cut.",
        |targets| i128::from(targets[Domain::Read.index()]),
        |targets, ns| targets[Domain::Read.index()] = ns as u64,
    ),
    TunableRow::new(
        "write_lat_nsec",
        (Unit::Nanos, TARGETS_NS[1] as i128, 0, u64::MAX as i128),
        "Target latency of writes (before 4.20: of sync writes). When they miss it, the tokens of domains that are well \
         off are cut.",
        |targets| i128::from(targets[Domain::Write.index()]),
        |targets, ns| targets[Domain::Write.index()] = ns as u64,
    ),
];
