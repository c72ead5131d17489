//! What one process of a load is asked to do.

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
    /// What results repeat of it: names and values that mean something to the author of the load.
    pub options: Arc<[(String, String)]>,
    /// When it runs, and with whom.
    pub schedule: Schedule,
    /// How it issues I/O.
    pub issue: Issue,
    /// What lies between it and its devices, and what it does for durability.
    pub caching: Caching,
    /// How fast it goes.
    pub pace: Pace,
    /// Latencies that decide how deep it goes, and when it fails.
    pub latency: Latency,
    /// It ends when its results are steady, those of its group if that is reported as one.
    pub steady_state: Option<SteadyState>,
    /// What the host makes of it.
    pub standing: Standing,
    /// If its I/Os are wanted for log files, what these hold. Whoever runs a load asks for them.
    pub log: Option<LogSettings>,
    /// What its logs hold, if there are any.
    pub log_settings: LogSettings,
    /// The devices that it uses, each once: indices into [`Load::files`](crate::Load::files).
    pub files: Arc<[u32]>,
    /// Which I/Os it issues.
    pub plan: IoPlan,
}

impl Process {
    /// A process that works on all of one file, by this pattern: with direct I/O, one at a time, until it is done.
    #[must_use]
    pub fn new(name: &str, file: u32, pattern: Pattern) -> Process {
        let (files, plan) = ([file].into(), IoPlan::new(pattern));
        Process { name: name.to_owned(), files, plan, ..Process::default() }
    }

    /// Whether it can be run, as far as it alone is concerned.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), LoadError> {
        check::process(self).map_err(|error| error.of(&self.name, self.plan.origin.as_ref()))
    }

    /// Where it works on devices of `device_bytes` each: for each of its files the first byte and the length. Nothing
    /// for a replay.
    ///
    /// # Errors
    /// As for [`Process::generator`].
    pub fn ranges(&self, device_bytes: u64) -> Result<Vec<(u64, u64)>, LoadError> {
        self.plan.ranges(device_bytes).map_err(|error| error.of(&self.name, self.plan.origin.as_ref()))
    }

    /// What paces it as process `number` of its load, if anything does. The same seed gives the same gaps.
    #[must_use]
    pub fn pacer(&self, number: u32, seed: u64) -> Option<Pacer> {
        if let Some(replay) = &self.plan.replay {
            return (replay.summary.has_pauses && replay.waits_on.is_none()).then(Pacer::of_replay);
        }
        self.pace.rate.map(|rate| Pacer::new(rate, self.plan.block_bytes_min(), seed, number))
    }
}

/// When a process runs, and with whom.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// The job that it is of, counted from 0.
    pub job: usize,
    /// Which clone of the job, from 0.
    pub clone: u32,
    /// Number of its reporting group.
    pub group: u32,
    /// Whether the processes of its group are reported as one.
    pub group_reporting: bool,
    /// How its directions are reported.
    pub reporting: Reporting,
    /// Processes of a phase start together, when all those of the phase before have ended.
    pub phase: u32,
    /// It starts, in its phase, when all processes of this job have ended: one before its own.
    pub wait_for: Option<usize>,
    /// Whom it ends when it ends.
    pub ends: Option<Ends>,
    /// It starts that much after its phase.
    pub start_delay: Nanos,
    /// Time before measurement starts, in addition to `runtime`.
    pub ramp: Nanos,
    /// It ends after this time from the end of `ramp`, if it is not done before.
    pub runtime: Option<Nanos>,
}

/// Whom the first process that ends takes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Its reporting group.
    Group,
    /// All of its phase.
    Phase,
    /// All, those of later phases too.
    All,
}

/// How a process issues I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Issue {
    /// Through which interface.
    pub engine: Engine,
    /// I/Os that it keeps in flight, at least 1; 1 if its I/O is not direct.
    pub depth: u32,
    /// Once full, it lets its queue drain to this before it submits again.
    pub depth_low: Option<u32>,
    /// I/Os that it submits at once, at most `depth`.
    pub batch: u32,
    /// Completions that it waits for when its queue is full; 0 polls.
    pub complete_min: u32,
    /// Most completions that it takes at once, at least `complete_min` and 1.
    pub complete_max: u32,
    /// Whether it looks for its completions instead of waiting for an interrupt, where a device can do that.
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
    /// So many I/Os in flight, by an engine that can.
    #[must_use]
    pub fn asynchronous(depth: u32) -> Issue {
        Issue { engine: Engine::Libaio, depth, ..Issue::default() }
    }
}

/// The interface by which a process issues I/O.
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

/// What lies between a process and its devices, and what it does for durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caching {
    /// Whether it bypasses the page cache. If not, it has one I/O in flight.
    pub direct: bool,
    /// Whether it drops what the page cache has of its files before its first I/O.
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

/// Latencies that decide how deep a process goes, and when it fails.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// It searches the largest depth that keeps a latency, instead of keeping as many I/Os in flight as it may.
    pub target: Option<LatencyTarget>,
    /// It fails when a read, write or trim takes longer than this; zero for never.
    pub max: [Nanos; 3],
}

/// What a process that searches its depth looks for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// The latency to keep.
    pub target: Nanos,
    /// How long a depth is tried.
    pub window: Nanos,
    /// How many percent of the I/Os have to keep it.
    pub percentile: f64,
    /// Whether the process goes on when it has found the depth.
    pub goes_on: bool,
}

impl Default for LatencyTarget {
    /// None, for all I/Os.
    fn default() -> Self {
        LatencyTarget { target: Nanos::ZERO, window: Nanos::ZERO, percentile: 100.0, goes_on: false }
    }
}

/// When results are steady.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// What must be steady.
    pub steadiness: Steadiness,
    /// For how many samples of a second, at least 1.
    pub seconds: u32,
    /// Time before the first of them.
    pub ramp: Nanos,
}

/// What makes samples of a second steady.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steadiness {
    /// What is looked at.
    pub figure: SteadyFigure,
    /// Whether its slope must be below `limit`, by second, or its largest distance from the mean.
    pub is_slope: bool,
    /// The limit, in I/Os or bytes, or in percent of the mean.
    pub limit: f64,
    /// Whether the limit is in percent.
    pub is_percent: bool,
}

impl Default for Steadiness {
    /// fio's: I/Os per second that neither rise nor fall.
    fn default() -> Self {
        Steadiness { figure: SteadyFigure::Ios, is_slope: true, limit: 0.01, is_percent: true }
    }
}

/// What is to be steady.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyFigure {
    /// I/Os per second.
    Ios,
    /// Bytes per second.
    Bytes,
}

/// What the host makes of a process: its priority, its cgroup and its CPUs.
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

/// What the log files of a process hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// Window over which entries are averaged; zero for an entry for each I/O.
    pub window: Nanos,
    /// Whether a window has the largest latency, not the mean.
    pub is_maximum: bool,
    /// Whether entries have the offset of their I/O.
    pub offsets: bool,
    /// Whether entries have the whole priority of their I/O.
    pub priorities: bool,
    /// Window of histograms; zero for none.
    pub histogram_window: Nanos,
    /// As many powers of two of a histogram's bins are put together, at most 6.
    pub histogram_coarseness: u8,
}
