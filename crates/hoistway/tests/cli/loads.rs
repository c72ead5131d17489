//! Loads on several devices and replays, from the job file to the results.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, refused, succeeded};

const LOG: &str = "fio version 3 iolog\n0 /dev/a add\n0 /dev/b add\n0 /dev/a read 0 4096\n10000 /dev/b write 4096 4096\n\
    30000 /dev/a sync 0 0\n900000 /dev/a read 8192 4096\n";

#[test]
fn each_file_of_a_job_is_a_device_that_may_be_named() {
    let folder = tempdir().unwrap();
    let job =
        "[a]\nfilename=/dev/slow:/dev/fast\ndirect=1\nrw=randread\nioengine=libaio\niodepth=8\ntime_based\nruntime=1\n";
    fs::write(folder.path().join("load.fio"), job).unwrap();
    let arguments = ["compare", "load.fio", "--schedulers", "none", "--format", "json"];
    let mut command = hoistway();
    command.current_dir(folder.path()).args(arguments).args([
        "--device",
        "null",
        "--device",
        "/dev/slow=hgst-he10-8tb",
    ]);
    let document: Value = serde_json::from_str(&succeeded(&mut command)).unwrap();
    let devices: Vec<_> =
        document["device"].as_array().unwrap().iter().map(|d| (d["file"].as_str(), d["name"].as_str())).collect();
    let expected = [(Some("/dev/slow"), Some("hgst-he10-8tb")), (Some("/dev/fast"), Some("null"))];
    assert_eq!(devices, expected);
    let wrong = ["compare", "load.fio", "--device", "/dev/other=null"];
    refused(folder.path(), &wrong, &["\"/dev/other\"", "expected one of /dev/slow, /dev/fast"]);
}

#[test]
fn a_buffered_load_runs_with_a_notice_and_the_requested_memory() {
    let folder = tempdir().unwrap();
    let job = "[a]\nfilename=/dev/sda\nrw=randread\nsize=64m\nloops=2\nioengine=libaio\niodepth=4\n";
    fs::write(folder.path().join("load.fio"), job).unwrap();
    let run = |memory: &str| -> Value {
        let mut command = hoistway();
        let arguments = ["compare", "load.fio", "--schedulers", "none", "--format", "json", "--memory", memory];
        serde_json::from_str(&succeeded(command.current_dir(folder.path()).args(arguments))).unwrap()
    };
    let document = run("1G");
    assert_eq!(document["host"]["memory_bytes"].as_u64(), Some(1 << 30));
    let notices = document["notices"].to_string();
    assert!(notices.contains("a simplified page cache") && notices.contains("iodepth=4 becomes 1"), "{notices}");
    let read = |document: &Value| {
        let cache = &document["runs"][0]["page_cache"];
        cache["missed_bytes"].as_u64().unwrap() + cache["read_ahead_bytes"].as_u64().unwrap()
    };
    assert_eq!(read(&document), 64 << 20);
    assert!(read(&run("16m")) > 100 << 20);
    for wrong in ["4", "1k", "4Q", "lots", "17T", "-1"] {
        let memory = format!("--memory={wrong}");
        let expected = ["--memory", "expected a size from 16M to 16T, such as 4G"];
        refused(folder.path(), &["compare", "load.fio", &memory], &expected);
    }
}

#[test]
fn a_log_is_replayed_with_its_pauses() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), "[a]\ndirect=1\nread_iolog=recorded.log\nbs=8k\n").unwrap();
    fs::write(folder.path().join("recorded.log"), LOG).unwrap();
    let compared = |scheduler: &str, format: &str| {
        let arguments = ["compare", "load.fio", "--schedulers", scheduler, "--format", format];
        serde_json::from_str::<Value>(&succeeded(hoistway().current_dir(folder.path()).args(arguments))).unwrap()
    };
    for scheduler in ["bfq", "none"] {
        let job = &compared(scheduler, "fio-json")["jobs"][0];
        assert_eq!((job["read"]["total_ios"].as_u64(), job["write"]["total_ios"].as_u64()), (Some(2), Some(1)));
        let runtime = job["job_runtime"].as_u64().unwrap();
        assert!((900..1000).contains(&runtime), "{runtime}");
    }
    let notices = compared("none", "json")["notices"].to_string();
    assert!(
        notices.contains("a replay takes its I/Os from the log, as in fio, so these options have no effect: bs."),
        "{notices}"
    );
}

#[test]
fn a_log_that_cannot_be_replayed_is_refused_with_its_line() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), "[a]\ndirect=1\nread_iolog=recorded.log\n").unwrap();
    let refused = |words: &[&str]| refused(folder.path(), &["compare", "load.fio"], words);
    refused(&["load.fio:3:", "read_iolog", "\"recorded.log\"", "No such file"]);
    let of = |log: &[u8]| fs::write(folder.path().join("recorded.log"), log).unwrap();
    of(b"\x07\x74\x61\x65\x01\x00\x00\x00");
    refused(&["recorded.log:1:", "blktrace recordings are not supported", "write_iolog"]);
    of(b"\xff\xff\xff\xff\xff");
    refused(&["recorded.log:1:", "not text"]);
    of(b"fio version 3 iolog\n0 /dev/a read zero 4096\n");
    refused(&["recorded.log:2:", "\"zero\"", "an offset in bytes"]);
}

#[test]
fn latencies_by_priority_are_in_the_results_as_fio_has_them() {
    let folder = tempdir().unwrap();
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randrw\nioengine=libaio\niodepth=8\ntime_based\nruntime=1\n\
        prio=3\ncmdprio_percentage=50,0\ncmdprio_class=1\ncmdprio=5\n";
    fs::write(folder.path().join("load.fio"), job).unwrap();
    let mut command = hoistway();
    command.current_dir(folder.path()).args(["compare", "load.fio", "--schedulers", "none", "--format", "fio-json"]);
    let document: Value = serde_json::from_str(&succeeded(&mut command)).unwrap();
    let job = &document["jobs"][0];
    let prios = job["read"]["prios"].as_array().unwrap();
    let shown: Vec<_> = prios.iter().map(|of| (of["prioclass"].as_u64(), of["prio"].as_u64())).collect();
    assert_eq!(shown, [(Some(1), Some(5)), (Some(2), Some(3))]);
    let total: u64 = prios.iter().filter_map(|of| of["lat_ns"]["N"].as_u64()).sum();
    assert_eq!(Some(total), job["read"]["total_ios"].as_u64());
    assert!(job["write"].get("prios").is_none());
}

/// What fio printed of a job that reads and writes, with these mean latencies in microseconds.
fn fio_output(read_us: u32, write_us: u32) -> String {
    let of = |mean_us: u32| {
        let second = 1_000_000 / (read_us + write_us);
        format!(r#"{{"total_ios": {second}, "iops": {second}, "lat_ns": {{"mean": {}}}}}"#, mean_us * 1000)
    };
    format!(
        r#"{{"fio version": "fio-3.33", "global options": {{"filename": "/dev/vdb", "direct": "1", "runtime": "1"}}, "jobs": [{{
            "jobname": "db", "job options": {{"rw": "randrw", "bs": "4k", "size": "1g"}}, "read": {}, "write": {}}}],
            "disk_util": [{{"name": "vdb"}}]}}"#,
        of(read_us),
        of(write_us)
    )
}

#[test]
fn the_output_of_fio_is_a_load_and_gets_no_verdict_on_a_device_that_is_not_its_own() {
    let folder = tempdir().unwrap();
    let compared = |read_us: u32, write_us: u32| -> Value {
        fs::write(folder.path().join("out.json"), fio_output(read_us, write_us)).unwrap();
        let arguments = ["compare", "out.json", "--device", "null", "--runtime", "200ms", "--format", "json"];
        serde_json::from_str(&succeeded(hoistway().current_dir(folder.path()).args(arguments))).unwrap()
    };
    let far = compared(5000, 20);
    assert!(far.get("verdicts").is_none(), "{}", far["verdicts"]);
    let first = far["conclusion"][0].as_str().unwrap();
    assert!(
        first.starts_with("No verdict for null: it is not the observed device vdb: reads of db took 5.00 ms"),
        "{first}"
    );
    assert!(!first.contains("writes of db"), "{first}");
    // The scheduler of the output is unknown, so the nearest one counts, and its figures fit themselves.
    let model_us = |row: usize| far["device_checks"][0]["rows"][row]["model_ns"].as_f64().unwrap() / 1e3;
    let fitting = compared(model_us(0).round() as u32, model_us(1).round() as u32);
    assert_eq!(fitting["verdicts"].as_array().map(Vec::len), Some(1), "{}", fitting["device_checks"]);
    let notices = fitting["notices"].as_array().unwrap();
    let fits = |notice: &Value| notice.as_str().unwrap().starts_with("The model fits: reads of db took ");
    assert!(notices.iter().any(fits), "{notices:?}");
}
