//! Runs fio and parses its JSON output.
//!
//! Used by: crates `calibrate`, `hoistway`.
//! Tests: `crates/hoistway/tests/machine/calibrate.rs`, `crates/hoistway/tests/machine/verify.rs`.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Interval of checks for the end of fio.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Why fio produced no document.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// The temporary file for its output cannot be created.
    #[error("cannot create a temporary file for fio's output: {0}")]
    NoFile(std::io::Error),
    /// It cannot be started.
    #[error("fio cannot be run: {0} (expected fio 3.0 or later on PATH, such as from the package fio)")]
    NotThere(std::io::Error),
    /// The caller stopped it.
    #[error("interrupted")]
    Interrupted,
    /// It failed.
    #[error("fio ended with {status}: {said}")]
    Failed {
        /// Its exit status.
        status: String,
        /// The first line of its error messages.
        said: String,
    },
    /// Its output is not a fio document.
    #[error("fio printed no JSON document: {0} (expected the output of --output-format=json+)")]
    NoDocument(String),
}

/// Kills the process when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs fio with these arguments and returns its document, with the bins of its latencies. Kills fio when `should_continue` returns `false`.
///
/// # Errors
/// If fio cannot be run, fails, or is interrupted.
pub fn run(arguments: &[String], should_continue: &dyn Fn() -> bool) -> Result<Value, FioError> {
    let files = || Ok::<_, std::io::Error>((tempfile::tempfile()?, tempfile::tempfile()?));
    let (mut output, mut errors) = files().map_err(FioError::NoFile)?;
    let copies = || Ok::<_, std::io::Error>((output.try_clone()?, errors.try_clone()?));
    let (to_output, to_errors) = copies().map_err(FioError::NoFile)?;
    let mut command = Command::new("fio");
    command.arg("--output-format=json+").args(arguments);
    command.stdin(Stdio::null()).stdout(to_output).stderr(to_errors);
    let mut fio = Running(command.spawn().map_err(FioError::NotThere)?);
    let status = loop {
        if let Some(status) = fio.0.try_wait().map_err(FioError::NotThere)? {
            break status;
        }
        if !should_continue() {
            return Err(FioError::Interrupted);
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let (printed, said) = (read_text(&mut output), read_text(&mut errors));
    // fio may print warnings before the document.
    let document = printed.find("\n{").map_or(printed.as_str(), |position| &printed[position..]);
    if !status.success() {
        let mut lines = said.lines().chain(printed.lines()).map(str::trim);
        let said = lines.find(|line| !line.is_empty()).unwrap_or_default().to_owned();
        // On a terminal, Ctrl-C also reaches fio, which may end first.
        return Err(if should_continue() {
            FioError::Failed { status: status.to_string(), said }
        } else {
            FioError::Interrupted
        });
    }
    serde_json::from_str(document).map_err(|error| FioError::NoDocument(error.to_string()))
}

fn read_text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
