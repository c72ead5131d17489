//! Virtual time: tasks on modelled CPUs put load on the block layer over device models, in one event loop.
//!
//! * [`run`] simulates one load under one scheduler; same seed, same bits.
//! * Independent runs go side by side over all cores; one run is single-threaded.
//!
//! The way of time: `events` (the queue) and `clock`, `host` and `cpu` (what reacting costs), `task` (what a process does),
//! `cgroups` and `throttling` (whose I/O it is, and what it may), `administration` (who changes the queue meanwhile),
//! `page_cache` (for I/O that is not direct), `disk` and `driver` (what is below the block layer),
//! `measure` and `statistics` (what comes out), `scenario` (what goes in), `simulation` (the loop).

mod administration;
mod cgroups;
mod clock;
mod comparison;
mod cpu;
mod disk;
mod driver;
mod events;
mod host;
mod measure;
mod page_cache;
mod runs;
mod scenario;
mod simulation;
mod statistics;
mod task;
mod throttling;

pub use administration::Write;
pub use comparison::{compare, watched};
pub use disk::QueueSettings;
pub use host::{Host, HostError};
pub use scenario::{Control, RunError, RunResult, RunSpec, Scenario};
pub use simulation::{run, run_probed};
