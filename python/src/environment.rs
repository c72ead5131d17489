//! The environment of a comparison started from Python: files, variables and schedulers.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hoistway_blk::schedulers::Registry;
use hoistway_experiment::{CallerEnvironment, Field};
use hoistway_fio::LogSource;
use hoistway_trace::block::{Columns, ReadError, Recording};

/// Maximum size of a file that is read at once.
const BYTES_MAX: u64 = 64 << 20;

/// The environment of a Python caller.
pub(crate) struct Caller {
    /// The schedulers of Linux, and those written in Python.
    pub(crate) schedulers: Registry,
}

impl CallerEnvironment for Caller {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        ordinary(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::Error::other("longer than 64 MiB"));
        }
        Ok(bytes)
    }

    fn log(&self, path: &Path) -> io::Result<Arc<dyn LogSource>> {
        ordinary(path)?;
        Ok(Arc::new(LogFile(path.to_owned())))
    }

    fn recording(&self, path: &Path, columns: Option<&Columns>) -> Result<Option<Recording>, ReadError> {
        // A missing file is reported where its text is read.
        if path.is_dir() || ordinary(path).is_ok() { Recording::open_if_any(path, columns) } else { Ok(None) }
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn schedulers(&self) -> Registry {
        self.schedulers.clone()
    }

    fn name(&self, field: Field) -> String {
        field.keyword().to_owned()
    }
}

/// Opens a regular file. Pipes are refused: a pipe may never end, and Ctrl-C could not interrupt the read.
fn ordinary(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.file_type() {
        kind if kind.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        kind if !kind.is_file() => Err(io::Error::other("not a regular file")),
        _ => File::open(path),
    }
}

#[derive(Debug)]
struct LogFile(PathBuf);

impl LogSource for LogFile {
    fn open(&self) -> io::Result<Box<dyn BufRead + Send>> {
        Ok(Box::new(BufReader::new(File::open(&self.0)?)))
    }
}
