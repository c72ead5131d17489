//! How the tests run the binary.

use std::path::Path;
use std::process::{Command, Output};

/// The binary, in a folder, with a journal there.
pub fn hoistway(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.current_dir(folder).args(arguments);
    command
}

/// What a command printed on standard output and on standard error. It must end with one of these statuses.
#[track_caller]
pub fn ended_with(statuses: &[i32], command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.code().is_some_and(|code| statuses.contains(&code)), "{command:?}: {status}\n{printed}\n{said}");
    (printed.into_owned(), said.into_owned())
}

/// Whether fio can be run. In CI it has to be there.
pub fn has_fio() -> bool {
    let is_there = Command::new("fio").arg("--version").output().is_ok();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(is_there || !is_ci, "fio is not installed");
    if !is_there {
        eprintln!("skipped: there is no fio");
    }
    is_there
}
