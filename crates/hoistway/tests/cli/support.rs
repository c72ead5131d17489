//! Runs the binary for tests, and checks what they all expect of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

use crate::interrupts::complaints;

/// A run that takes longer counts as hung.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);

/// The binary, without parts of the tester's environment that change what it does.
pub(crate) fn hoistway() -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("hoistway");
    command.timeout(COMMAND_TIMEOUT);
    for variable in ["COLUMNS", "NO_COLOR", "RAYON_NUM_THREADS"] {
        command.env_remove(variable);
    }
    command
}

/// The standard output for these arguments. The binary must succeed and print nothing on standard error.
pub(crate) fn printed(arguments: &[&str]) -> String {
    succeeded(hoistway().args(arguments))
}

/// The standard output of the command, which must succeed and print nothing on standard error.
pub(crate) fn succeeded(command: &mut Command) -> String {
    ended_with(0, command)
}

/// The standard output of the command, which must end with this status and print nothing on standard error.
pub(crate) fn ended_with(status: i32, command: &mut Command) -> String {
    let output = command.output().unwrap();
    let complaints = complaints(&output.stderr);
    assert!(output.status.code() == Some(status) && complaints.is_empty(), "{:?}: {complaints}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Its standard error; it must end with status 2.
pub(crate) fn complaint(arguments: &[&str]) -> String {
    let output = hoistway().args(arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{arguments:?}");
    complaints(&output.stderr)
}

/// The JSON document without anything that depends on time, speed and command line.
pub(crate) fn repeatable(json: &str) -> Value {
    fn scrub(value: &mut Value) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    match key.as_str() {
                        "wall_seconds" | "timestamp" | "timestamp_ms" | "time" | "command" | "arguments" => {
                            *value = Value::Null;
                        }
                        _ => scrub(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(scrub),
            _ => {}
        }
    }
    let mut document = serde_json::from_str(json).unwrap();
    scrub(&mut document);
    document
}

/// The keys of a JSON object, in their order.
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Asserts that the binary, run in `folder`, refuses these arguments: exit status 2, one message that contains all
/// these words, nothing on standard output, and unchanged files. Commands that write results write to a file unless the
/// arguments say otherwise.
#[track_caller]
pub(crate) fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let mut command = hoistway();
    command.current_dir(folder).args(arguments);
    let prints_only = ["devices", "explain", "schedulers", "why"].contains(&arguments[0]);
    if !prints_only && !arguments.contains(&"-o") {
        command.args(["-o", "results"]);
    }
    let before = contents(folder);
    let output = command.output().unwrap();
    let message = complaints(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    assert_eq!(contents(folder), before, "{arguments:?} left something behind");
    assert!(is_one_message(&message), "{arguments:?}: not one message:\n{message}");
    for word in words {
        assert!(message.contains(word), "{arguments:?}: expected {word:?} in the message:\n{message}");
        assert_eq!(message.matches(word).count(), 1, "{arguments:?}: named twice:\n{message}");
    }
}

/// Our own message, or that of the command-line parser.
fn is_one_message(message: &str) -> bool {
    let ours = message.starts_with("hoistway: ") && message.lines().count() == 1;
    let of_the_command_line = message.starts_with("error: ") && message.matches("error: ").count() == 1;
    (ours || of_the_command_line) && !message.contains("panicked") && !message.contains('\x1b')
}

/// Names and lengths of the files in a folder.
fn contents(folder: &Path) -> BTreeSet<(String, u64)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())).collect()
}

/// Whether a program that checks our files is installed. Where all tests are required, it must be.
pub(crate) fn is_installed(program: &str) -> bool {
    let is_installed = std::process::Command::new(program).arg("-h").output().is_ok();
    assert!(is_installed || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !is_installed {
        eprintln!("skipped: {program} is not installed");
    }
    is_installed
}
