//! `hoistway compare --advice`: the files to write, and their content.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, printed, refused};

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

#[test]
fn advice_to_change_io_cost_has_lines_that_write_it_and_that_undo_it_and_apply_refuses_it() {
    let folder = tempdir().unwrap();
    let load =
        ["compare", "etcd-beside-pods", "--runtime", "1s", "--ramp", "100ms", "--schedulers", "none", "--repeat", "3"];
    let cost = ["--io-cost", "enable=0 rpct=0 wpct=95 wlat=2000 min=10", "--vary", "io.cost.qos.enable=0,1"];
    let json = printed(&[&load[..], &cost, &["--format", "json", "--advice", "nvme1n1"]].concat());
    let document: Value = serde_json::from_str(&json).unwrap();
    let advice = &document["advice"][0];
    assert_eq!(advice["decision"], "change", "{advice}");
    let lines = |key: &str| -> Vec<&str> {
        advice[key].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect()
    };
    let now = lines("now");
    assert!(now.contains(&"echo 800 > /sys/fs/cgroup/kubepods/etcd/io.weight"), "{now:?}");
    assert!(now.contains(
        &"echo \"$(cat /sys/block/nvme1n1/dev) enable=1 ctrl=user rpct=0.00 rlat=75000 wpct=95.00 wlat=2000 min=10.00 max=150.00\" > \
          /sys/fs/cgroup/io.cost.qos"
    ), "{now:?}");
    assert!(now.iter().any(|line| line.contains(" model=linear rbps=2549000000 ") && line.ends_with("/io.cost.model")));
    assert_eq!(lines("back")[0], "echo \"$(cat /sys/block/nvme1n1/dev) enable=0\" > /sys/fs/cgroup/io.cost.qos");
    assert!(advice["rule"].is_null(), "no file of the queue changes: {advice}");
    fs::write(folder.path().join("verdict.json"), json).unwrap();
    let apply =
        hoistway().current_dir(folder.path()).args(["apply", "verdict.json", "--device", "sda"]).output().unwrap();
    let complaint = String::from_utf8(apply.stderr).unwrap();
    assert_eq!(apply.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("other settings of io.cost") && complaint.contains("--advice"), "{complaint}");
}

#[test]
fn advice_to_change_io_latency_has_lines_that_write_targets_and_that_undo_them_and_apply_refuses_it() {
    let folder = tempdir().unwrap();
    let load = ["compare", "etcd-beside-pods", "--runtime", "6s", "--ramp", "100ms", "--schedulers", "none"];
    let varied = ["--io-latency", "kubepods target=1000", "--vary", "io.latency.kubepods/etcd.target=0,1000"];
    let options = ["--repeat", "3", "--format", "json", "--advice", "nvme1n1"];
    let json = printed(&[&load[..], &varied, &options].concat());
    let document: Value = serde_json::from_str(&json).unwrap();
    let labels: Vec<&str> =
        document["runs"].as_array().unwrap().iter().map(|run| run["variant"]["label"].as_str().unwrap()).collect();
    let [none, some] = ["none io.latency.kubepods/etcd.target=0", "none io.latency.kubepods/etcd.target=1000"];
    assert_eq!(labels[..2], [none, some], "{labels:?}");
    let advice = &document["advice"][0];
    assert_eq!((advice["decision"].as_str(), advice["recommended"].as_str()), (Some("change"), Some(some)), "{advice}");
    let line = |us: u32| {
        format!("echo \"$(cat /sys/block/nvme1n1/dev) target={us}\" > /sys/fs/cgroup/kubepods/etcd/io.latency")
    };
    assert_eq!((&advice["now"], &advice["back"]), (&serde_json::json!([line(1000)]), &serde_json::json!([line(0)])));
    let cautions = advice["cautions"].to_string();
    assert!(cautions.contains("kubepods/etcd: IODeviceLatencyTargetSec=/dev/nvme1n1 1000us"), "{cautions}");
    assert!(advice["rule"].is_null(), "no file of the queue changes: {advice}");
    fs::write(folder.path().join("verdict.json"), json).unwrap();
    let apply =
        hoistway().current_dir(folder.path()).args(["apply", "verdict.json", "--device", "sda"]).output().unwrap();
    let complaint = String::from_utf8(apply.stderr).unwrap();
    assert_eq!(apply.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("other targets of io.latency") && complaint.contains("--advice"), "{complaint}");
}
