//! Recordings that we write: converted ones, and those of simulated runs. The usual programs can read them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, is_installed, printed, refused, succeeded};

const DATABASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/block/data/sqlite-commits.blktrace.0.gz");

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn in_folder(folder: &Path, arguments: &[&str]) -> String {
    succeeded(hoistway().current_dir(folder).args(arguments))
}

/// The output of another program, which must succeed and print nothing on standard error.
fn ran(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).current_dir(folder).args(arguments).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{program} {arguments:?}: {complaints}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Reads, writes and flushes of a job in fio's JSON document.
fn ios_of_fio(job: &Value) -> [u64; 3] {
    ["read", "write", "sync"].map(|of| job[of]["total_ios"].as_u64().unwrap_or_default())
}

/// The same in our JSON document.
fn ios(job: &Value) -> [u64; 3] {
    let operations = job["operations"].as_array().unwrap();
    ["read", "write", "sync"].map(|name| {
        let of = operations.iter().find(|of| of["operation"] == name);
        of.map_or(0, |of| of["ios"].as_u64().unwrap())
    })
}

#[test]
fn fio_replays_the_logs_of_a_recording() {
    let folder = tempdir().unwrap();
    // Two logs in milliseconds, two in microseconds.
    in_folder(folder.path(), &["trace", "convert", DATABASE, "-o", "coarse.iolog", "--iolog-version", "2"]);
    in_folder(folder.path(), &["trace", "convert", DATABASE, "-o", "fine.iolog"]);
    in_folder(folder.path(), &["trace", "convert", DATABASE, "-o", "fine.log"]);
    for number in 0..3 {
        let log = |ending: &str| fs::read(folder.path().join(format!("fine.{ending}.{number}"))).unwrap();
        assert_eq!(log("log"), log("iolog"));
    }
    let job_file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    // 250 writes of the journal have a flush before and after them, and there is one more flush.
    let expected = [("jbd2/loop0-8-1027", [0, 1453, 501]), ("python3-1135", [2, 698, 196]), ("others", [3, 12, 1])];
    for name in ["coarse.iolog.fio", "fine.iolog.fio"] {
        let arguments = ["compare", name, "--schedulers", "none", "--repeat", "1", "--device", "nvme", "--ramp", "0"];
        let document = json(&in_folder(folder.path(), &[&arguments[..], &["--format", "json"]].concat()));
        for (job, counts) in expected {
            let jobs = document["runs"][0]["jobs"].as_array().unwrap();
            let its = jobs.iter().find(|its| its["name"] == job).unwrap();
            assert_eq!(ios(its), counts, "{job} of {name}");
        }
        if !is_installed("fio") {
            continue;
        }
        fs::File::create(folder.path().join("disk")).unwrap().set_len(1 << 30).unwrap();
        // The recorded pauses are left out.
        let faster = "[global]\nreplay_redirect=disk\nreplay_no_stall=1";
        fs::write(folder.path().join("replay.fio"), job_file(name).replacen("[global]", faster, 1)).unwrap();
        let document = json(&ran(folder.path(), "fio", &["--output-format=json", "replay.fio"]));
        for (job, (name, counts)) in document["jobs"].as_array().unwrap().iter().zip(expected) {
            assert_eq!((job["jobname"].as_str(), ios_of_fio(job), &job["error"]), (Some(name), counts, &0.into()));
        }
    }
    refused(
        folder.path(),
        &["trace", "convert", DATABASE, "-o", "x.jsonl", "--iolog-version", "2"],
        &["not an I/O log"],
    );
    refused(
        folder.path(),
        &["trace", "convert", DATABASE, "-o", "x.iolog", "--iolog-version", "4"],
        &["expected 2 or 3"],
    );
}

#[test]
fn a_trace_for_perfetto_has_every_io_with_its_beginning_and_end() {
    let folder = tempdir().unwrap();
    in_folder(folder.path(), &["trace", "convert", DATABASE, "-o", "x.perfetto-trace"]);
    let trace = json(&fs::read_to_string(folder.path().join("x.perfetto-trace")).unwrap());
    let events = trace["traceEvents"].as_array().unwrap();
    let of =
        |phase: &str, name: &str| events.iter().filter(|event| event["ph"] == phase && event["name"] == name).count();
    for name in ["read", "write", "flush", "queued", "device"] {
        assert!(of("b", name) > 0 && of("b", name) == of("e", name), "{name}");
    }
    assert_eq!(of("b", "read") + of("b", "write") + of("b", "flush"), 2365);
    let names: Vec<&Value> =
        events.iter().filter(|event| event["ph"] == "M").map(|event| &event["args"]["name"]).collect();
    assert!(names.iter().any(|name| **name == "python3"), "{names:?}");
}

const LOAD: &str = "[global]\nioengine=libaio\nfilename=/dev/sda\ndirect=1\n\
                    [log]\nrw=write\nbs=4k\niodepth=16\niodepth_batch=4\nfsync=10\n\
                    [reader]\nrw=randread\nbs=4k\niodepth=4\n\
                    [large]\nrw=randwrite\nbs=2m\niodepth=2\n";

/// Rows of btt's table of all devices: name, mean in nanoseconds, count.
fn btt(folder: &Path, merged: &str) -> Vec<(String, f64, u64)> {
    let text = ran(folder, "btt", &["-i", merged]);
    let table = text.lines().skip_while(|line| !line.contains("All Devices")).skip(1);
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _, mean, _, count] = words[..] else { return None };
        Some((name.to_owned(), mean.parse::<f64>().ok()? * 1e9, count.parse().ok()?))
    };
    table.take_while(|line| !line.starts_with("====")).filter_map(row).collect()
}

#[test]
fn a_simulated_run_is_a_recording_of_blktrace() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), LOAD).unwrap();
    let schedulers = ["none", "mq-deadline", "bfq"];
    let arguments =
        ["compare", "load.fio", "--runtime", "400ms", "--ramp", "0", "--host", "instant", "--format", "json"];
    let more = ["--schedulers", "none,mq-deadline,bfq", "--trace", "x.blktrace"];
    let document = json(&in_folder(folder.path(), &[&arguments[..], &more[..]].concat()));
    for (scheduler, run) in schedulers.into_iter().zip(document["runs"].as_array().unwrap()) {
        let set = format!("x.{scheduler}.blktrace.0");
        let recording = json(&in_folder(folder.path(), &["trace", "info", &set, "--format", "json"]));
        let notes: Vec<&str> = recording["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        // I/Os in flight at the end of the run have also completed in the recording.
        assert!(notes.is_empty(), "{scheduler}: {notes:?}");
        for job in run["jobs"].as_array().unwrap() {
            let name = job["name"].as_str().unwrap();
            let of = &job["operations"][0];
            let stream = recording["streams"].as_array().unwrap().iter().find(|of| of["name"] == name).unwrap();
            let ios: u64 = ios(job).iter().sum();
            assert_eq!(stream["ios"].as_u64().unwrap(), ios, "{scheduler} {name}");
            if name == "reader" {
                let (ours, theirs) = (of["lat_ns"]["mean"].as_f64(), stream["read_latency"]["mean_ns"].as_f64());
                assert!((ours.unwrap() - theirs.unwrap()).abs() < 10.0, "{scheduler}: {ours:?} and {theirs:?}");
            }
        }
        if !is_installed("blkparse") {
            continue;
        }
        let set = format!("x.{scheduler}");
        let text = ran(folder.path(), "blkparse", &["-i", &set, "-d", "merged"]);
        let records = text.lines().filter(|line| line.starts_with("  8,0 ")).count();
        assert!(
            records > 1000 && text.contains(&format!("Events ({set}): {records} entries")),
            "{scheduler}: {records}"
        );
        // blkparse omits the last records, so btt and we read the same file.
        let merged = json(&in_folder(folder.path(), &["trace", "info", "merged", "--format", "json"]));
        let ours = merged["by_device"][0]["intervals"].as_array().unwrap();
        let rows = btt(folder.path(), "merged");
        assert!(rows.len() >= 6, "{scheduler}: {rows:?}");
        for (name, mean_ns, count) in rows {
            let ours = ours.iter().find(|ours| ours["name"] == name.as_str()).unwrap();
            assert_eq!(ours["count"], count, "{scheduler} {name}");
            let ours_ns = ours["mean_ns"].as_f64().unwrap();
            assert!((ours_ns - mean_ns).abs() <= 2.0 + mean_ns * 1e-3, "{scheduler} {name}: {ours_ns} and {mean_ns}");
        }
    }
}

#[test]
fn a_recording_of_several_runs_has_files_for_each() {
    let folder = tempdir().unwrap();
    let arguments = ["compare", "--runtime", "20ms", "--schedulers", "none", "--device", "nvme,hdd", "--repeat", "2"];
    in_folder(folder.path(), &[&arguments[..], &["--trace", "x.blktrace", "--format", "json"]].concat());
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".blktrace.0"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.iter().filter(|name| name.contains(".repeat-2.")).count() == 2, "{names:?}");
    refused(folder.path(), &["compare", "--trace", "none/x.blktrace"], &["none/x.blktrace: cannot be written"]);
    assert!(printed(&["compare", "--help"]).contains("blktrace"));
}
