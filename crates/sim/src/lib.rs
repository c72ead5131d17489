//! Virtual time: tasks on modelled CPUs put load on the block layer over device models, in one event loop.
//!
//! * [`run`] simulates one load under one scheduler; same seed, same bits.
//! * One run is single-threaded; independent runs can run in parallel.
//!
//! Modules: `events` (the event queue), `clock` and `span` (random times); `host` (host profiles, parsed by `profile`), `cpu` (interrupts,
//! wake-ups, run queues) and `locks` (cost of scheduler locks); `task` (a process of `hoistway_load::process` on a CPU), `cgroups`,
//! `throttling` (`io.max`, `io.cost`) and `administration` (writes to `queue/` during a run); `page_cache` (buffered I/O); `submitter`, `disk` and
//! `driver`; `guests`, `virtual_disk` and `io_thread` (virtual machines: a disk on a disk); `identity` (owners of bios, sleepers) and
//! `incidental` (conditions drawn once per run); `scenario` (input and results), `statistics` and `simulation` (the event loop).

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
mod transport;
mod virtual_disk;
mod workers;

pub use administration::{Fate, Write};
pub use disk::{DiskIoCost, QueueSettings};
pub use guests::{GuestSpec, Guests};
pub use host::{CPUS_MAX, Host};
pub use locks::LockUse;
pub use profile::ProfileError;
pub use scenario::{Control, RunError, RunResult, RunSpec, Scenario};
pub use simulation::{run, run_probed, run_with_statistics};
pub use statistics::Statistics;
pub use virtual_disk::VirtualDisk;
