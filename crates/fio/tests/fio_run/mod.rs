//! Running the real fio.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// Whether fio is installed. Where it has to be, it is an error if it is not.
pub fn is_installed() -> bool {
    if Command::new("fio").arg("--version").output().is_ok() {
        return true;
    }
    // A test machine without fio would report success for nothing.
    assert!(std::env::var_os("CI").is_none(), "fio is not installed");
    eprintln!("skipped: fio is not installed");
    false
}

/// A directory of its own for a test, empty.
pub fn directory(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("hoistway-fio-{}-{test}", std::process::id()));
    fs::create_dir_all(&directory).expect("a temporary directory");
    directory
}

/// Runs a job file there; its document goes to the standard output. It must end within two minutes.
pub fn run(directory: &Path, text: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let limit = Duration::from_secs(120);
    try_run(directory, text, arguments, variables, limit).expect("fio ends within two minutes")
}

/// The same; `None` if it has not ended after `limit`, and was killed.
///
/// fio is not made for a busy machine: late by as much as a pause lasts, it may wait for an hour (3.33). Jobs that may
/// do so say `thread`: processes of their own would outlive it.
pub fn try_run(
    directory: &Path,
    text: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
    limit: Duration,
) -> Option<Output> {
    fs::write(directory.join("job.fio"), text).expect("a job file");
    // Into files: a pipe would not be read while it runs.
    let outputs = ["document", "errors"].map(|name| directory.join(name));
    let [stdout, stderr] = outputs.each_ref().map(|file| File::create(file).expect("a file"));
    let mut command = Command::new("fio");
    command.args(arguments).args(["--output-format=json", "job.fio"]).envs(variables.iter().copied());
    let mut fio = command.current_dir(directory).stdout(stdout).stderr(stderr).spawn().expect("fio");
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = fio.try_wait().expect("a child") {
            break status;
        }
        if begin.elapsed() > limit {
            fio.kill().expect("a child");
            fio.wait().expect("a child");
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = outputs.map(|file| fs::read(file).expect("a file"));
    Some(Output { status, stdout, stderr })
}
