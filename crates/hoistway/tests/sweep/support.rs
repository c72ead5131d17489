//! Plans, and functions that run the binary.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A load with a thousand I/Os.
pub(crate) const LOAD: &str = "[r]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nrw=randread\niodepth=8\nsize=10g\n\
                               number_ios=1000\n";

/// 2 devices x (none + 2 of mq-deadline) x 4 seeds.
pub(crate) const PLAN: &str = r#"
loads = ["load.fio"]
devices = ["intel-s3520-1600gb", "null"]
schedulers = ["none", "mq-deadline"]
seeds = 4

[settings.mq-deadline]
fifo_batch = [1, 16]
"#;

/// Number of runs of the plan.
pub(crate) const RUNS: usize = 24;

/// A folder with the load and this plan.
pub(crate) fn folder(plan: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), LOAD).unwrap();
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    folder
}

/// The binary in a folder.
pub(crate) fn hoistway(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.current_dir(folder).args(arguments).env_remove("RAYON_NUM_THREADS");
    command
}

/// Its standard output; it must succeed.
#[track_caller]
pub(crate) fn printed(folder: &Path, arguments: &[&str]) -> String {
    text(hoistway(folder, arguments).output().unwrap())
}

#[track_caller]
pub(crate) fn text(output: Output) -> String {
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Its only message; it must end with status 2.
#[track_caller]
pub(crate) fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = hoistway(folder, arguments).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty());
    assert!(message.starts_with("hoistway: ") && message.lines().count() == 1, "{message}");
    message
}

/// The table of a data set, as written to a file.
#[track_caller]
pub(crate) fn merged(folder: &Path, runs: &str) -> String {
    printed(folder, &["merge", runs, "-o", "table.csv"]);
    fs::read_to_string(folder.join("table.csv")).unwrap()
}

/// The files of runs, with their content.
pub(crate) fn files(folder: &Path, runs: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder.join(runs).join("runs")) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let complete = paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    complete.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Waits until a sweep has finished some runs.
pub(crate) fn wait_for_a_file(folder: &Path, runs: &str) {
    while files(folder, runs).is_empty() {
        std::thread::yield_now();
    }
}
