//! `hoistway conform`: what comes out.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{RECORDINGS, keys, printed};

const SCORES: [&str; 4] = ["all", "hard", "switch", "null"];

fn conform_json(recordings: &str) -> Value {
    let text = printed(&["conform", recordings, "--format", "json"]);
    serde_json::from_str(&text).unwrap()
}

/// Every score is a fraction, or null where there was nothing to count.
fn assert_fractions(row: &Value) {
    for score in SCORES {
        let fraction = row[score].as_f64();
        let possible = row[score].is_null() || fraction.is_some_and(|fraction| (0.0..=1.0).contains(&fraction));
        assert!(possible && row.get(score).is_some(), "{score}: {row}");
    }
}

#[test]
fn every_decision_of_mq_deadline_on_one_cpu_is_the_kernels() {
    let document = conform_json(&format!("{RECORDINGS}/mq-deadline"));
    assert_eq!(keys(&document), ["format", "traces", "by_scheduler", "skipped"]);
    assert_eq!(document["format"], "hoistway-conformance/1");
    assert_eq!(document["skipped"].as_array().unwrap().len(), 0);
    let traces = document["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 27);
    for trace in traces {
        assert_eq!(trace["scheduler"], "mq-deadline");
        assert!(trace["dispatches"].as_u64() > Some(100), "{trace}");
        assert_fractions(trace);
        let file = trace["file"].as_str().unwrap();
        if file.contains("2cpu") || file.contains("2hwq") {
            continue;
        }
        assert_eq!(trace["all"], 1.0, "{file}");
        for score in SCORES {
            assert!(trace[score].is_null() || trace[score] == 1.0, "{file}: {score}");
        }
        assert_eq!(trace["mismatches"].as_array().unwrap().len(), 0, "{file}");
    }
    let pooled = &document["by_scheduler"]["mq-deadline"];
    assert_eq!(pooled["traces"], 27);
    assert_fractions(pooled);
}

#[test]
fn the_table_names_each_recording_and_ends_with_the_pool() {
    let table = printed(&["conform", &format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz")]);
    assert!(table.contains(" dd-flush.jsonl.gz ") && table.contains(" 1 recordings "), "{table}");
    assert!(!table.contains('\x1b'), "escape codes without a terminal");
}

#[test]
fn a_file_receives_what_would_be_printed() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("scores.json");
    let recording = format!("{RECORDINGS}/mq-deadline/dd-flush.jsonl.gz");
    let arguments = ["conform", &recording, "--format", "json"];
    let to_file = printed(&[&arguments[..], &["-o", file.to_str().unwrap()]].concat());
    assert_eq!(to_file, "");
    assert_eq!(fs::read_to_string(&file).unwrap(), printed(&arguments));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
