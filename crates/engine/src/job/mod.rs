//! Loads in real time: each process of a load runs on a worker of an engine, as a [`RunningProcess`] that submits its I/Os there.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/engine/tests/jobs.rs`.
//!
//! ```
//! use std::sync::Arc;
//! use hoistway_engine::job::{JobSettings, LoadRun, run};
//! use hoistway_engine::{Config, Engine, Memory};
//! use hoistway_load::{Issue, Load, Pattern, Process};
//!
//! let mut load = Load::new();
//! let disk = load.file("disk");
//! let mut reader = Process::new("reader", disk, Pattern::read(4096).random());
//! reader.issue = Issue::asynchronous(8);
//! load.add(reader);
//!
//! let engine = Engine::start(&Config::default(), Memory::new(1 << 20))?;
//! let results = run(&engine, &load, &JobSettings::default(), &Arc::new(LoadRun::new(&load)))?;
//! assert_eq!(results[0].total_ios(), 256);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules: `refusals` lists what a real run cannot do or ignores, `load_run` is the state that processes share, `process` is one
//! process on its worker.

mod load_run;
mod process;
mod refusals;

use std::collections::BTreeMap;
use std::sync::Arc;

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::Nanos;
use hoistway_blk::queue::ConfigError;
use hoistway_load::process::RunningProcess;
use hoistway_load::{Load, LoadError};
use hoistway_measure::ProcessResult;

pub use load_run::LoadRun;
pub use refusals::{Refusal, check, notices};

use self::process::JobProcess;
use crate::{Context, Engine, Group};

/// The settings of a run other than its load.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobSettings {
    /// The seed of all random numbers of the load.
    pub seed: u64,
    /// Replaces the runtime of every process.
    pub runtime: Option<Nanos>,
}

/// Why a load cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It has an option that a real run does not support.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It does not fit the target.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A cgroup's weight is out of range.
    #[error("cgroup {cgroup}: {source}")]
    Weight {
        /// The name of the cgroup.
        cgroup: String,
        /// The error about its weight.
        source: ConfigError,
    },
}

/// The weight of a cgroup without `cgroup_weight`.
const WEIGHT: u16 = 100;

/// Runs a load on the first volume of an engine until it is done or [cancelled](LoadRun::cancel), and returns the results of its
/// processes. `shared` must be made from this load, and can be used only once.
///
/// # Errors
/// If the load has an unsupported option, or does not fit the volume; nothing has run then.
pub fn run(
    engine: &Engine,
    load: &Load,
    settings: &JobSettings,
    shared: &Arc<LoadRun>,
) -> Result<Vec<ProcessResult>, JobError> {
    check(load)?;
    let volume = engine.volume();
    let groups = groups(engine, load)?;
    let mut residents = Vec::new();
    for (number, process) in (0..).zip(&load.processes) {
        let generator = process.generator(number, settings.seed, |_| volume.bytes())?;
        let standing = &process.standing;
        let group = standing.cgroup.as_ref().and_then(|name| groups.get(name.as_str()).copied());
        let ioprio = standing.io_priority.unwrap_or_else(|| IoPriority::from_nice(standing.nice));
        let context = Context { ioprio, group: group.unwrap_or(Group::ROOT) };
        let running = RunningProcess::new(process, number, generator, settings.seed, settings.runtime);
        residents.push((context, JobProcess::new(process, number, running, Arc::clone(shared), &engine.buffers())));
    }
    shared.start(engine.now());
    for (worker, (context, resident)) in residents.into_iter().enumerate() {
        volume.settle(context, worker, resident);
    }
    Ok(shared.wait(|| engine.now()))
}

/// The groups of the load's cgroups, by name.
fn groups<'a>(engine: &Engine, load: &'a Load) -> Result<BTreeMap<&'a str, Group>, JobError> {
    let mut weights: BTreeMap<&str, u32> = BTreeMap::new();
    for process in &load.processes {
        if let Some(cgroup) = &process.standing.cgroup {
            let weight = weights.entry(cgroup).or_insert(u32::from(WEIGHT));
            *weight = process.standing.cgroup_weight.unwrap_or(*weight);
        }
    }
    let group = |(cgroup, weight): (&'a str, u32)| {
        let group = engine.add_group(u16::try_from(weight).unwrap_or(u16::MAX));
        let failed = |source| JobError::Weight { cgroup: cgroup.to_owned(), source };
        Ok((cgroup, group.map_err(failed)?))
    };
    weights.into_iter().map(group).collect()
}
