//! Virtual time: tasks on modelled CPUs put load on the block layer over device models, in one event loop.
//!
//! * [`run`] simulates one load under one scheduler; same seed, same bits.
//! * Independent runs go side by side over all cores; one run is single-threaded.
//!
//! The way of time: `events` (the queue), `task` (what a process does), `cgroups` and
//! `throttling` (whose I/O it is, and what it may), `disk` and `driver` (what is below the block layer), `measure` (what comes out), `simulation` (the loop).

mod cgroups;
mod comparison;
mod disk;
mod driver;
mod events;
mod measure;
mod simulation;
mod task;
mod throttling;

pub use comparison::{compare, watched};
pub use disk::{QueueSettings, WORKER_HOP};
pub use simulation::{Control, RunError, RunResult, RunSpec, Scenario, run, run_probed};
