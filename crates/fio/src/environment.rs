//! The environment of a job file: variables, included files and logs, and properties of the host.
//!
//! Used by: `jobfile`, `build`, `iolog`; crates `hoistway`, `experiment`.
//! Tests: `crates/fio/tests/examples.rs`, `crates/fio/tests/robust.rs`.

use std::fmt;
use std::io::{self, BufRead, Cursor};
use std::path::Path;
use std::sync::Arc;

use hoistway_blk::ground::Nanos;

/// The environment of a job file. The caller provides it: this crate reads no variable and no file itself.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The value of `${NAME}`, or `None` if it is not set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of the file named by `include`. fio looks for it relative to the working directory.
    pub include: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The log named by `read_iolog`.
    pub log: &'a dyn Fn(&Path) -> io::Result<Arc<dyn LogSource>>,
    /// The value of `$ncpus`.
    pub cpus: u32,
    /// The value of `$pagesize`, in bytes.
    pub page_bytes: u64,
    /// The value of `$mb_memory`, in MiB.
    pub memory_mib: u64,
    /// Replaces the `runtime` of every job; `None` to keep them.
    pub runtime: Option<Nanos>,
}

impl Environment<'static> {
    /// An environment without variables and files: one CPU, 4 KiB pages, 1 GiB of memory.
    #[must_use]
    pub fn empty() -> Environment<'static> {
        Environment {
            variable: &|_| None,
            include: &|_| Err(io::Error::new(io::ErrorKind::NotFound, "there are no files to include here")),
            log: &|_| Err(io::Error::new(io::ErrorKind::NotFound, "there are no logs to read here")),
            cpus: 1,
            page_bytes: 4096,
            memory_mib: 1024,
            runtime: None,
        }
    }
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("cpus", &self.cpus)
            .field("page_bytes", &self.page_bytes)
            .field("memory_mib", &self.memory_mib)
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

/// A log that can be read any number of times from the start.
pub trait LogSource: fmt::Debug + Send + Sync {
    /// Starts reading it.
    ///
    /// # Errors
    /// If it cannot be read.
    fn open(&self) -> io::Result<Box<dyn BufRead + Send>>;
}

impl LogSource for Arc<[u8]> {
    fn open(&self) -> io::Result<Box<dyn BufRead + Send>> {
        Ok(Box::new(Cursor::new(Arc::clone(self))))
    }
}

/// A log in memory.
pub fn log_in_memory(bytes: impl Into<Arc<[u8]>>) -> Arc<dyn LogSource> {
    Arc::new(bytes.into())
}
