//! `hoistway-trace/1`: everything that happened in one or more simulated runs, one JSON object a line.
//!
//! The first line says what was run ([`Header`]), the last one that nothing is missing. Between them each line is an
//! event with the kernel's name for it (BL-131, BL-132), or a `dispatch`: what the scheduler was asked, and what it
//! answered, with its reason. `docs/trace.md` describes every field. [`BlktraceProbe`] writes the same events, but for those of the
//! scheduler, as blktrace does.

mod blktrace;
mod reader;
mod writer;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use blktrace::BlktraceProbe;
pub use reader::{Line, ReadError, Reader};
pub use writer::Writer;

/// The first field of the first line.
pub const FORMAT: &str = "hoistway-trace/1";

/// The first line: what was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// The job file.
    pub job_file: String,
    /// The devices, by the number that events give as `dev`.
    pub devices: Vec<String>,
    /// The simulated kernel.
    pub kernel: String,
    /// CPUs of the simulated host.
    pub cpus: u32,
    /// Everything random was drawn from it.
    pub seed: u64,
    /// The runs, by the number that events give as `run`.
    pub runs: Vec<RunHeader>,
    /// The processes, by the number that events give as `process`.
    pub processes: Vec<ProcessHeader>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunHeader {
    /// Its number.
    pub run: u32,
    /// The scheduler.
    pub scheduler: String,
    /// The tunables that were set, with the text that was written.
    pub tunables: Map<String, Value>,
}

/// One process. It has the I/O context `process` + 1, and is the waiter `process`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessHeader {
    /// Its number.
    pub process: u32,
    /// Its job.
    pub job: String,
    /// Which process of the job, from 0.
    pub clone: u32,
    /// The device that it works on.
    pub dev: u32,
}
