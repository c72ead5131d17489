//! The commands of `hoistway-serve`, which is a program of its own: `hoistway` executes it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Error, Result, anyhow};
use clap::Subcommand as _;
use hoistway_serve_options::ServeCommand;

/// The name of the program.
const PROGRAM: &str = "hoistway-serve";

/// Adds its commands to those of `hoistway`, for help, completions and manual pages.
pub(crate) fn added_to(command: clap::Command) -> clap::Command {
    ServeCommand::augment_subcommands(command)
}

/// Replaces this process by the server's program if the first argument is one of its commands; returns only if it is not, or the
/// program cannot be executed.
pub(crate) fn execute_if_asked() -> Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(command) = arguments.first().and_then(|first| first.to_str()) else { return Ok(()) };
    if !ServeCommand::has_subcommand(command) {
        return Ok(());
    }
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    for program in beside.into_iter().chain([PathBuf::from(PROGRAM)]) {
        // Usage lines then name what the user typed.
        let error = Command::new(&program).arg0("hoistway").args(&arguments).exec();
        if error.kind() != ErrorKind::NotFound {
            return Err(Error::new(error).context(format!("{command}: cannot execute {}", program.display())));
        }
    }
    Err(anyhow!(
        "{command}: needs the program {PROGRAM}, which is neither beside hoistway nor on PATH (build it with \
         `cargo build --profile server -p hoistway-serve`)"
    ))
}
