//! fio job files and the load that they ask for.
//!
//! A job file passes through three stages. [`Workload::parse`] reads its text: the grammar (sections,
//! comments, includes, variables), then the options, each of which is looked up in one table ([`options()`])
//! and either honoured, ignored with a notice because it cannot change a simulation, or refused. The result
//! is data: one [`Process`] for each clone of each job. When the size of the device is known, its [`IoPlan`]
//! becomes a [`Generator`], which yields the I/Os one after the other.
//!
//! Nothing here reads a clock, a file or the environment: what a job file refers to comes from an
//! [`Environment`], and the pace of a job is decided by whoever owns the clock, with the help of a [`Pacer`].

mod build;
mod checks;
mod error;
mod generator;
mod jobfile;
mod options;
mod pace;
mod plan;
mod replay;
mod service;
mod settings;
mod values;
mod workload;

pub use error::JobFileError;
pub use generator::{Generator, Io};
pub use jobfile::Environment;
pub use options::{OptionSpec, Treatment, options};
pub use pace::Pacer;
pub use plan::IoPlan;
pub use workload::{
    Ends, Engine, Flow, LatencyTarget, LogSettings, Process, Rate, RateLimits, RateProcess, Steadiness, SteadyFigure,
    SteadyState, Think, ThinkBlocks, Workload, WriteSync,
};
