//! How a run ends before its time: Ctrl-C, and readers that go away.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hoistway_blk::SCHEDULERS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::tempdir;

use crate::support::RECORDINGS;

/// After it a process that should have ended or begun never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// Processor time, in ticks of 10 ms, after which a run certainly has results.
const TICKS_OF_WORK: u64 = 20;

fn hoistway(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until `condition` holds, and answers whether it ever did.
fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Processor time of a process, in ticks. The fields of the file are counted behind the name in brackets.
fn ticks(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    fields.get(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Whether a process has a handler for Ctrl-C.
fn handles_interrupts(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught >> (Signal::INT.as_raw() - 1) & 1 == 1
}

/// What a process printed up to its end. Reading goes on meanwhile: results may be longer than a pipe holds.
fn ended(child: Child) -> Output {
    let process = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(PATIENCE);
    if output.is_err() {
        kill_process(process, Signal::KILL).unwrap();
    }
    waiter.join().unwrap().unwrap();
    output.expect("does not end").unwrap()
}

/// Begins a comparison that would take days, and sends it a signal when it has done some work.
fn interrupted(options: &[&str], signal: Signal) -> Output {
    cut_short(&[&["compare", "--runtime", "3650d"], options].concat(), signal)
}

/// Begins something long, and sends it a signal when it has done some work.
fn cut_short(arguments: &[&str], signal: Signal) -> Output {
    let child = hoistway(arguments).spawn().unwrap();
    assert!(eventually(|| handles_interrupts(&child)), "does not begin");
    let before = ticks(&child);
    assert!(eventually(|| ticks(&child) >= before + TICKS_OF_WORK), "does not work");
    kill_process(Pid::from_child(&child), signal).unwrap();
    ended(child)
}

fn assert_interrupted(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn ctrl_c_prints_what_there_is_and_says_that_it_was_cut_short() {
    let table = assert_interrupted(&interrupted(&[], Signal::INT));
    assert!(table.contains("Cut short"), "{table}");
    assert!(table.lines().any(|line| line.starts_with("none ")), "{table}");
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
fn ctrl_c_ends_a_search_at_once_and_keeps_none_of_the_runs_that_it_broke_off() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("state.json");
    let job = folder.path().join("long.fio");
    fs::write(&job, "[g]\nrw=randread\ndirect=1\nsize=1g\ntime_based\nruntime=1\n").unwrap();
    let options = ["--objective", "min g:read:p99", "--over", "none,kyber", "--runtime", "3650d", "--state"];
    let (job, place) = (job.to_str().unwrap(), state.to_str().unwrap());
    let output = cut_short(&[&["tune", job], &options[..], &[place]].concat(), Signal::INT);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("its 0 runs are in "), "{told}");
    let state: Value = serde_json::from_str(&fs::read_to_string(&state).unwrap()).unwrap();
    assert_eq!(state["runs"], serde_json::json!([]));
}

#[test]
fn ctrl_c_completes_the_folder_of_logs_and_the_table_of_repeats() {
    let folder = tempdir().unwrap();
    let logs = folder.path().join("logs");
    let options = ["--repeat", "3", "--fio-logs", logs.to_str().unwrap()];
    let table = assert_interrupted(&interrupted(&options, Signal::INT));
    assert!(table.contains("Cut short"), "{table}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(logs.join("none/fio.json").exists());
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
fn ctrl_c_prints_the_scores_of_the_recordings_that_are_done() {
    // The same recordings over and over take minutes.
    let recordings = [&["conform"][..], &[RECORDINGS; 60]].concat();
    let table = assert_interrupted(&cut_short(&recordings, Signal::INT));
    let (last, of) = (table.lines().last().unwrap_or_default(), table.matches(".jsonl.gz ").count());
    let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(counts[..], [done, all] if 0 < done && done < all && of <= done), "{last}");
    assert_eq!(last, format!("interrupted: {} of {} recordings", counts[0], counts[1]));

    let json = [&recordings[..], &["--format", "json"]].concat();
    let document: Value = serde_json::from_str(&assert_interrupted(&cut_short(&json, Signal::TERM))).unwrap();
    let done = document["traces"].as_array().unwrap().len() + document["skipped"].as_array().unwrap().len();
    assert_eq!(document["interrupted"]["recordings"], done);
    assert_eq!(document["interrupted"]["of"], counts[1]);
}

#[test]
fn being_killed_leaves_no_file_behind() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("results.json");
    let output = interrupted(&["-o", file.to_str().unwrap()], Signal::KILL);
    assert!(!output.status.success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Runs the binary with nobody at the other end of its standard output.
fn with_nobody_reading(arguments: &[&str]) -> (ExitStatus, String) {
    let mut child = hoistway(arguments).spawn().unwrap();
    drop(child.stdout.take());
    let output = ended(child);
    (output.status, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [
        &["compare", "--runtime", "20ms"][..],
        &["compare", "--runtime", "20ms", "--format", "json"],
        &["devices"],
        &["explain", "bfq"],
        &["--help"],
    ] {
        let (status, complaints) = with_nobody_reading(arguments);
        assert_eq!(complaints, "", "{arguments:?}");
        assert!(status.success(), "{arguments:?}: {status}");
    }
}

#[test]
fn an_error_that_nobody_reads_is_still_only_an_error() {
    let mut child = hoistway(&["compare", "gone.fio"]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(ended(child).status.code(), Some(2));
}

#[test]
fn links_and_pipes_stay_what_they_are() {
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
fn who_waits_for_a_pipe_is_told_so_and_goes_on_when_it_ends() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("load.fio");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let mut command = hoistway(&["compare", "load.fio", "--schedulers", "none"]);
    let mut child = command.current_dir(folder.path()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert_eq!(told, "waiting for the end of \"load.fio\"\n");
    fs::write(&pipe, "[patient]\ndirect=1\nsize=1m\n").unwrap();
    let output = ended(child);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("patient"));
}
