//! Scheduling domains: the kinds of requests that kyber limits separately, and how its generations differ. Rules: KY-1,
//! KY-2, KY-9.

use crate::bio::{BioFlags, Op, is_sync};
use crate::ground::kernel::KyberGeneration;

/// A kind of request with tokens of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Domain {
    /// Reads.
    Read = 0,
    /// Writes; in the generations that steer by windows only those that a task waits for.
    Write = 1,
    /// Discards. The generations that steer by windows count them as [`Other`](Domain::Other).
    Discard = 2,
    /// Everything else.
    Other = 3,
}

/// Number of domains.
pub(super) const DOMAINS: usize = 4;

impl Domain {
    /// All domains, in the order of their turns.
    pub const ALL: [Domain; DOMAINS] = [Domain::Read, Domain::Write, Domain::Discard, Domain::Other];

    /// 0 for reads, 1 for writes, 2 for discards, 3 for others.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A domain's place in the circle of turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainSpec {
    /// The domain.
    pub(super) domain: Domain,
    /// The number of tokens in the beginning, which is also the maximum.
    pub(super) depth_max: u32,
    /// Requests dispatched in a row before the turn passes to the next domain.
    pub(super) batch: u32,
}

/// How the controller steers the depths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Steering {
    /// By the 90th and 99th percentile of latency histograms.
    Percentiles,
    /// By the mean device latency within windows.
    Windows,
}

/// How the generations differ.
#[derive(Debug)]
pub(super) struct Rules {
    /// The domains in the order of their turns.
    pub(super) circle: &'static [DomainSpec],
    /// How the depths are steered. With [`Steering::Windows`] only sync writes are [`Domain::Write`].
    pub(super) steering: Steering,
    /// Whether staged requests are kept apart by domain and flushed only for a token. Otherwise they wait in one list
    /// for each software queue, as in the block layer's own, and all of them are flushed when one domain runs dry.
    pub(super) stages_by_domain: bool,
    /// Whether a hardware queue stays in the wait queue although it got a token right after joining it. Its later wake-up causes an
    /// unnecessary run.
    pub(super) keeps_waiting: bool,
    /// Whether the limit for async requests follows `nr_requests`. Otherwise it is set once, with the scheduler.
    pub(super) depth_limit_follows: bool,
}

const fn spec(domain: Domain, depth_max: u32, batch: u32) -> DomainSpec {
    DomainSpec { domain, depth_max, batch }
}

const BY_WINDOWS: &[DomainSpec] =
    &[spec(Domain::Read, 256, 16), spec(Domain::Write, 128, 8), spec(Domain::Other, 64, 8)];

static WINDOWS: Rules = Rules {
    circle: BY_WINDOWS,
    steering: Steering::Windows,
    stages_by_domain: false,
    keeps_waiting: true,
    depth_limit_follows: false,
};

static STAGED_WINDOWS: Rules =
    Rules { circle: BY_WINDOWS, steering: Steering::Windows, stages_by_domain: true, ..CURRENT };

static PERCENTILES: Rules = CURRENT;

const CURRENT: Rules = Rules {
    circle: &[
        spec(Domain::Read, 256, 16),
        spec(Domain::Write, 128, 8),
        spec(Domain::Discard, 64, 1),
        spec(Domain::Other, 16, 1),
    ],
    steering: Steering::Percentiles,
    stages_by_domain: true,
    keeps_waiting: false,
    depth_limit_follows: true,
};

impl Rules {
    /// The rules of a generation.
    pub(super) fn of(generation: KyberGeneration) -> &'static Rules {
        match generation {
            KyberGeneration::Windows => &WINDOWS,
            KyberGeneration::StagedWindows => &STAGED_WINDOWS,
            KyberGeneration::Percentiles => &PERCENTILES,
        }
    }

    /// The domain of an operation.
    #[inline]
    pub(super) fn domain_of(&self, op: Op, flags: BioFlags) -> Domain {
        match (self.steering, op) {
            (_, Op::Read) => Domain::Read,
            (Steering::Percentiles, Op::Write) => Domain::Write,
            (Steering::Percentiles, Op::Discard) => Domain::Discard,
            (Steering::Windows, Op::Write) if is_sync(op, flags) => Domain::Write,
            _ => Domain::Other,
        }
    }

    /// The maximum number of tokens of a domain; 0 if the generation does not have the domain.
    pub(super) fn depth_max(&self, domain: Domain) -> u32 {
        self.circle.iter().find(|spec| spec.domain == domain).map_or(0, |spec| spec.depth_max)
    }
}
