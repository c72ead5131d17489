//! How programs end.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use crate::{output, printable};

/// How a command ended well, or was ended.
pub enum Ending {
    /// It did what it was asked.
    Done,
    /// It did what it was asked, and what it simulated failed: as with fio, when a job ends with an error.
    JobFailed,
    /// It did what it was asked, and a limit that it was given is broken.
    LimitBroken,
    /// The user interrupted it; what it had was printed and marked.
    Interrupted,
}

/// The exit status of a command of `program`; says on standard error why it failed.
pub fn exit_code(program: &str, ending: Result<Ending>) -> ExitCode {
    match ending {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::JobFailed) => ExitCode::FAILURE,
        Ok(Ending::LimitBroken) => ExitCode::from(3),
        Ok(Ending::Interrupted) => ExitCode::from(130),
        // The reader of our output has closed it: nothing to complain about.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // `eprintln!` would panic if standard error is closed.
            let _ = writeln!(std::io::stderr(), "{program}: {}", printable::text(&message(&error)));
            ExitCode::from(2)
        }
    }
}

/// The error with its causes behind it, except those that it quotes itself.
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
