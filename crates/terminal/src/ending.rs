//! Exit status and error messages of programs.
//!
//! Used by: crates `hoistway`, `evidence`.
//! Tests: `crates/hoistway/tests/cli/ending.rs`, `crates/hoistway/tests/cli/refusals.rs`.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use crate::{output, printable};

/// How a command ended.
pub enum Ending {
    /// It succeeded.
    Done,
    /// It succeeded, but a simulated job failed, as with fio when a job ends with an error.
    JobFailed,
    /// It succeeded, but part of the input could not be read.
    Incomplete,
    /// It succeeded, but a limit set by the user is exceeded.
    LimitBroken,
    /// The user interrupted it; partial results were printed and marked.
    Interrupted,
}

/// The exit status of a command of `program`; prints an error to standard error.
pub fn exit_code(program: &str, ending: Result<Ending>) -> ExitCode {
    match ending {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::JobFailed | Ending::Incomplete) => ExitCode::FAILURE,
        Ok(Ending::LimitBroken) => ExitCode::from(3),
        Ok(Ending::Interrupted) => ExitCode::from(130),
        // The reader has closed our output, which is not an error.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // `eprintln!` would panic if standard error is closed.
            let _ = writeln!(std::io::stderr(), "{program}: {}", printable::text(&message(&error)));
            ExitCode::from(2)
        }
    }
}

/// The error followed by its causes, except those that it quotes itself.
fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}
