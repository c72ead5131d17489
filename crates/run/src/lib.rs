//! Loads in real time: each process of a load lives with a worker of an engine, issues its I/Os there, and measures what
//! comes of them as the simulator does.
//!
//! ```
//! use std::sync::Arc;
//! use hoistway_engine::{Config, Engine, Memory};
//! use hoistway_load::{Issue, Load, Pattern, Process};
//! use hoistway_run::{Board, Settings, run};
//!
//! let mut load = Load::new();
//! let disk = load.file("disk");
//! let mut reader = Process::new("reader", disk, Pattern::read(4096).random());
//! reader.issue = Issue::asynchronous(8);
//! load.add(reader);
//!
//! let engine = Engine::start(&Config::default(), Memory::new(1 << 20))?;
//! let board = Arc::new(Board::new(&load));
//! let results = run(&engine, &load, &Settings::default(), &board)?;
//! assert_eq!(results[0].total_ios(), 256);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `refusals` is what cannot be done for real, `board` who runs when, `window` what a process has under way, `process` what it
//! does next.

mod board;
mod process;
mod refusals;
mod window;

pub use board::Board;
pub use refusals::{Refusal, check};

use std::collections::BTreeMap;
use std::sync::Arc;

use hoistway_blk::{ConfigError, IoPriority, Nanos};
use hoistway_engine::{Context, Engine, Group};
use hoistway_load::{Load, LoadError};
use hoistway_measure::ProcessResult;

use process::RealProcess;

/// What a run is given beside its load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// What is random in the load is drawn from it.
    pub seed: u64,
    /// Replaces the run time of every process.
    pub runtime: Option<Nanos>,
}

/// Why a load cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It asks for what cannot be done.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It does not fit the target.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A cgroup's weight is out of range.
    #[error("cgroup {cgroup}: {source}")]
    Weight {
        /// Which.
        cgroup: String,
        /// What is wrong.
        source: ConfigError,
    },
}

/// Weight of a cgroup that has not been given one.
const WEIGHT: u16 = 100;

/// Runs a load on an engine's first volume until it is done or [cancelled](Board::cancel), and answers what each process
/// measured. The board is this load's, and new.
///
/// # Errors
/// If the load asks for what cannot be done, or does not fit the volume; nothing has run then.
pub fn run(
    engine: &Engine,
    load: &Load,
    settings: &Settings,
    board: &Arc<Board>,
) -> Result<Vec<ProcessResult>, RunError> {
    check(load)?;
    let volume = engine.volume();
    let groups = groups(engine, load)?;
    let mut residents = Vec::new();
    for (number, process) in load.processes.iter().enumerate() {
        let generator = process.generator(number as u32, settings.seed, |_| volume.bytes())?;
        let standing = &process.standing;
        let group = standing.cgroup.as_ref().and_then(|name| groups.get(name.as_str()).copied());
        let ioprio = standing.io_priority.unwrap_or_else(|| IoPriority::from_nice(standing.nice));
        let context = Context { ioprio, group: group.unwrap_or(Group::ROOT) };
        residents.push((
            context,
            RealProcess::new(process, number, generator, settings, Arc::clone(board), &engine.buffers()),
        ));
    }
    for (number, (context, resident)) in residents.into_iter().enumerate() {
        volume.settle(context, number, resident);
    }
    Ok(board.wait())
}

/// The groups of the load's cgroups, by name.
fn groups<'a>(engine: &Engine, load: &'a Load) -> Result<BTreeMap<&'a str, Group>, RunError> {
    let mut weights: BTreeMap<&str, u32> = BTreeMap::new();
    for process in &load.processes {
        if let Some(cgroup) = &process.standing.cgroup {
            let weight = weights.entry(cgroup).or_insert(u32::from(WEIGHT));
            *weight = process.standing.cgroup_weight.unwrap_or(*weight);
        }
    }
    let group = |(cgroup, weight): (&'a str, u32)| {
        let group = engine.add_group(u16::try_from(weight).unwrap_or(u16::MAX));
        let failed = |source| RunError::Weight { cgroup: cgroup.to_owned(), source };
        Ok((cgroup, group.map_err(failed)?))
    };
    weights.into_iter().map(group).collect()
}
