//! The configuration of bfq, and the constants of its heuristics. Rules: BFQ-12.

use super::variant::BfqVariant;
use crate::ground::ids::{CgroupId, Sector};
use crate::ground::kernel::{Generation, ShallowRule};
use crate::ground::time::Hz;

/// A cgroup that exists from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BfqGroup {
    /// The cgroup.
    pub cgroup: CgroupId,
    /// The cgroup above it.
    pub parent: CgroupId,
    /// Its weight, 1 to 1000.
    pub weight: u16,
}

/// What a bfq is created with: the kernel release to behave like, and the properties of its queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BfqConfig {
    /// The release.
    pub variant: BfqVariant,
    /// Length of a tick.
    pub hz: Hz,
    /// How the kernel applies a shallow depth.
    pub shallow: ShallowRule,
    /// Scheduler tags per hardware queue.
    pub nr_requests: u32,
    /// The value of `queue/async_depth` as bfq knows it; `None` in kernels without the file.
    pub async_depth: Option<u32>,
    /// Whether the device seeks.
    pub rotational: bool,
    /// The first sectors of the second and further independent actuators, ascending; empty with one actuator (BFQ-128).
    /// All sectors from the eighth actuator's first on belong to the eighth.
    pub actuators: Vec<Sector>,
    /// The cgroups, each after its parent. Others are added below the root when they first appear.
    pub groups: Vec<BfqGroup>,
}

impl BfqConfig {
    /// The configuration in a kernel of this generation, for a queue of `nr_requests` scheduler tags.
    #[must_use]
    pub fn new(generation: &Generation, nr_requests: u32, rotational: bool) -> Self {
        BfqConfig {
            variant: BfqVariant::of(generation.kernel),
            hz: generation.hz,
            shallow: generation.shallow,
            nr_requests,
            async_depth: generation.queue_async_depth.then_some(nr_requests * ASYNC_PERCENT / 100),
            rotational,
            actuators: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Milliseconds in ticks, rounded up.
    pub(super) fn ticks(&self, ms: u64) -> i64 {
        self.hz.ticks_from_millis(ms) as i64
    }

    /// Ticks in milliseconds.
    pub(super) fn millis(&self, ticks: i64) -> i64 {
        ticks * 1000 / i64::from(self.hz.0)
    }
}

/// The value that bfq sets `queue/async_depth` to, percent of the scheduler tags.
pub(super) const ASYNC_PERCENT: u32 = 75;

/// Nanoseconds in a millisecond.
pub(super) const MS: u64 = 1_000_000;

/// The default of `slice_idle`, ns.
pub(super) const SLICE_IDLE: u64 = 8 * MS;
/// The longest time that the device idles for a seeky queue, ns.
pub(super) const MIN_THINK: u64 = 2 * MS;
/// The idle timer of raised queues is at least this long, ns.
pub(super) const RAISED_IDLE_MIN: u64 = 20 * MS;

/// The largest budget until the peak rate is known, sectors.
pub(super) const DEFAULT_MAX_BUDGET: u64 = 16_384;

/// Requests at most this far apart may belong to one stream, sectors.
pub(super) const CLOSE: u64 = 8192;

/// At most this many independent actuators are distinguished.
pub(super) const ACTUATORS_MAX: usize = 8;

/// The interactive factor of weight raising.
pub(super) const RAISE_INTERACTIVE: u64 = 30;
/// The soft real-time factor.
pub(super) const RAISE_SOFT_RT: u64 = 30 * 100;
/// How long soft real-time raising lasts, ms.
pub(super) const SOFT_RT_RAISE_MS: u64 = 300;
/// A queue that was empty for longer than this is interactive when it comes back, ms.
pub(super) const MIN_IDLE_MS: u64 = 2000;
/// An async queue is raised if a request comes at least this long after the last one, ms.
pub(super) const MIN_ASYNC_GAP_MS: u64 = 500;
/// Soft real-time queues need at most this many sectors a second.
pub(super) const SOFT_RT_RATE_MAX: u64 = 7000;
/// Interactive raising ends after this many sectors.
pub(super) const RAISE_SERVICE_MAX: u64 = 120_000;
/// Reference rates, fixed point sectors/us: rotational, flash.
pub(super) const REFERENCE_RATE: [u64; 2] = [14_000, 33_000];
/// Reference durations of interactive raising, ms: rotational, flash.
pub(super) const REFERENCE_RAISE_MS: [u64; 2] = [7000, 2500];
/// The shortest interactive raising, ms.
pub(super) const INTERACTIVE_RAISE_MIN_MS: u64 = 3000;

/// This number of queues created in a row is a large burst.
pub(super) const LARGE_BURST: u32 = 8;
/// Queues created within this time belong to one burst, ms. Also the gap of a stable merge.
pub(super) const BURST_INTERVAL_MS: u64 = 180;
/// A queue that was empty for this long no longer counts as created in a burst, ms.
pub(super) const BURST_FORGOTTEN_MS: u64 = 10_000;
/// A stable merge happens this long after the queue's creation, and not with a queue that is older by more than this,
/// ms.
pub(super) const STABLE_MERGE_MS: u64 = 600;

/// A waker completes its request less than this before the woken queue's arrives, ns.
pub(super) const WAKER_DELAY: u64 = 4 * MS;
/// This number of coincidences makes a waker.
pub(super) const WAKER_DETECTIONS: u32 = 3;

/// A tick so far in the past that every "older than" comparison with it is true (BFQ-3).
pub(super) const LONG_AGO_TICK: i64 = i64::MIN / 4;
/// "Boot time" for a nanosecond instant: the (unsigned, wrapping) time since then is practically infinite (BFQ-7).
pub(super) const LONG_AGO: u64 = 0u64.wrapping_sub(1 << 62);
