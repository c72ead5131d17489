//! `hoistway-trace/1`: all events of one or more simulated runs, one JSON object per line.
//!
//! Used by: crates `experiment`, `hoistway`.
//! Tests: `crates/trace/src/events/writer.rs`, `crates/trace/tests/iosched/events.rs`.
//!
//! The first line describes the runs ([`Header`]); the last one confirms that the trace is complete. Each line between them is an
//! event under its kernel name (BL-131, BL-132), or a `dispatch`: a decision of the scheduler with its reason. `docs/trace.md`
//! describes every field. [`BlktraceProbe`] writes the same events, except those of the scheduler, in blktrace's format.

mod blktrace;
mod reader;
mod writer;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use blktrace::BlktraceProbe;
pub use reader::{Line, ReadError, Reader};
pub use writer::Writer;

/// Value of the header's `format`.
pub const FORMAT: &str = "hoistway-trace/1";

/// The first line: the configuration of the runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// The job file.
    pub job_file: String,
    /// The devices, indexed by the `dev` of events.
    pub devices: Vec<String>,
    /// The simulated kernel.
    pub kernel: String,
    /// CPUs of the simulated host.
    pub cpus: u32,
    /// Random seed of the runs.
    pub seed: u64,
    /// The runs, indexed by the `run` of events.
    pub runs: Vec<RunHeader>,
    /// The processes, indexed by the `process` of events.
    pub processes: Vec<ProcessHeader>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunHeader {
    /// Counts from 0; the events of the run carry it.
    pub run: u32,
    /// The scheduler.
    pub scheduler: String,
    /// The tunables that were set, with their values as text.
    pub tunables: Map<String, Value>,
}

/// One process. Its I/O context is `process` + 1, its waiter number is `process`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessHeader {
    /// The `process` of its events.
    pub process: u32,
    /// Its job.
    pub job: String,
    /// Index among the job's processes, from 0.
    pub clone: u32,
    /// The device that it uses.
    pub dev: u32,
}
