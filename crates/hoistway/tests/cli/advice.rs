//! `hoistway compare --advice`: the files to write, and their content.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{printed, refused};

const SHORT: [&str; 7] =
    ["compare", "--runtime", "300ms", "--schedulers", "mq-deadline,kyber", "--focus", "mixed:read:p99"];

fn document(options: &[&str]) -> Value {
    serde_json::from_str(&printed(&[&SHORT[..], &["--format", "json"], options].concat())).unwrap()
}

#[test]
fn advice_is_in_the_table_and_in_the_document_for_the_device_that_is_named_or_that_of_the_job_file() {
    let table = printed(&[&SHORT[..], &["--set", "kyber.read_lat_nsec=1000000", "--advice", "sdx1"]].concat());
    let (_, advice) = table.split_once("\nCommands for sdx:\n").unwrap();
    assert!(advice.contains("sdx1 is a partition"), "{advice}");
    assert!(advice.contains("\n    echo kyber > /sys/block/sdx/queue/scheduler\n"), "{advice}");
    assert!(advice.contains("\n    echo 1000000 > /sys/block/sdx/queue/iosched/read_lat_nsec\n"), "{advice}");
    let of = |options: &[&str]| -> Vec<String> {
        let document = document(options);
        let advice = document["advice"].as_array().cloned().unwrap_or_default();
        advice.iter().map(|advice| advice["device"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of(&["--advice"]), ["sda"], "the example is of /dev/sda");
    assert_eq!(of(&["--advice", "sdb,/dev/nvme0n1"]), ["sdb", "nvme0n1"]);
    assert!(of(&[]).is_empty());
}

#[test]
fn advice_uses_as_many_repeats_as_it_needs_in_every_format() {
    let document = document(&["--advice", "sda"]);
    assert_eq!(document["advice"][0]["decision"], "change");
    assert!(document["seeds"].as_array().unwrap().len() >= 3);
}

#[test]
fn advice_refuses_an_invalid_device_and_detects_a_misplaced_load() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("mine.fio"), "[a]\nfilename=/dev/sda\nruntime=1\n").unwrap();
    refused(folder.path(), &["compare", "--advice", "a b"], &["\"a b\" is not a block device name"]);
    let csv = ["compare", "--advice", "sda", "--format", "csv"];
    refused(folder.path(), &csv, &["--advice: --format csv has no place for it (expected table, json or markdown)"]);
    for load in ["database", "mine.fio"] {
        refused(folder.path(), &["compare", "--advice", load], &["put the load before --advice"]);
    }
}
