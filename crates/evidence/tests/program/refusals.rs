//! Recordings and paths that are refused, and Ctrl-C.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

use super::interrupts::{assert_interrupted, cut_short};
use super::support::{RECORDINGS, program, refused};

/// Bytes that are not text.
const GARBAGE: &[u8] = b"[a]\nrw=read\n\xff\xfe\x80\x00\x01\xc3\x28\n";

#[track_caller]
fn recording_refused(name: &str, content: impl AsRef<[u8]>, words: &[&str]) {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join(name), content).unwrap();
    let output = program(&["conform", name]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let (listed, message) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    for word in words {
        assert!(listed.contains(word) && message.contains(word), "expected {word:?} in:\n{listed}{message}");
    }
}

fn recording() -> Vec<u8> {
    fs::read(Path::new(RECORDINGS).join("mq-deadline/dd-flush.jsonl.gz")).unwrap()
}

#[test]
fn recordings_that_were_cut() {
    let zipped = recording();
    recording_refused("cut.jsonl.gz", &zipped[..3000], &["cut.jsonl.gz:", "gzip data ends in the middle"]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&zipped[..]).read_to_string(&mut text).unwrap();
    let lines: Vec<&str> = text.lines().take(20).collect();
    let cut = lines.join("\n");
    let cut = &cut[..cut.len() - 5];
    recording_refused("cut.jsonl", cut, &["cut.jsonl:20: ", "the last line ends in the middle", "expected"]);
    recording_refused("cut.jsonl", lines.join("\n"), &["cut.jsonl:1: expected", "found 19"]);
}

#[test]
fn recordings_that_contradict_themselves() {
    let mut text = String::new();
    flate2::read::GzDecoder::new(&recording()[..]).read_to_string(&mut text).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let inserted = lines.iter().position(|line| line.contains("\"e\":\"insert\"")).unwrap();
    lines.insert(inserted + 1, lines[inserted].clone());
    let events = lines.len() - 1;
    lines[0] = lines[0].replace(&format!("\"events\":{}", events - 1), &format!("\"events\":{events}"));
    let (first, second) = (format!("inserted on line {}", inserted + 1), format!("twice.jsonl:{}: ", inserted + 2));
    recording_refused("twice.jsonl", lines.join("\n"), &[&second, "expected a request that is new", &first]);
}

#[test]
fn files_that_are_no_recordings() {
    let found = |what| ["foreign:1: ", "\"format\":\"iosched-trace/1\", found", what];
    recording_refused("foreign", b"\x07tae\0\0\0\0\0\0\0\0\0\0", &found("a binary blktrace file"));
    recording_refused("foreign", "8,0 1 1 0.0 697 Q R 223490 + 8 [fio]\n", &found("plain text"));
    recording_refused("foreign", "name = \"mine\"\n", &found("plain text"));
    recording_refused("foreign", "{\"format\":\"hoistway-results/1\"}\n", &found("\"format\":\"hoistway-results/1\""));
    recording_refused("foreign", GARBAGE, &["foreign:1: ", "expected a header line"]);
    recording_refused("empty", "", &["empty: the file is empty", "expected a header line"]);
}

#[test]
fn recordings_that_are_not_there() {
    let folder = tempdir().unwrap();
    refused(folder.path(), &["conform", "gone.jsonl.gz"], &["gone.jsonl.gz:", "no such file", "expected a recording"]);
    fs::create_dir_all(folder.path().join("empty/inside")).unwrap();
    refused(folder.path(), &["conform", "empty"], &["empty: has no recordings", "expected *.jsonl or *.jsonl.gz"]);
    refused(folder.path(), &["conform"], &["required arguments", "\n  <TRACE|FOLDER>"]);
}

#[test]
fn unwritable_output_paths_are_refused() {
    let folder = tempdir().unwrap();
    let recording = format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz");
    fs::copy(&recording, folder.path().join("recording.jsonl.gz")).unwrap();
    refused(folder.path(), &["conform", &recording, "-o", "."], &["is a directory", "expected a file to write"]);
    refused(folder.path(), &["conform", ".", "-o", "recording.jsonl.gz"], &["is read by this command"]);
}

#[test]
fn ctrl_c_prints_the_scores_of_the_recordings_that_are_done() {
    // Replaying the same recordings many times takes minutes.
    let recordings = [&["conform"][..], &[RECORDINGS; 60]].concat();
    let table = assert_interrupted(&cut_short(program(&recordings), Signal::INT));
    let (last, of) = (table.lines().last().unwrap_or_default(), table.matches(".jsonl.gz ").count());
    let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(counts[..], [done, all] if 0 < done && done < all && of <= done), "{last}");
    assert_eq!(last, format!("interrupted: {} of {} recordings", counts[0], counts[1]));

    let json = [&recordings[..], &["--format", "json"]].concat();
    let document: Value = serde_json::from_str(&assert_interrupted(&cut_short(program(&json), Signal::TERM))).unwrap();
    let done = document["traces"].as_array().unwrap().len() + document["skipped"].as_array().unwrap().len();
    assert_eq!(document["interrupted"]["recordings"], done);
    assert_eq!(document["interrupted"]["of"], counts[1]);
}

#[test]
fn a_decision_needs_the_tables_as_reproduce_writes_them() {
    refused(tempdir().unwrap().path(), &["decide", "--tables", "no.json"], &["no.json", "reproduce --format json"]);
}
