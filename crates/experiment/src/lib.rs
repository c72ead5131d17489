//! Experiments with I/O schedulers, as values.
//!
//! A [`Comparison`] says what runs under which schedulers, on which devices, kernels and hosts; [`Comparison::run`] returns
//! the result document. Its fields are plain data that can be serialized as JSON or TOML. This is a whole program
//! (`examples/ten_lines.rs`):
//!
//! ```
#![doc = include_str!("../examples/ten_lines.rs")]
//! ```
//!
//! * An invalid comparison gives an [`Error`] that names the [`Field`]; no input makes a run panic.
//! * This crate reads no file, no environment variable and no clock: the [`CallerEnvironment`] reads what a comparison names, and
//!   durations come from the [`RunObserver`]. The environment also provides the schedulers: those of Linux, and custom ones.
//! * A [`Plan`] is a checked comparison. Its runs can be observed, [cancelled](Controls::cancel), and
//!   [traced](Plan::traced).
//! * [`tune`](mod@tune) searches for the best setting for a load; other search algorithms can use its evaluator.
//! * [`verify`] compares predictions with measurements on a real kernel.
//! * The same comparison gives the same results on every machine, whatever the number of parallel runs.
//!
//! Comparisons by the thousand are [`sweep`]s, kept in a [`store`]. What there is to compare is here, too: [`scenarios`] (bundled loads with a page each), [`texts`] (what each scheduler and
//! tunable does) and [`facts`] (defaults and ranges of tunables, asked of the policies themselves).
//!
//! The way of a comparison: `comparison` (the options) and `environment` (files and schedulers of the caller), `plan` and its `setup`s (with `load`,
//! `devices`, `host`, `guests`, `schedulers`, `tunables`, `queue_files`, `variants`, `queues`, `writes`, `io_max`, `io_prio_class`, `repeats`, `times`: a
//! field or two each), `effects`, `stable_merge`, `calibrated` and `borders` (notices about it), `run` (with `runner`, `run_queue`, `rounds` and `locks`), `recording` and `readings` (a recording as a load, and what it leaves open) and `trace` (reported to `observer`, of which `recorder` is one, and with the names of `contexts`), `outcome`, `document`.

mod behind;
mod borders;
mod calibrated;
mod comparison;
mod contexts;
mod demand;
mod devices;
mod document;
mod effects;
mod environment;
mod equivalent_jobs;
mod error;
pub mod facts;
mod fields;
mod fio_options;
mod guests;
mod host;
mod io_max;
mod io_prio_class;
mod job_facts;
mod judging;
mod kernel_option;
mod load;
mod locks;
pub mod nearest;
mod observer;
mod outcome;
mod plan;
mod queue_files;
mod queues;
mod rates;
mod reactions;
mod readings;
mod recorder;
mod recording;
mod repeats;
mod rounds;
mod run;
mod run_queue;
mod runner;
pub mod scenarios;
mod schedulers;
mod setup;
mod stable_merge;
mod stacked;
pub mod store;
pub mod sweep;
pub mod texts;
mod times;
mod trace;
mod tunables;
pub mod tune;
mod variants;
pub mod verify;
mod writes;

pub use comparison::{
    CgroupFile, Comparison, Devices, Guests, Load, Mode, Profile, QueueFile, QueueWrite, Replay, Sysctl, Tunable, Vary,
};
pub use devices::preset;
pub use document::DocumentHead;
pub use environment::{Alone, CallerEnvironment};
pub use error::{Error, Place};
pub use fields::Field;
pub use job_facts::JobFacts;
pub use judging::unknown_job;
pub use kernel_option::KernelOption;
pub use load::{LoadText, unused_logs_notice};
pub use observer::{Controls, Ended, FioOutputs, RunObserver, Unobserved};
pub use outcome::RunOutcome;
pub use plan::Plan;
pub use repeats::seeds;
pub use rounds::carry_out;
pub use runner::{PlannedRun, RunMeasurements, RunOrder, Runner};
pub use trace::TraceError;

/// Ranges of fields of a comparison, for parsers.
pub mod limits {
    pub use crate::guests::weight_expected;
    pub use crate::host::CPUS_MAX;
    pub use crate::io_max::EXAMPLE as IO_MAX_EXAMPLE;
    pub use crate::queues::{HW_QUEUES_MAX, TYPED_QUEUES_MAX};
    pub use crate::repeats::{REPEATS_MAX, UNTIL_SURE_MAX};
    pub use crate::times::TIME_NS_MAX;
}
