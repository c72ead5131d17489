//! Virtual time: tasks on modelled CPUs put load on the block layer over device models, in one event loop.
//!
//! * [`run`] simulates one load under one scheduler; same seed, same bits.
//! * One run is single-threaded; independent runs can go side by side.
//!
//! The way of time: `events` (the queue) and `clock`, `span` (times that are drawn), `host` (a `profile`), `cpu` (what reacting costs) and `locks` (what a scheduler costs), `task` (a process of
//! `hoistway_load::process` on a CPU), `cgroups` and `throttling` (whose I/O it is, and what it may), `administration` (what changes the queue meanwhile),
//! `page_cache` (for I/O that is not direct), `submitter`, `disk` and `driver` (what is below the block layer), `guests`, `virtual_disk`
//! (a `profile`, too) and `io_thread` (virtual machines: a disk over a disk), `identity` (whose a bio is, and what sleeps), `incidental` (what is drawn once for a run),
//! and `statistics` (what comes out), `scenario` (what goes in), `simulation` (the loop).

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
mod statistics;
mod submitter;
mod task;
mod throttling;
mod virtual_disk;
mod workers;

pub use administration::{Fate, Write};
pub use disk::QueueSettings;
pub use guests::{GuestSpec, Guests};
pub use host::Host;
pub use locks::LockUse;
pub use profile::ProfileError;
pub use scenario::{Control, RunError, RunResult, RunSpec, Scenario};
pub use simulation::{run, run_probed, run_with_statistics};
pub use statistics::Statistics;
pub use virtual_disk::VirtualDisk;
