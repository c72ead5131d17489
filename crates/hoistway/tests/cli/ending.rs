//! Early ends of a run: Ctrl-C, and readers of the output that go away.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;

use hoistway_blk::queue::SCHEDULERS;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

use crate::interrupts::{assert_interrupted, complaints, cut_short, ended};

fn hoistway(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a comparison that would take days, and sends it a signal when it has done some work.
fn interrupted(options: &[&str], signal: Signal) -> Output {
    cut_short(hoistway(&[&["compare", "--runtime", "3650d"], options].concat()), signal)
}

#[test]
fn ctrl_c_prints_partial_results_and_says_they_are_incomplete() {
    let table = assert_interrupted(&interrupted(&[], Signal::INT));
    assert!(table.contains("Incomplete"), "{table}");
    assert!(table.lines().any(|line| SCHEDULERS.iter().any(|name| line.starts_with(&format!("{name} ")))), "{table}");
}

#[test]
fn ctrl_c_marks_the_document_as_partial() {
    for signal in [Signal::INT, Signal::TERM] {
        let document: Value =
            serde_json::from_str(&assert_interrupted(&interrupted(&["--format", "json"], signal))).unwrap();
        assert_eq!(document["partial"], true);
        let runs = document["runs"].as_array().unwrap();
        assert!((1..=SCHEDULERS.len()).contains(&runs.len()));
        assert!(runs.iter().any(|run| run["simulated_ios"].as_u64() > Some(0)));
    }
}

#[test]
fn ctrl_c_completes_the_file() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("results.json");
    let output = interrupted(&["--format", "json", "-o", file.to_str().unwrap()], Signal::INT);
    assert_eq!(assert_interrupted(&output), "");
    let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(document["partial"], true);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn ctrl_c_ends_a_search_at_once_and_keeps_no_unfinished_run() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("state.json");
    let job = folder.path().join("long.fio");
    fs::write(&job, "[g]\nrw=randread\ndirect=1\nsize=1g\ntime_based\nruntime=1\n").unwrap();
    let options = ["--objective", "min g:read:p99", "--over", "none,kyber", "--runtime", "3650d", "--state"];
    let (job, place) = (job.to_str().unwrap(), state.to_str().unwrap());
    let output = cut_short(hoistway(&[&["tune", job], &options[..], &[place]].concat()), Signal::INT);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("its 0 runs are saved in "), "{shown}");
    let state: Value = serde_json::from_str(&fs::read_to_string(&state).unwrap()).unwrap();
    assert_eq!(state["runs"], serde_json::json!([]));
}

#[test]
fn ctrl_c_completes_the_folder_of_logs_and_the_table_of_repeats() {
    let folder = tempdir().unwrap();
    let logs = folder.path().join("logs");
    let options = ["--repeat", "3", "--fio-logs", logs.to_str().unwrap()];
    let table = assert_interrupted(&interrupted(&options, Signal::INT));
    assert!(table.contains("Incomplete"), "{table}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(SCHEDULERS.iter().any(|name| logs.join(name).join("fio.json").exists()));
}

#[test]
fn ctrl_c_completes_the_trace_and_marks_it_as_partial() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("events.jsonl");
    assert_interrupted(&interrupted(&["--trace", file.to_str().unwrap()], Signal::INT));
    let trace = fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(trace.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["partial"]), (&"trace_end".into(), &true.into()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn being_killed_leaves_no_file_behind() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("results.json");
    let output = interrupted(&["-o", file.to_str().unwrap()], Signal::KILL);
    assert!(!output.status.success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Runs the binary with a standard output that nobody reads.
fn with_closed_stdout(arguments: &[&str]) -> (ExitStatus, String) {
    let mut child = hoistway(arguments).spawn().unwrap();
    drop(child.stdout.take());
    let output = ended(child);
    (output.status, complaints(&output.stderr))
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    for arguments in [
        &["compare", "--runtime", "20ms"][..],
        &["compare", "--runtime", "20ms", "--format", "json"],
        &["devices"],
        &["explain", "bfq"],
        &["--help"],
    ] {
        let (status, complaints) = with_closed_stdout(arguments);
        assert_eq!(complaints, "", "{arguments:?}");
        assert!(status.success(), "{arguments:?}: {status}");
    }
}

#[test]
fn without_a_standard_output_results_are_refused_unless_they_go_to_a_file() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("results.txt");
    let run = |arguments: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_hoistway")]).args(arguments);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for arguments in [&["compare", "--runtime", "20ms"][..], &["devices"]] {
        let (status, complaint) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}");
        assert!(complaint.contains("standard output is closed (expected"), "{arguments:?}: {complaint}");
    }
    assert_eq!(run(&["compare", "--runtime", "20ms", "-o", file.to_str().unwrap()]).0, Some(0));
    assert!(fs::read_to_string(&file).unwrap().contains("mq-deadline"));
}

#[test]
fn a_closed_stderr_does_not_change_the_exit_status() {
    let mut child = hoistway(&["compare", "gone.fio"]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(ended(child).status.code(), Some(2));
}

#[test]
fn links_and_pipes_are_preserved_as_output() {
    let folder = tempdir().unwrap();
    let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    let compare = |place: &std::path::Path| {
        let mut command = hoistway(&["compare", "--runtime", "20ms", "-o"]);
        ended(command.arg(place).spawn().unwrap()).status
    };
    assert!(compare(&link).success());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().contains("mq-deadline"));

    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let reader = {
        let pipe = pipe.clone();
        thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    assert!(compare(&pipe).success());
    assert!(reader.join().unwrap().contains("mq-deadline"));
    assert!(!fs::symlink_metadata(&pipe).unwrap().is_file());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_command_waiting_for_an_input_pipe_says_so_and_continues_at_its_end() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("load.fio");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let mut command = hoistway(&["compare", "load.fio", "--schedulers", "none"]);
    let mut child = command.current_dir(folder.path()).spawn().unwrap();
    let mut shown = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut shown).unwrap();
    assert_eq!(shown, "reading \"load.fio\" until its end\n");
    fs::write(&pipe, "[patient]\ndirect=1\nsize=1m\n").unwrap();
    let output = ended(child);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("patient"));
}
