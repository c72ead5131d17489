//! Runs the real fio.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// Whether fio is installed. If it is required, it is an error if it is not.
pub fn is_installed() -> bool {
    if Command::new("fio").arg("--version").output().is_ok() {
        return true;
    }
    // Without this, a test machine without fio would report success although nothing was tested.
    assert!(std::env::var_os("CI").is_none(), "fio is not installed");
    eprintln!("skipped: fio is not installed");
    false
}

/// Creates an empty directory for a test.
pub fn directory(test: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("hoistway-fio-{}-{test}", std::process::id()));
    fs::create_dir_all(&directory).expect("a temporary directory");
    directory
}

/// Runs a job file there, with fio's document on standard output. It must end within two minutes.
pub fn run(directory: &Path, text: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let limit = Duration::from_secs(120);
    try_run(directory, text, arguments, variables, limit).expect("fio ends within two minutes")
}

/// As `run`; `None` if fio has not ended after `limit` and was killed.
///
/// On a busy machine fio 3.33 may wait for an hour, if it is late by the length of a pause. Jobs that may do so have
/// `thread`, since separate processes would outlive it.
pub fn try_run(
    directory: &Path,
    text: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
    limit: Duration,
) -> Option<Output> {
    fs::write(directory.join("job.fio"), text).expect("a job file");
    // The output goes to files, since a pipe would not be read while fio runs.
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
