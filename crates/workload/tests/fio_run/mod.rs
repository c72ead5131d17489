//! Running the real fio.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// Runs a job file there; its document goes to the standard output.
pub fn run(directory: &Path, text: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    fs::write(directory.join("job.fio"), text).expect("a job file");
    let mut fio = Command::new("fio");
    fio.args(arguments).args(["--output-format=json", "job.fio"]).envs(variables.iter().copied());
    fio.current_dir(directory).output().expect("fio")
}
