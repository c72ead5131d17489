//! The measured costs of a host, as plain data.

use super::figure::MedianOfRounds;

/// The costs of a machine. Times are ns.
#[derive(Clone, Debug)]
pub struct Costs {
    /// CPUs that the process may use.
    pub cpus: usize,
    /// CPUs of these that share the last-level cache of the first one, if the kernel shows it.
    pub cache_cpus: Option<usize>,
    /// Rounds measured, and rounds requested.
    pub rounds: [u32; 2],
    /// CPU time of an I/O through the engine over a null target, without a scheduler.
    pub engine: MedianOfRounds,
    /// The share of submissions in the block layer's time; the rest is completions.
    pub submit_share: MedianOfRounds,
    /// The schedulers.
    pub schedulers: Vec<SchedulerCost>,
    /// Time in a critical section of a list lock: requests are put on such a list for the holder of the scheduler's
    /// lock.
    pub list: MedianOfRounds,
    /// Figures that require at least two CPUs; `None` with one.
    pub contention: Option<Contention>,
    /// CPU time of a context switch between two threads on one CPU.
    pub switch: MedianOfRounds,
    /// Time from a wake-up until the thread runs, on an otherwise idle CPU: 10th and 90th percentile.
    pub wake: [MedianOfRounds; 2],
    /// CPU time that the wake-up costs the waker.
    pub waker: MedianOfRounds,
    /// Wake-ups after longer sleeps, shortest first.
    pub sleeps: Vec<Sleep>,
    /// Time from a submission until a sleeping worker of the engine has completed it: 10th and 90th percentile.
    pub worker: [MedianOfRounds; 2],
    /// The kernel's schedulers, or why they were not measured.
    pub kernel: Result<KernelCost, String>,
}

/// The cost of a scheduler on one thread, without lock contention.
#[derive(Clone, Debug)]
pub struct SchedulerCost {
    /// The scheduler's name in `queue/scheduler`.
    pub name: &'static str,
    /// CPU time of an I/O in the block layer.
    pub per_io: MedianOfRounds,
    /// Critical sections under its locks per I/O.
    pub sections_per_io: f64,
    /// Time in a critical section; `None` without a scheduler.
    pub section: Option<MedianOfRounds>,
    /// Additional CPU time per I/O compared with no scheduler, excluding critical sections; `None` without a scheduler.
    pub beside: Option<MedianOfRounds>,
    /// The operations that occur.
    pub operations: Vec<MeasuredOperation>,
    /// Number of threads, and I/Os per second of all threads together.
    pub rates: Vec<(usize, MedianOfRounds)>,
}

/// An operation of a scheduler.
#[derive(Clone, Debug)]
pub struct MeasuredOperation {
    /// As the key of a host profile calls it.
    pub name: &'static str,
    /// Time under the lock.
    pub time: MedianOfRounds,
    /// Occurrences per I/O.
    pub per_io: f64,
}

/// Figures that require several CPUs.
#[derive(Clone, Debug)]
pub struct Contention {
    /// Time to get a lock from another CPU.
    pub lock: MedianOfRounds,
    /// Time by which a critical section of mq-deadline is longer if its data also comes from another CPU; `None` if
    /// that did not occur.
    pub data: Option<MedianOfRounds>,
    /// Additional hand-over time per waiting CPU; `None` with two CPUs.
    pub growth: Option<MedianOfRounds>,
    /// Time to get a lock from a CPU with another last-level cache, and the data under it; `None` if all share one.
    pub far: Option<FarHandover>,
}

/// A hand-over between CPUs that do not share a last-level cache.
#[derive(Clone, Debug)]
pub struct FarHandover {
    /// Time to get the lock.
    pub lock: MedianOfRounds,
    /// Time by which a critical section of mq-deadline is longer; `None` if no section followed one on the other CPU.
    pub data: Option<MedianOfRounds>,
}

/// Wake-up time of a thread after a sleep.
#[derive(Clone, Debug)]
pub struct Sleep {
    /// Length of the sleep.
    pub slept_ns: u64,
    /// Median time until the thread runs.
    pub wake: MedianOfRounds,
}

/// Costs of the kernel's schedulers, measured with a null device.
#[derive(Clone, Debug)]
pub struct KernelCost {
    /// Its name, such as `nullb0`.
    pub device: String,
    /// CPU time of a read in the kernel, without the engine's own time, by scheduler.
    pub per_io: Vec<(String, MedianOfRounds)>,
}

impl Costs {
    /// Time to get a lock and its data from another CPU, ns; `None` with one CPU.
    #[must_use]
    pub fn handover_ns(&self) -> Option<u64> {
        let contention = self.contention.as_ref()?;
        Some(contention.lock.rounded() + contention.data.map_or(0, |data| data.rounded()))
    }

    /// The same from a CPU with another last-level cache; `None` if all share one.
    #[must_use]
    pub fn far_handover_ns(&self) -> Option<u64> {
        let far = self.contention.as_ref()?.far.as_ref()?;
        Some(far.lock.rounded() + far.data.map_or(0, |data| data.rounded()))
    }
}
