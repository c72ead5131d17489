//! Virtual time: tasks on modelled CPUs put load on the block layer over device models, in one event loop.
//!
//! Used by: crates `experiment`, `hoistway`, `calibrate`, `evidence`, `observed`.
//! Tests: `crates/sim/src/` (in its files), `crates/sim/tests/`.
//!
//! * [`run`] simulates one load under one scheduler; same seed, same bits.
//! * One run is single-threaded; independent runs can run in parallel.
//!
//! Modules: `events` (the event queue), `clock` and `span` (random times); `host` (host profiles, parsed by `profile`), `cpu` (interrupts,
//! wake-ups, run queues) and `locks` (cost of scheduler locks); `task` (a process of `hoistway_load::process` on a CPU), `cgroups`,
//! `throttling` (`io.max`, `io.cost`, `io.latency`) and `administration` (writes to `queue/` during a run); `page_cache` (buffered I/O); `submitter`, `disk` and
//! `driver`; `guests`, `virtual_disk` and `io_thread` (virtual machines: a disk on a disk); `stacked_device` and `stacks` (block devices over block devices); `identity` (owners of bios, sleepers) and
//! `incidental` (conditions drawn once per run); `scenario` (input and results), `statistics` and `simulation` (the event loop).
#![doc = include_str!("../README.md")]

mod administration;
mod cgroups;
mod clock;
mod cpu;
mod disk;
mod driver;
mod events;
mod fair;
mod guests;
mod host;
mod identity;
mod incidental;
mod io_thread;
mod locks;
mod page_cache;
mod profile;
mod scenario;
mod simulation;
mod span;
mod stacked_device;
mod stacks;
mod statistics;
mod submitter;
mod task;
mod throttling;
mod transport;
mod virtual_disk;
mod workers;

pub use administration::{Fate, Write};
pub use disk::{DiskIoCost, QueueSettings};
pub use guests::Guests;
pub use host::{CPUS_MAX, Host};
pub use locks::LockUse;
pub use profile::ProfileError;
pub use scenario::{Control, RunError, RunResult, RunSpec, Scenario};
pub use simulation::{run, run_probed, run_with_statistics};
pub use stacked_device::{Encryption, StackKind, StackMember, StackedDevice};
pub use statistics::Statistics;
pub use virtual_disk::VirtualDisk;
