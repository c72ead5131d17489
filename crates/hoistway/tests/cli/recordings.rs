//! `hoistway trace`: recordings of block I/O are described and converted.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, printed, refused, succeeded};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/block/data");

#[test]
fn a_recording_is_described_with_its_streams() {
    let recording = format!("{DATA}/sqlite-commits.blktrace.0.gz");
    let text = printed(&["trace", "info", &recording]);
    assert!(text.contains("python3") && text.contains("jbd2"), "{text}");
    let document: Value = serde_json::from_str(&printed(&["trace", "info", &recording, "--format", "json"])).unwrap();
    assert!(document["streams"].as_array().is_some_and(|streams| streams.len() >= 2), "{document}");
}

#[test]
fn a_converted_recording_holds_the_same_events() {
    let folder = tempdir().unwrap();
    let convert = |from: &str, to: &str| {
        succeeded(hoistway().current_dir(folder.path()).args(["trace", "convert", from, "-o", to]));
    };
    convert(&format!("{DATA}/synthetic.blktrace.0.gz"), "once.blktrace");
    assert!(folder.path().join("once.blktrace.0").is_file());
    convert(&format!("{DATA}/synthetic.blktrace.0.gz"), "first.jsonl");
    convert("once.blktrace.0", "second.jsonl");
    let lines = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(lines("first.jsonl").lines().count() > 10);
    assert_eq!(lines("first.jsonl"), lines("second.jsonl"));
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("picture.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let refuse = |arguments: &[&str], words: &[&str]| {
        let output = hoistway().current_dir(folder.path()).args(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {message}");
        words.iter().for_each(|word| assert!(message.contains(word), "{arguments:?}: no {word:?} in {message}"));
    };
    refuse(&["trace", "info", "picture.png"], &["picture.png", "expected"]);
    refuse(&["trace", "info", "gone.blktrace.0"], &["gone.blktrace.0"]);
    refused(
        Path::new(folder.path()),
        &["trace", "convert", "picture.png", "-o", "x.csv"],
        &["-o x.csv: an unknown ending (expected NAME.blktrace or NAME.jsonl)"],
    );
}
