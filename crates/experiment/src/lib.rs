//! Experiments with I/O schedulers, as values.
//!
//! A [`Comparison`] says what runs under which schedulers, on which devices, kernels and hosts; [`Comparison::run`] answers
//! with the result document. Its fields are plain data, which can be written down as JSON or TOML. This is a whole program
//! (`examples/ten_lines.rs`):
//!
//! ```
#![doc = include_str!("../examples/ten_lines.rs")]
//! ```
//!
//! * What is wrong with a comparison is an [`Error`] that names the [`Field`]; nothing that is asked for makes a run panic.
//! * Nothing here reads a file, the environment or a clock: what a comparison names is read by its [`Surroundings`], durations
//!   are told by whoever [`Watch`]es. The schedulers that there are come from the surroundings, too: those of Linux, and any of
//!   one's own.
//! * A [`Plan`] is a comparison that was checked. Its runs can be watched, [cancelled](Controls::cancel), and
//!   [traced](Plan::traced).
//! * [`tune`](mod@tune) searches for the setting that is best for a load, and lends its evaluator to whoever searches in another way.
//! * The same comparison gives the same results, on every machine and however many runs go side by side.
//!
//! Comparisons by the thousand are [`sweep`]s, kept in a [`store`]. What there is to compare is here, too: [`scenarios`] (bundled loads with a page each), [`texts`] (what each scheduler and
//! tunable does) and [`facts`] (defaults and ranges of tunables, asked of the policies themselves).
//!
//! The way of a comparison: `comparison` (what is asked for) and `surroundings` (by whom), `plan` and its `setup`s (with `load`,
//! `devices`, `host`, `guests`, `schedulers`, `tunables`, `queue_files`, `variants`, `queues`, `writes`, `io_max`, `io_prio_class`, `repeats`: a
//! field or two each), `effects`, `joined` and `calibrated` (what must be said of it), `run` (with `locks`) and `trace` (seen through `watch` and observers, of which `recorder` is one, and with the names of `contexts`), `outcome`, `document`.

mod alike;
mod asked_kernel;
mod calibrated;
mod comparison;
mod contexts;
mod demand;
mod devices;
mod document;
mod effects;
mod error;
pub mod facts;
mod fio_options;
mod guests;
mod host;
mod io_max;
mod io_prio_class;
mod joined;
mod load;
mod locks;
pub mod nearest;
mod outcome;
mod plan;
mod queue_files;
mod queues;
mod recorder;
mod repeats;
mod run;
pub mod scenarios;
mod schedulers;
mod setup;
pub mod store;
mod surroundings;
pub mod sweep;
pub mod texts;
mod trace;
mod tunables;
pub mod tune;
mod variants;
mod watch;
mod writes;

pub use asked_kernel::AskedKernel;
pub use comparison::{CgroupFile, Comparison, Devices, Guests, Load, Profile, QueueFile, Tunable, Vary, Write};
pub use devices::preset;
pub use error::{Error, Field, Place};
pub use plan::Plan;
pub use repeats::seeds;
pub use surroundings::{Alone, Surroundings};
pub use trace::TraceError;
pub use watch::{Controls, Ended, Unwatched, Watch};

/// What fields of a comparison may be, for whoever reads them from a text.
pub mod limits {
    pub use crate::guests::weight_expected;
    pub use crate::host::CPUS_MAX;
    pub use crate::io_max::EXAMPLE as IO_MAX_EXAMPLE;
    pub use crate::load::TIME_NS_MAX;
    pub use crate::queues::{HW_QUEUES_MAX, TYPED_QUEUES_MAX};
    pub use crate::repeats::REPEATS_MAX;
}
