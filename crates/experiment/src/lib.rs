//! Experiments with I/O schedulers, as values.
//!
//! Used by: crates `hoistway`, `evidence`.
//! Tests: `crates/experiment/src/` (in its files), `crates/experiment/tests/`.
//!
//! A [`Comparison`] names a load, the schedulers, and the devices, kernels and hosts that it runs on; [`Comparison::run`]
//! returns the result document. Its fields are plain data that can be serialized as JSON or TOML. This is a complete
//! program (`examples/ten_lines.rs`):
//!
//! ```
#![doc = include_str!("../examples/ten_lines.rs")]
//! ```
//!
//! * An invalid comparison gives an [`Error`] that names the [`Field`]; no input makes a run panic.
//! * But for [`real`], this crate reads no file, no environment variable and no clock: the [`CallerEnvironment`] reads what a comparison names, and
//!   durations come from the [`RunObserver`]. The environment also provides the schedulers: those of Linux, and custom ones.
//! * A [`Plan`] is a checked comparison. Its runs can be observed, [cancelled](Controls::cancel), and
//!   [traced](Plan::traced).
//! * [`tune`](mod@tune) searches for the best setting for a load; other search algorithms can use its evaluator.
//! * [`real`] carries out a load in real time: with the engine, on a file, a disk, memory or a model, or under the schedulers of this
//!   machine's kernel.
//! * The same comparison gives the same results on every machine, whatever the number of parallel runs.
//!
//! Thousands of comparisons are a [`sweep`], kept in a [`store`]. This crate also contains [`scenarios`] (bundled loads with a
//! page each), [`texts`] (what each scheduler and tunable does) and [`facts`] (defaults and ranges of tunables, read from the
//! policies themselves).
//!
//! Folders, in the order that a comparison passes them:
//!
//! * `comparison`: its options, the errors that name them, and what the caller provides (files, schedulers, an observer);
//! * `load`: from a job file, a recording or a summary to processes;
//! * `plan`: the checked comparison with its setups, variants and repeats; `notices`: what makes its figures uncertain;
//! * `run`: the runs, in rounds on all cores, observed and traced, and the alternative readings of a recording;
//! * `outcome`: the document.
#![doc = include_str!("../README.md")]

mod comparison;
pub mod facts;
mod load;
pub mod nearest;
mod notices;
mod outcome;
mod plan;
pub mod real;
mod run;
pub mod scenarios;
pub mod store;
pub mod sweep;
pub mod texts;
pub mod tune;

pub use comparison::environment::{Alone, CallerEnvironment};
pub use comparison::error::{Error, Place};
pub use comparison::fields::Field;
pub use comparison::kernel_option::KernelOption;
pub use comparison::observer::{Controls, Ended, FioOutputs, RunObserver, Unobserved};
pub use comparison::{
    CgroupFile, Comparison, Devices, Guests, Load, MeasuredTime, Mode, Profile, QueueFile, QueueWrite, Replay, Sysctl,
    Tunable, Vary,
};
pub use load::LoadText;
pub use load::recording::fitted_device;
pub use plan::Plan;
pub use plan::devices::preset;
pub use plan::repeats::seeds;
pub use run::runner::PlannedRun;
pub use run::trace::TraceError;

/// Ranges of fields of a comparison, for parsers.
pub mod limits {
    pub use crate::load::times::TIME_NS_MAX;
    pub use crate::plan::guests::weight_expected;
    pub use crate::plan::host::CPUS_MAX;
    pub use crate::plan::io_cost::WEIGHT_EXAMPLE as IO_WEIGHT_EXAMPLE;
    pub use crate::plan::io_latency::EXAMPLE as IO_LATENCY_EXAMPLE;
    pub use crate::plan::io_max::EXAMPLE as IO_MAX_EXAMPLE;
    pub use crate::plan::queues::{HW_QUEUES_MAX, TYPED_QUEUES_MAX};
    pub use crate::plan::repeats::{REPEATS_MAX, UNTIL_SURE_MAX};
}
