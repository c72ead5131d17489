//! Input and results of a simulation run.
//!
//! Used by: `simulation`, `statistics`; crates `experiment`, `observed`, `calibrate`, `evidence`.
//! Tests: `crates/sim/tests/loads.rs`.

use std::sync::atomic::{AtomicBool, AtomicU64};

use hoistway_blk::ground::{Nanos, StoreError};
use hoistway_blk::queue::ConfigError;
use hoistway_blk::sysfs::AttributeError;
use hoistway_device::Preset;
use hoistway_load::{Load, LoadError};
use hoistway_measure::{IoCostSummary, IoLatencySummary, PageCacheSummary, ProcessResult, Setting};

use crate::administration::Fate;
use crate::disk::QueueSettings;
use crate::guests::Guests;
use crate::host::Host;
use crate::locks::LockUse;

/// A load on the devices of a host.
#[derive(Clone, Debug)]
pub struct Scenario<'a> {
    /// The load.
    pub workload: &'a Load,
    /// The device of each of the load's files, in the same order, except for files on [stacked
    /// devices](crate::QueueSettings::stacks), which come last; with guests the one device of the host.
    pub devices: Vec<&'a Preset>,
    /// The guests that the load runs in, if it does not run on the host itself.
    pub guests: Option<Guests>,
    /// Configuration of the queues; with guests, of the host's queue only: the guests' queues have the kernel's
    /// defaults.
    pub queue: QueueSettings,
    /// CPU costs and wake-up times.
    pub host: Host,
    /// Replaces the runtime of every process; `None` keeps it.
    pub runtime: Option<Nanos>,
}

/// One run: a scenario under one scheduler.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The setting of every queue; with guests, of the host's queue.
    pub setting: Setting,
    /// The setting of every virtual disk, if there are guests.
    pub guest: Option<Setting>,
    /// Random seed of the run. The same seed gives the same load under all schedulers.
    pub seed: u64,
}

impl RunSpec {
    /// A scheduler with its default settings, without guests.
    #[must_use]
    pub fn new(scheduler: &str, seed: u64) -> RunSpec {
        RunSpec { setting: Setting::untouched(scheduler), guest: None, seed }
    }

    /// Label in results: the scheduler, or the guests' scheduler over the host's.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.guest {
            Some(guest) => format!("{}-over-{}", guest.scheduler, self.setting.scheduler),
            None => self.setting.scheduler.clone(),
        }
    }
}

impl<'a> Scenario<'a> {
    /// Number of the load's files that are disks; the others are on stacked devices.
    pub(crate) fn file_disks(&self) -> usize {
        let files = self.workload.files.len();
        if self.guests.is_some() { files } else { files.min(self.devices.len()) }
    }

    /// Names of the disks of a run, in order: the load's files that are disks, then the host's device below guests.
    pub fn disk_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let lower = self.guests.as_ref().and(self.devices.first()).map(|preset| preset.name.as_str());
        self.workload.files.iter().take(self.file_disks()).map(String::as_str).chain(lower)
    }
}

/// Why a run cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The queue's configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Guests without a scheduler, a guest scheduler without guests, or not exactly one device below the guests.
    #[error("a run in guests needs a scheduler for them and one device below them")]
    Guests,
    /// Stacked devices and guests, or stacked devices that do not fit the load's files.
    #[error("stacked devices need a load outside of guests whose last files are on them, and direct I/O")]
    Stacks,
    /// The load does not fit on its device.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file of `queue/` was refused.
    #[error("queue/{file}={text}: {error}")]
    Attribute {
        /// The file.
        file: String,
        /// What was written.
        text: String,
        /// Why not.
        error: AttributeError,
    },
    /// A tunable was refused.
    #[error("{scheduler}.{name}={text}: {error}")]
    Tunable {
        /// The scheduler.
        scheduler: String,
        /// The tunable.
        name: String,
        /// What was written.
        text: String,
        /// Why not.
        error: StoreError,
    },
}

/// Observes and cancels a run from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Set it to end the run early.
    pub cancelled: AtomicBool,
    /// Virtual time reached, ns.
    pub reached_ns: AtomicU64,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The processes, in the order of the load.
    pub processes: Vec<ProcessResult>,
    /// Simulated virtual time.
    pub simulated: Nanos,
    /// Completed I/Os, including ramps.
    pub ios: u64,
    /// Rejected writes to files of `queue/` during the run, with the reasons.
    pub refused: Vec<String>,
    /// The outcome of each of these writes, in the order of [`QueueSettings::writes`](crate::QueueSettings::writes).
    pub fates: Vec<Fate>,
    /// Use of scheduler locks from the start of the run, including ramps.
    pub locks: LockUse,
    /// Statistics of the page cache, if a process used it.
    pub page_cache: Option<PageCacheSummary>,
    /// What `io.cost` did on each device that has it.
    pub io_cost: Vec<IoCostSummary>,
    /// What `io.latency` did on each device that has it.
    pub io_latency: Vec<IoLatencySummary>,
    /// Whether the run was cancelled before its end.
    pub partial: bool,
}
