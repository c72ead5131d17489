//! What a run is given and what comes out of it.

use std::sync::atomic::{AtomicBool, AtomicU64};

use hoistway_blk::{AttributeError, ConfigError, Nanos, StoreError};
use hoistway_device::Preset;
use hoistway_results::ProcessResult;
use hoistway_results::document::PageCacheSummary;
use hoistway_workload::{JobFileError, Workload};

use crate::disk::QueueSettings;
use crate::host::Host;

/// What is simulated: a load on devices, on a host.
#[derive(Clone, Debug)]
pub struct Scenario<'a> {
    /// The load.
    pub workload: &'a Workload,
    /// The device of each of the load's files, in the same order.
    pub devices: Vec<&'a Preset>,
    /// How queues are made.
    pub queue: QueueSettings,
    /// What CPU time costs and how long wake-ups take.
    pub host: Host,
    /// Replaces the runtime of every process.
    pub runtime: Option<Nanos>,
}

/// One run: a scenario under one scheduler.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The scheduler of every queue.
    pub scheduler: String,
    /// Its tunables: name and text, as written to sysfs.
    pub tunables: Vec<(String, String)>,
    /// Everything random is drawn from it. Equal seeds give equal loads under all schedulers.
    pub seed: u64,
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The queue cannot be made.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The load does not fit its device.
    #[error(transparent)]
    Load(#[from] JobFileError),
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

/// What the outside may see and do while a run is under way.
#[derive(Debug, Default)]
pub struct Control {
    /// Set it to end the run early.
    pub cancelled: AtomicBool,
    /// Virtual time reached, ns.
    pub reached_ns: AtomicU64,
}

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The processes, in the order of the load.
    pub processes: Vec<ProcessResult>,
    /// Virtual time that passed.
    pub simulated: Nanos,
    /// I/Os that ended, ramps included.
    pub ios: u64,
    /// Writes to files of `queue/` during the run that were refused, and why.
    pub refused: Vec<String>,
    /// What the page cache did, if a process used it.
    pub page_cache: Option<PageCacheSummary>,
    /// Whether the run was cancelled before its end.
    pub partial: bool,
}
