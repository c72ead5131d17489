//! The description of one process of a load.
//!
//! Used by: `process`, `load`, `fsync`, `generator`; crates `fio`, `experiment`, `engine`, `sim`, `program` and others.
//! Tests: `crates/load/tests/process.rs`, `crates/load/tests/bounds.rs`.

mod check;

use std::sync::Arc;

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::Nanos;
use hoistway_measure::Reporting;
use serde::{Deserialize, Serialize};

use crate::pace::Pace;
use crate::{IoPlan, LoadError, Pacer, Pattern};

/// One process (or thread).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// Its name; clones of a job may share one.
    pub name: String,
    /// Names and values that results repeat: they mean something to the author of the load.
    pub options: Arc<[(String, String)]>,
    /// When it runs, and its dependencies on others.
    pub schedule: Schedule,
    /// How it issues I/O.
    pub issue: Issue,
    /// The page cache and durability.
    pub caching: Caching,
    /// Think times, rate limits and balance.
    pub pace: Pace,
    /// Latency limits that set its depth or make it fail.
    pub latency: Latency,
    /// Ends the process when its results are steady, or those of its group if the group is reported as one.
    pub steady_state: Option<SteadyState>,
    /// Its priority, cgroup and CPUs.
    pub standing: Standing,
    /// Contents of its logs if its I/Os are logged; set by the runner of the load.
    pub log: Option<LogSettings>,
    /// Contents of its logs, if the runner turns logging on.
    pub log_settings: LogSettings,
    /// The devices that it uses, each once: indices into [`Load::files`](crate::Load::files).
    pub files: Arc<[u32]>,
    /// Which I/Os it issues.
    pub plan: IoPlan,
}

impl Process {
    /// A process that works on all of one file with this pattern: direct I/O, depth 1, until the work is done.
    #[must_use]
    pub fn new(name: &str, file: u32, pattern: Pattern) -> Process {
        let (files, plan) = ([file].into(), IoPlan::new(pattern));
        Process { name: name.to_owned(), files, plan, ..Process::default() }
    }

    /// Checks whether it can be run, independently of other processes.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), LoadError> {
        check::process(self).map_err(|error| error.in_process(&self.name, self.plan.origin.as_ref()))
    }

    /// The regions that it works on, on devices of `device_bytes` each: for each of its files the first byte and the
    /// length. Empty for a replay.
    ///
    /// # Errors
    /// The same as [`Process::generator`].
    pub fn ranges(&self, device_bytes: u64) -> Result<Vec<(u64, u64)>, LoadError> {
        self.plan.ranges(device_bytes).map_err(|error| error.in_process(&self.name, self.plan.origin.as_ref()))
    }

    /// The pacer of the process with this number in its load, if its rate is limited. The same seed gives the same
    /// gaps.
    #[must_use]
    pub fn pacer(&self, number: u32, seed: u64) -> Option<Pacer> {
        if let Some(replay) = &self.plan.replay {
            return (replay.summary.has_pauses && replay.waits_on.is_none()).then(Pacer::for_replay);
        }
        self.pace.rate.map(|rate| Pacer::new(rate, self.plan.block_bytes_min(), seed, number))
    }
}

/// When a process runs, and its dependencies on others.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// Index of its job, from 0.
    pub job: usize,
    /// Index among the clones of its job, from 0.
    pub clone: u32,
    /// Number of its reporting group.
    pub group: u32,
    /// Whether the processes of its group are reported as one.
    pub group_reporting: bool,
    /// How its directions are reported.
    pub reporting: Reporting,
    /// Processes of a phase start together, when all processes of the previous phase have ended.
    pub phase: u32,
    /// It starts, within its phase, when all processes of this earlier job have ended.
    pub wait_for: Option<usize>,
    /// Which processes it ends when it ends.
    pub ends: Option<Ends>,
    /// Delay of its start after the start of its phase.
    pub start_delay: Nanos,
    /// fio waits for the end of the delay, and looks only about every 100 ms whether it is over: the process starts at one of
    /// [`start_times`](crate::process::start_times).
    pub polled_start: bool,
    /// Time before measurement starts, in addition to `runtime`.
    pub ramp: Nanos,
    /// Maximum run time, from the end of `ramp`; `None` for no limit.
    pub runtime: Option<Nanos>,
}

impl Schedule {
    /// Whether it starts when fio finds its delay over, and not exactly then.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.polled_start && self.start_delay > Nanos::ZERO
    }
}

/// Which other processes end with the first one that ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Its reporting group.
    Group,
    /// All of its phase.
    Phase,
    /// All processes, including those of later phases.
    All,
}

/// How a process submits I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Issue {
    /// The interface.
    pub engine: Engine,
    /// I/Os that it keeps in flight, at least 1; 1 if its I/O is not direct.
    pub depth: u32,
    /// Once full, it lets its queue drain to this depth before it submits again.
    pub depth_low: Option<u32>,
    /// I/Os per submission, at most `depth`.
    pub batch: u32,
    /// Completions that it waits for when its queue is full; 0 to poll.
    pub complete_min: u32,
    /// Maximum completions that it reaps at once, at least `complete_min` and 1.
    pub complete_max: u32,
    /// Whether it polls for completions instead of waiting for an interrupt, if the device supports that.
    pub polls: bool,
    /// Whether it issues no I/O that overlaps one in flight.
    pub serialize_overlap: bool,
}

impl Default for Issue {
    fn default() -> Self {
        Issue {
            engine: Engine::Psync,
            depth: 1,
            depth_low: None,
            batch: 1,
            complete_min: 1,
            complete_max: 1,
            polls: false,
            serialize_overlap: false,
        }
    }
}

impl Issue {
    /// Keeps `depth` I/Os in flight, with an asynchronous engine.
    #[must_use]
    pub fn asynchronous(depth: u32) -> Issue {
        Issue { engine: Engine::Libaio, depth, ..Issue::default() }
    }
}

/// The interface through which a process submits I/O.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Linux native asynchronous I/O.
    Libaio,
    /// io_uring.
    IoUring,
    /// POSIX asynchronous I/O (threads of the C library).
    Posixaio,
    /// pread and pwrite.
    Psync,
    /// lseek, read and write.
    Sync,
    /// readv and writev.
    Vsync,
    /// preadv and pwritev.
    Pvsync,
    /// preadv2 and pwritev2.
    Pvsync2,
}

impl Engine {
    /// Whether it can keep more than one I/O in flight by itself.
    #[must_use]
    pub const fn is_asynchronous(self) -> bool {
        matches!(self, Engine::Libaio | Engine::IoUring | Engine::Posixaio)
    }
}

/// How a process uses the page cache, and what it does for durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caching {
    /// Whether it bypasses the page cache. A buffered process has one I/O in flight.
    pub direct: bool,
    /// Whether it drops the cached pages of its files before its first I/O.
    pub invalidate: bool,
    /// Whether each write must be durable before it completes.
    pub write_sync: WriteSync,
    /// Whether it flushes its devices at its end, as part of its run time.
    pub end_fsync: bool,
}

impl Default for Caching {
    fn default() -> Self {
        Caching { direct: true, invalidate: true, write_sync: WriteSync::None, end_fsync: false }
    }
}

/// Whether a write is durable when it completes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteSync {
    /// No.
    #[default]
    None,
    /// Data and metadata (O_SYNC).
    Sync,
    /// Data (O_DSYNC).
    Dsync,
}

/// Latency limits that set the depth of a process or make it fail.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// It searches for the largest depth that keeps a latency, instead of using its full depth.
    pub target: Option<LatencyTarget>,
    /// It fails when a read, write or trim takes longer than this; zero for no limit.
    pub max: [Nanos; 3],
}

/// The latency target of a process that searches for its depth.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// The latency to keep.
    pub target: Nanos,
    /// How long each depth is tried.
    pub window: Nanos,
    /// The percentage of I/Os that must keep the latency.
    pub percentile: f64,
    /// Whether the process continues after it has found the depth.
    pub goes_on: bool,
}

impl Default for LatencyTarget {
    /// No search: the percentile includes all I/Os.
    fn default() -> Self {
        LatencyTarget { target: Nanos::ZERO, window: Nanos::ZERO, percentile: 100.0, goes_on: false }
    }
}

/// When results count as steady.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// The criterion.
    pub steadiness: Steadiness,
    /// Number of one-second samples, at least 1.
    pub seconds: u32,
    /// Time before the first sample.
    pub ramp: Nanos,
}

/// The criterion for steady samples.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steadiness {
    /// The figure.
    pub figure: SteadyFigure,
    /// Whether the slope per second must be below `limit`; otherwise the largest distance from the mean.
    pub is_slope: bool,
    /// The limit, in I/Os or bytes, or in percent of the mean.
    pub limit: f64,
    /// Whether the limit is in percent.
    pub is_percent: bool,
}

impl Default for Steadiness {
    /// The default of fio: I/Os per second that neither rise nor fall.
    fn default() -> Self {
        Steadiness { figure: SteadyFigure::Ios, is_slope: true, limit: 0.01, is_percent: true }
    }
}

/// A figure whose steadiness is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyFigure {
    /// I/Os per second.
    Ios,
    /// Bytes per second.
    Bytes,
}

/// What a process inherits from the host: priority, cgroup and CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Standing {
    /// The I/O priority that it sets; `None` leaves it to the nice level.
    pub io_priority: Option<IoPriority>,
    /// Its nice level, -20 to 19.
    pub nice: i8,
    /// Name of the cgroup that its I/O is charged to.
    pub cgroup: Option<String>,
    /// I/O weight of that cgroup.
    pub cgroup_weight: Option<u32>,
    /// The CPUs that it may run on, sorted; `None` for all.
    pub cpus: Option<Arc<[u32]>>,
}

/// The contents of a process's log files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// Window over which entries are averaged; zero for one entry per I/O.
    pub window: Nanos,
    /// Whether a window reports the largest latency instead of the mean.
    pub is_maximum: bool,
    /// Whether entries contain the offset of their I/O.
    pub offsets: bool,
    /// Whether entries contain the full priority of their I/O.
    pub priorities: bool,
    /// Window of histograms; zero for none.
    pub histogram_window: Nanos,
    /// Number of powers of two by which histogram bins are merged, at most 6.
    pub histogram_coarseness: u8,
}
