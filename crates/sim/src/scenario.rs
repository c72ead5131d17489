//! What a run is given and what comes out of it.

use std::sync::atomic::{AtomicBool, AtomicU64};

use hoistway_blk::ground::{Nanos, StoreError};
use hoistway_blk::queue::ConfigError;
use hoistway_blk::sysfs::AttributeError;
use hoistway_device::Preset;
use hoistway_load::{Load, LoadError};
use hoistway_measure::PageCacheSummary;
use hoistway_measure::ProcessResult;

use crate::administration::Fate;
use crate::disk::QueueSettings;
use crate::guests::{GuestSpec, Guests};
use crate::host::Host;
use crate::locks::LockUse;

/// What is simulated: a load on devices, on a host.
#[derive(Clone, Debug)]
pub struct Scenario<'a> {
    /// The load.
    pub workload: &'a Load,
    /// The device of each of the load's files, in the same order; with guests the one device of the host.
    pub devices: Vec<&'a Preset>,
    /// The guests that the load runs in, if it does not run on the host itself.
    pub guests: Option<Guests>,
    /// How queues are made; with guests that of the host. Their queues are as they come.
    pub queue: QueueSettings,
    /// What CPU time costs and how long wake-ups take.
    pub host: Host,
    /// Replaces the runtime of every process.
    pub runtime: Option<Nanos>,
}

/// One run: a scenario under one scheduler.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The scheduler of every queue, of the host if there are guests.
    pub scheduler: String,
    /// Its tunables: name and text, as written to sysfs.
    pub tunables: Vec<(String, String)>,
    /// What is set in the guests, if there are any.
    pub guest: Option<GuestSpec>,
    /// Everything random is drawn from it. Equal seeds give equal loads under all schedulers.
    pub seed: u64,
}

impl RunSpec {
    /// What it is called in results: the scheduler, or that of the guests over that of the host.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.guest {
            Some(guest) => format!("{}-over-{}", guest.scheduler, self.scheduler),
            None => self.scheduler.clone(),
        }
    }
}

impl<'a> Scenario<'a> {
    /// The names of the disks of a run, in their order: the load's files, and the host's device below guests.
    pub fn disk_names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let lower = self.guests.as_ref().and(self.devices.first()).map(|preset| preset.name.as_str());
        self.workload.files.iter().map(String::as_str).chain(lower)
    }
}

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The queue cannot be made.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Guests without a scheduler, or the scheduler of guests without any; or not one device for them.
    #[error("a run in guests needs a scheduler for them and one device below them")]
    Guests,
    /// The load does not fit its device.
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

/// What the outside may see and do during a run.
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
    /// What became of each of these writes, in the order of [`QueueSettings::writes`](crate::QueueSettings::writes).
    pub fates: Vec<Fate>,
    /// What locks of schedulers took, from the start of the run, ramps included.
    pub locks: LockUse,
    /// What the page cache did, if a process used it.
    pub page_cache: Option<PageCacheSummary>,
    /// Whether the run was cancelled before its end.
    pub partial: bool,
}
