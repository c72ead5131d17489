//! Runs the binary for tests.

use std::path::Path;
use std::process::{Command, Output};

use crate::loop_device::skipped;

/// The binary in a folder, with its journal there.
pub fn hoistway(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.current_dir(folder).args(arguments);
    command
}

/// The standard output and standard error of a command, which must end with one of these statuses.
#[track_caller]
pub fn ended_with(statuses: &[i32], command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.code().is_some_and(|code| statuses.contains(&code)), "{command:?}: {status}\n{printed}\n{said}");
    (printed.into_owned(), said.into_owned())
}

/// Whether fio can be run.
pub fn has_fio() -> bool {
    let is_there = Command::new("fio").arg("--version").output().is_ok();
    if !is_there {
        skipped("there is no fio");
    }
    is_there
}
