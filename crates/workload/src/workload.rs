//! What a job file asks for, as data: one [`Process`] for each clone of each job.

use std::sync::Arc;

use hoistway_blk::{IoPriority, Nanos};

use crate::build;
use crate::jobfile::{self, Environment};
use crate::{IoPlan, JobFileError, Pacer};

/// Everything that a job file asks for.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The processes: jobs in the order of the file, clones of a job next to each other.
    pub processes: Vec<Process>,
    /// The distinct files that the processes use, in order of first use. One file is one device.
    pub files: Vec<String>,
    /// What the user should know: options that were ignored, options without effect. One sentence each.
    pub notices: Vec<String>,
    /// The options of all `[global]` sections by fio's own names, as fio's JSON output repeats them; options
    /// without a value are left out, as fio does. A repeated option appears once, with its last value.
    pub global_options: Vec<(String, String)>,
    /// The text of the job file.
    pub text: String,
}

impl Workload {
    /// Reads the fio job file `text`, called `file_name` in messages.
    ///
    /// # Errors
    /// The first thing in the file that fio would refuse, that fio would silently misread, or that would
    /// change the results and is not modelled.
    ///
    /// ```
    /// use hoistway_workload::{Environment, Workload};
    ///
    /// let text = "[writers]\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nioengine=libaio\niodepth=4\nnumjobs=2\n";
    /// let workload = Workload::parse(text, "jobs.fio", &Environment::empty())?;
    /// assert_eq!(workload.processes.len(), 2);
    ///
    /// let mut ios = workload.processes[0].plan.generator(1, 1 << 30)?;
    /// assert_eq!(ios.next().map(|io| io.bytes), Some(4096));
    /// # Ok::<(), hoistway_workload::JobFileError>(())
    /// ```
    pub fn parse(text: &str, file_name: &str, environment: &Environment<'_>) -> Result<Workload, JobFileError> {
        let document = jobfile::read(text, file_name, environment)?;
        build::workload(&document, text, environment)
    }
}

/// One process (or thread) of a job.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its position in [`Workload::processes`]; its random numbers depend on it.
    pub index: u32,
    /// Name of the job; the same for all clones unless `name=` renames the first.
    pub name: String,
    /// What `description=` says.
    pub description: Option<String>,
    /// The job, counted from 0 without `[global]` sections.
    pub job: usize,
    /// Which clone of the job, from 0.
    pub clone: u32,
    /// fio's number of the reporting group.
    pub group: u32,
    /// Processes of a phase start together, when all those of the phase before have ended (`stonewall`).
    pub phase: u32,
    /// It starts, in its phase, when all processes of this job have ended (`wait_for`).
    pub wait_for: Option<usize>,
    /// Whom it ends when it ends (`exitall`).
    pub ends: Option<Ends>,
    /// Whether the processes of its group are reported as one.
    pub group_reporting: bool,
    /// The job section's own options by fio's own names, as fio's JSON output repeats them: without those of
    /// `[global]` and those without a value.
    pub options: Arc<[(String, String)]>,
    /// How it issues I/O.
    pub engine: Engine,
    /// I/Os that it keeps in flight, at least 1; always 1 with a synchronous engine, or if its I/O is not direct.
    pub iodepth: u32,
    /// I/Os that it submits at once, 1 to `iodepth`.
    pub submit_batch: u32,
    /// Completions that it waits for when its queue is full; 0 polls.
    pub complete_min: u32,
    /// Most completions that it takes at once, at least `complete_min` and 1.
    pub complete_max: u32,
    /// Once full, it lets its queue drain to this before it submits again; `iodepth` for no such pause.
    pub iodepth_low: u32,
    /// Whether it looks for its completions instead of waiting for an interrupt, where a device can do that (`hipri`).
    pub polls: bool,
    /// Whether it bypasses the page cache. If not, it has one I/O in flight: see `iodepth`.
    pub direct: bool,
    /// Whether it drops what the page cache has of its files before its first I/O.
    pub invalidate: bool,
    /// Whether each write must be durable before it completes.
    pub write_sync: WriteSync,
    /// Whether it flushes its devices at its end, as part of its run time (`end_fsync`).
    pub end_fsync: bool,
    /// It ends after this time from the end of `ramp`, if the plan does not end before.
    pub runtime: Option<Nanos>,
    /// Whether it goes on until `runtime` is over, however often its size is done.
    pub time_based: bool,
    /// Time before measurement starts, in addition to `runtime`.
    pub ramp: Nanos,
    /// It starts that much after its phase.
    pub start_delay: Nanos,
    /// Pauses between I/Os.
    pub think: Option<Think>,
    /// Limits of its pace.
    pub rate: Option<Rate>,
    /// Its part in a balance between processes.
    pub flow: Option<Flow>,
    /// It searches the largest depth that keeps a latency, instead of keeping `iodepth` I/Os in flight.
    pub latency_target: Option<LatencyTarget>,
    /// It fails when a read, write or trim takes longer than this; zero for never.
    pub max_latency: [Nanos; 3],
    /// It ends when its results are steady, those of its group if that is reported as one.
    pub steady_state: Option<SteadyState>,
    /// Whether it issues no I/O that overlaps one in flight.
    pub serialize_overlap: bool,
    /// The I/O priority that it sets; `None` leaves it to the nice level.
    pub io_priority: Option<IoPriority>,
    /// Its nice level, -20 to 19.
    pub nice: i8,
    /// Name of the cgroup that its I/O is charged to.
    pub cgroup: Option<String>,
    /// I/O weight of that cgroup.
    pub cgroup_weight: Option<u32>,
    /// The CPUs that it may run on, sorted; `None` for all.
    pub cpus_allowed: Option<Arc<[u32]>>,
    /// The devices that it uses, each once: indices into [`Workload::files`].
    pub files: Arc<[u32]>,
    /// If its I/Os are wanted for log files, what these hold. A job file alone asks for none: whoever runs it does.
    pub log: Option<LogSettings>,
    /// What its logs hold, if there are any.
    pub log_settings: LogSettings,
    /// Which I/Os it issues.
    pub plan: IoPlan,
}

impl Process {
    /// The pacer of its rate limits, if it has any. The same `seed` gives the same gaps.
    #[must_use]
    pub fn pacer(&self, seed: u64) -> Option<Pacer> {
        if let Some(replay) = self.plan.replay.as_ref().filter(|replay| replay.has_pauses()) {
            return Some(Pacer::of_replay(replay));
        }
        self.rate.map(|rate| Pacer::new(rate, self.plan.block_bytes_min(), seed, self.index))
    }
}

/// What the log files of a process hold: the options `log_...`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

/// Whom the first process that ends takes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// Its reporting group.
    Group,
    /// All of its phase.
    Phase,
    /// All, those of later phases too.
    All,
}

/// How a process issues I/O.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Engine {
    /// Linux native asynchronous I/O.
    Libaio,
    /// io_uring.
    IoUring,
    /// POSIX asynchronous I/O (threads of the C library).
    Posixaio,
    /// pread and pwrite; fio's default.
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
    /// All of them.
    pub const ALL: [Engine; 8] = [
        Engine::Libaio,
        Engine::IoUring,
        Engine::Posixaio,
        Engine::Psync,
        Engine::Sync,
        Engine::Vsync,
        Engine::Pvsync,
        Engine::Pvsync2,
    ];

    /// fio's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Libaio => "libaio",
            Engine::IoUring => "io_uring",
            Engine::Posixaio => "posixaio",
            Engine::Psync => "psync",
            Engine::Sync => "sync",
            Engine::Vsync => "vsync",
            Engine::Pvsync => "pvsync",
            Engine::Pvsync2 => "pvsync2",
        }
    }

    /// Whether it can keep more than one I/O in flight.
    #[must_use]
    pub const fn is_asynchronous(self) -> bool {
        matches!(self, Engine::Libaio | Engine::IoUring | Engine::Posixaio)
    }
}

/// Whether a write is durable when it completes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WriteSync {
    /// No.
    #[default]
    None,
    /// Data and metadata (O_SYNC).
    Sync,
    /// Data (O_DSYNC).
    Dsync,
}

/// Pauses of a process. It first waits for its outstanding I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Think {
    /// Length of a pause, without `spin`.
    pub sleep: Nanos,
    /// How long the process keeps its CPU busy before it sleeps.
    pub spin: Nanos,
    /// I/Os between two pauses; 0 for pauses by time only.
    pub blocks: u32,
    /// Time of I/O between two pauses; zero for pauses by I/Os only. With both, what comes first.
    pub io_time: Nanos,
    /// Whether a limited rate goes on after a pause as if it had not been, instead of making up for it.
    pub is_lost_to_rate: bool,
    /// Which I/Os count.
    pub counting: ThinkBlocks,
}

/// Which I/Os count towards a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThinkBlocks {
    /// Those that have completed.
    Completed,
    /// Those that were issued.
    Issued,
}

/// What a process that searches its depth looks for.
#[derive(Clone, Copy, PartialEq, Debug)]
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

/// When results are steady.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyState {
    /// What must be steady.
    pub steadiness: Steadiness,
    /// For how many samples of a second, at least 1.
    pub seconds: u32,
    /// Time before the first of them.
    pub ramp: Nanos,
}

/// What makes samples of a second steady.
#[derive(Clone, Copy, PartialEq, Debug)]
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

/// What is to be steady.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SteadyFigure {
    /// I/Os per second.
    Ios,
    /// Bytes per second.
    Bytes,
}

/// A process's part in a balance: the I/Os of all processes with the same `id` are in the proportions of their weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Which balance.
    pub id: u32,
    /// At least 1.
    pub weight: u32,
    /// How long a process that is ahead sleeps before it tries again; zero for until it may go on.
    pub sleep: Nanos,
}

/// Limits of a process's pace, for reads, writes and trims; 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// How much per second.
    pub limits: RateLimits,
    /// How the gaps between I/Os are distributed.
    pub process: RateProcess,
}

/// What a rate counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimits {
    /// Bytes per second.
    Bytes([u64; 3]),
    /// I/Os per second.
    Ios([u64; 3]),
}

/// How the gaps between I/Os of a limited rate are distributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateProcess {
    /// All the same.
    Linear,
    /// Exponentially: a Poisson process.
    Poisson,
}
