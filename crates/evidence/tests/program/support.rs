//! Runs the program for tests.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The folder of recordings of real kernels.
pub(crate) const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces");

/// The program, without environment variables that change its behaviour.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway-evidence"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["COLUMNS", "NO_COLOR", "RAYON_NUM_THREADS"] {
        command.env_remove(variable);
    }
    command
}

/// The standard output for these arguments. The program must succeed and print nothing on standard error.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = program(arguments).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{:?}: {complaints}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The keys of a JSON object, in their order.
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Asserts that the program, run in `folder`, refuses these arguments: exit status 2, a message with all these words,
/// nothing on standard output, and no new file.
#[track_caller]
pub(crate) fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let files = || std::fs::read_dir(folder).unwrap().count();
    let before = files();
    let output = program(arguments).current_dir(folder).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len(), files()), (Some(2), 0, before), "{arguments:?}: {message}");
    assert!(message.starts_with("hoistway-evidence: ") || message.starts_with("error: "), "{message}");
    for word in words {
        assert!(message.contains(word), "{arguments:?}: expected {word:?} in the message:\n{message}");
    }
}
