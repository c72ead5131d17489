//! `hoistway compare --guest-schedulers`: queues of guests above those of the host.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::support::{hoistway, refused, repeatable, succeeded};

const JOB: &str = "[global]\nioengine=libaio\niodepth=8\ndirect=1\nrw=randrw\ntime_based\nruntime=1\n\
                   [a]\nfilename=/dev/vda\n[b]\nfilename=/dev/vdb\n";

fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("job.fio"), JOB).unwrap();
    folder
}

/// The standard output of a comparison of the load for 200 ms.
fn output(folder: &Path, options: &[&str]) -> String {
    let mut command = hoistway();
    succeeded(command.current_dir(folder).args(["compare", "job.fio", "--runtime", "200ms"]).args(options))
}

fn compared(options: &[&str]) -> Value {
    let options = [&["--format", "json"], options].concat();
    serde_json::from_str(&output(folder().path(), &options)).unwrap()
}

fn rows(document: &Value) -> Vec<&str> {
    document["runs"].as_array().unwrap().iter().map(|run| run["scheduler"].as_str().unwrap()).collect()
}

/// Reads of each job of a run, and the mean of their latencies.
fn reads(document: &Value, run: usize) -> Vec<(Option<u64>, Option<f64>)> {
    let jobs = document["runs"][run]["jobs"].as_array().unwrap().iter();
    let reads = jobs.map(|job| &job["operations"][0]);
    reads.map(|reads| (reads["ios"].as_u64(), reads["lat_ns"]["mean"].as_f64())).collect()
}

#[test]
fn every_scheduler_of_the_guests_is_compared_over_every_one_of_the_host() {
    let document = compared(&["--guest-schedulers", "none,bfq", "--schedulers", "mq-deadline,cfq"]);
    assert_eq!(rows(&document), ["none-over-mq-deadline", "bfq-over-mq-deadline", "none-over-cfq", "bfq-over-cfq"]);
    assert_eq!(document["guests"]["schedulers"], serde_json::json!(["none", "bfq"]));
    assert_eq!(document["guests"]["virtual_disk"]["name"], "virtio-blk");
    assert_eq!(document["host"]["name"], "vm", "the default of guests");
    let disks: Vec<_> = document["runs"][0]["disks"].as_array().unwrap().iter().map(|disk| &disk["file"]).collect();
    assert_eq!(disks, ["/dev/vda", "/dev/vdb", "intel-s3520-1600gb"]);
    let plain = compared(&["--guest-schedulers", "default"]);
    assert_eq!(rows(&plain)[..2], ["mq-deadline-over-none", "mq-deadline-over-mq-deadline"]);
    assert!(plain["notices"].to_string().contains("as Linux 7.2 chooses for virtio-blk"));
}

#[test]
fn a_scheduler_in_the_guest_orders_nothing_while_its_disk_takes_all() {
    // Up to 7.1 the submitting task dispatches its I/O itself; since then a worker does so, a microsecond later. On this host schedulers
    // take no CPU time, which would differ.
    let schedulers = ["--guest-schedulers", "none,mq-deadline,kyber", "--schedulers", "bfq"];
    let document = compared(&[&schedulers[..], &["--kernel", "6.18", "--host", "instant"]].concat());
    for run in 1..3 {
        assert_eq!(reads(&document, run), reads(&document, 0), "{}", rows(&document)[run]);
    }
}

#[test]
fn a_smaller_virtual_disk_makes_them_differ() {
    let folder = folder();
    let profile =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/virtual_disks/virtio-blk.toml")).unwrap();
    fs::write(folder.path().join("small.toml"), profile.replace("queue_depth = 256", "queue_depth = 2")).unwrap();
    let options = ["--guest-schedulers", "none,mq-deadline", "--schedulers", "none", "--format", "json"];
    let with =
        |more: &[&str]| -> Value { serde_json::from_str(&output(folder.path(), &[&options, more].concat())).unwrap() };
    let small = with(&["--virtual-disk", "small.toml"]);
    assert_ne!(reads(&small, 0), reads(&small, 1));
    assert_ne!(reads(&small, 0), reads(&with(&[]), 0));
}

#[test]
fn tunables_hold_wherever_their_scheduler_runs_and_weights_on_the_host() {
    let set = ["--set", "bfq.strict_guarantees=1"];
    let schedulers = ["--guest-schedulers", "bfq", "--schedulers", "bfq,none", "--from-start"];
    let of = |options: &[&str]| compared(&[options, &schedulers].concat());
    let (plain, tuned) = (of(&[]), of(&set));
    for run in 0..2 {
        assert_ne!(reads(&plain, run), reads(&tuned, run), "run {run}");
    }
    let weighted = of(&["--guest-weight", "/dev/vda=500"]);
    assert_ne!(reads(&plain, 0), reads(&weighted, 0));
    assert_eq!(reads(&plain, 1), reads(&weighted, 1), "none knows no weights");
    assert!(weighted["notices"].to_string().contains("--guest-weight has no effect with none on the host"));
    assert_eq!(weighted["guests"]["weights"]["/dev/vda"], 500);
}

#[test]
fn a_row_is_named_by_both_for_the_baseline_logs_and_traces() {
    let folder = folder();
    let pair = ["--guest-schedulers", "none", "--schedulers", "none,bfq"];
    let more = ["--baseline", "none-over-bfq", "--fio-logs", "logs", "--trace", "events.jsonl"];
    let table = output(folder.path(), &[&pair[..], &more].concat());
    assert!(table.contains("vs") && table.contains("none-over-bfq"), "{table}");
    assert!(folder.path().join("logs/none-over-bfq/fio.json").is_file());
    let events = fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let header: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(header["devices"], serde_json::json!(["/dev/vda", "/dev/vdb", "intel-s3520-1600gb"]));
    let jobs: Vec<_> = header["processes"].as_array().unwrap().iter().map(|process| &process["job"]).collect();
    assert_eq!(jobs, ["a", "b", "(guest of /dev/vda)", "(guest of /dev/vdb)"]);
    let why = succeeded(hoistway().current_dir(folder.path()).args(["why", "events.jsonl"]));
    assert!(why.contains("\nnone-over-bfq\n"), "{why}");
}

#[test]
fn host_reasons_for_guest_ios_name_a_request_and_no_job() {
    let folder = folder();
    let pair = ["--guest-schedulers", "none", "--schedulers", "mq-deadline", "--trace", "events.jsonl"];
    output(folder.path(), &pair);
    let why = succeeded(hoistway().current_dir(folder.path()).args(["why", "events.jsonl"]));
    let mut rows = why.lines().filter(|line| line.contains(" %  "));
    assert!(rows.all(|row| row.contains("(no job)")), "mq-deadline refuses nothing: {why}");
    let json = succeeded(hoistway().current_dir(folder.path()).args(["why", "--format", "json", "events.jsonl"]));
    let document: Value = serde_json::from_str(&json).unwrap();
    let reasons = document["runs"][0]["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|reason| reason["request"] == true && reason["process"].is_null()), "{json}");
}

#[test]
fn the_same_command_gives_the_same_document() {
    let folder = folder();
    let once = || repeatable(&output(folder.path(), &["--guest-schedulers", "bfq,kyber", "--format", "json"]));
    assert_eq!(once(), once());
}

#[test]
fn options_that_guests_cannot_have_are_refused() {
    let folder = folder();
    let guests = ["--guest-schedulers", "none"];
    let cases: [(&[&str], &str); 10] = [
        (
            &["--guest-schedulers", "nun"],
            "--guest-schedulers nun: unknown scheduler (did you mean \"none\"? expected all, or some of",
        ),
        (
            &["--virtual-disk", "virtio-blk"],
            "--virtual-disk virtio-blk: the load does not run in guests (expected --guest",
        ),
        (&["--guest-weight", "/dev/vda=2"], "--guest-weight /dev/vda=2: the load does not run in guests (expected"),
        (&["--guest-schedulers", "none", "--guest-weight", "/dev/vdx=2"], "the job file has no filename \"/dev/vdx\""),
        (&["--guest-schedulers", "none", "--guest-weight", "/dev/vda=0"], "expected FILE=N with N from 1 to 1000"),
        (&["--guest-schedulers", "none", "--guest-weight", "fast"], "expected FILE=N with N from 1 to 1000"),
        (
            &["--guest-schedulers", "none", "--virtual-disk", "ide"],
            "no built-in virtual disk `ide`; expected one of virtio-blk",
        ),
        (&["--guest-schedulers", "none", "--virtual-disk", "no.toml"], "no.toml"),
        (&["--guest-schedulers", "none", "--device", "/dev/vda=null"], "(expected one --device PRESET)"),
        (&["--guest-schedulers", "none", "--shared-tags"], "--shared-tags: the disks of guests are on one device"),
    ];
    for (options, expected) in cases {
        refused(folder.path(), &[&["compare", "job.fio"], options].concat(), &[expected]);
    }
    fs::write(folder.path().join("bad.toml"), "name = \"bad\"\nqueue_depth = -1\n").unwrap();
    let command = ["compare", "job.fio", "--virtual-disk", "bad.toml"];
    let expected = "bad.toml:2: `queue_depth` is -1; expected a whole number from 1 to 4096";
    refused(folder.path(), &[&command[..], &guests].concat(), &[expected]);
}
