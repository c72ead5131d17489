//! Parses fio job files into loads.
//!
//! Used by: crates `experiment`, `hoistway`.
//! Tests: `crates/fio/src/` (in its files), `crates/fio/tests/`.
//!
//! A job file passes through three stages. [`JobFile::parse`] reads its text: the grammar (sections, comments,
//! includes, variables), then the options, each of which is looked up in one table ([`options()`]) and either honoured,
//! ignored with a notice because it cannot change a simulation, or refused. The result is a [`Load`], which is
//! independent of fio.
//!
//! This crate reads no clock, file or environment variable: an [`Environment`] provides everything that a job file
//! refers to.
#![doc = include_str!("../README.md")]

mod build;
mod command_line;
mod document;
mod environment;
mod error;
mod iolog;
mod jobfile;
mod notices;
mod options;
pub mod output;
mod values;

use hoistway_load::Load;

pub use command_line::{CommandLineError, is_fio_option, job_text};
pub use environment::{Environment, LogSource, log_in_memory};
pub use error::JobFileError;
pub use options::{OptionSpec, options};

/// A parsed job file.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// Processes in the order of the file. The load's options are those of all `[global]` sections; a process has those
    /// of its own section. Both use fio's names, as in fio's JSON output, and leave out options without a value. A
    /// repeated option appears once, with its last value.
    pub load: Load,
    /// Notices for the user about ignored options and options without effect, one sentence each.
    pub notices: Vec<String>,
}

impl JobFile {
    /// Reads the fio job file `text`, called `file_name` in messages.
    ///
    /// # Errors
    /// The first line that fio would reject or silently misread, or whose option would change the results but is not
    /// modelled.
    ///
    /// ```
    /// use hoistway_fio::{Environment, JobFile};
    ///
    /// let text = "[writers]\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nioengine=libaio\niodepth=4\nnumjobs=2\n";
    /// let load = JobFile::parse(text, "jobs.fio", &Environment::empty())?.load;
    /// assert_eq!(load.processes.len(), 2);
    ///
    /// let mut ios = load.processes[0].generator(0, 1, |_device| 1 << 30)?;
    /// assert_eq!(ios.next().map(|io| io.bytes), Some(4096));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str, file_name: &str, environment: &Environment<'_>) -> Result<JobFile, JobFileError> {
        let index = options::OptionIndex::all();
        let document = jobfile::read(text, file_name, index, environment)?;
        build::job_file(&document, index, environment)
    }
}
