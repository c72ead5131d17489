//! `hoistway compare --trace` and `hoistway why`: the trace, and the explanation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

use hoistway_legacy::ALL_SCHEDULERS;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{hoistway, keys, printed, refused, succeeded};

/// Sequential writes with fsync, reads in batches, and I/Os that must be split: all kinds of events.
const LOAD: &str = "[global]\nioengine=libaio\nfilename=/dev/sda\ndirect=1\n\
                    [log]\nrw=write\nbs=4k\niodepth=16\niodepth_batch=4\nfsync=10\n\
                    [reader]\nrw=randread\nbs=4k\niodepth=4\n\
                    [large]\nrw=randwrite\nbs=6m\niodepth=2\n";

/// Runs the load in `folder` with these options; returns the lines of the trace and the results.
fn traced(folder: &Path, options: &[&str]) -> (Vec<Value>, Value) {
    fs::write(folder.join("load.fio"), LOAD).unwrap();
    let arguments = ["compare", "load.fio", "--runtime", "100ms", "--format", "json", "--trace", "events.jsonl"];
    let results = succeeded(hoistway().current_dir(folder).args(arguments).args(options));
    let trace = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    assert!(trace.ends_with('\n'));
    (trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), serde_json::from_str(&results).unwrap())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// The events of a run.
fn events_of(trace: &[Value], run: usize) -> impl Iterator<Item = &Value> {
    trace[1..].iter().filter(move |event| event["run"] == run && event["event"] != "run_end")
}

fn count(trace: &[Value], run: usize, name: &str) -> u64 {
    events_of(trace, run).filter(|event| event["event"] == name).count() as u64
}

#[test]
fn the_first_trace_line_describes_the_run_and_the_last_its_completeness() {
    let folder = tempdir().unwrap();
    let (trace, _) = traced(folder.path(), &["--set", "bfq.slice_idle=0", "--seed", "7", "--schedulers", "all"]);
    let header = &trace[0];
    assert_eq!(keys(header).join(" "), "format version job_file devices kernel cpus seed runs processes");
    assert_eq!((text(header, "format"), text(header, "job_file")), ("hoistway-trace/1", "load.fio"));
    assert_eq!((text(header, "kernel"), &header["seed"]), ("7.2", &7.into()));
    assert_eq!(header["devices"][0], "intel-s3520-1600gb");
    let schedulers: Vec<&str> = header["runs"].as_array().unwrap().iter().map(|run| text(run, "scheduler")).collect();
    assert_eq!(schedulers, ALL_SCHEDULERS);
    assert_eq!(header["runs"][3]["tunables"]["slice_idle"], "0");
    assert_eq!(text(&header["processes"][1], "job"), "reader");
    let last = trace.last().unwrap();
    assert_eq!(keys(last).join(" "), "event runs events partial");
    assert_eq!((text(last, "event"), &last["partial"]), ("trace_end", &false.into()));
    assert_eq!(last["events"], trace.len() - 2 - ALL_SCHEDULERS.len());
}

#[test]
fn time_never_goes_back_and_runs_do_not_mix() {
    let folder = tempdir().unwrap();
    let (trace, _) = traced(folder.path(), &[]);
    let mut at = (0, 0);
    for event in &trace[1..trace.len() - 1] {
        let here = (event["run"].as_u64().unwrap(), event["time_ns"].as_u64().unwrap());
        assert!(here >= at, "{event} comes behind {at:?}");
        at = here;
    }
}

#[test]
fn each_issue_is_followed_by_exactly_one_completion_or_requeue() {
    let folder = tempdir().unwrap();
    for kernel in ["4.12", "5.10", "7.2"] {
        let (trace, _) = traced(folder.path(), &["--kernel", kernel, "--schedulers", "all"]);
        for run in 0..ALL_SCHEDULERS.len() {
            let mut at_the_driver = BTreeMap::new();
            for event in events_of(&trace, run) {
                let request = event["rq"].as_u64();
                match text(event, "event") {
                    "block_rq_issue" => {
                        let before = at_the_driver.insert(request, event["sector"].clone());
                        assert_eq!(before, None, "issued twice: {event}");
                    }
                    "block_rq_complete" | "block_rq_requeue" => {
                        assert_eq!(at_the_driver.remove(&request), Some(event["sector"].clone()), "{event}");
                    }
                    _ => {}
                }
            }
            assert!(at_the_driver.is_empty(), "{at_the_driver:?} did not come back");
        }
    }
}

#[test]
fn the_counts_agree_with_the_results_and_with_each_other() {
    let folder = tempdir().unwrap();
    let (trace, results) = traced(folder.path(), &["--schedulers", "all"]);
    for (run, scheduler) in ALL_SCHEDULERS.iter().enumerate() {
        let count = |name| count(&trace, run, name);
        let ios = results["runs"][run]["simulated_ios"].as_u64().unwrap();
        assert_eq!(count("block_bio_queue") + count("block_split"), ios, "{scheduler}");
        let merged = count("block_bio_backmerge") + count("block_bio_frontmerge");
        assert!(merged > 0 && count("block_split") > 0, "{scheduler}: the load is meant to merge and split");
        assert_eq!(count("block_getrq") + merged, ios, "{scheduler}");
        let end = trace.iter().find(|line| line["event"] == "run_end" && line["run"] == run).unwrap();
        assert_eq!((&end["ios"], &end["partial"]), (&ios.into(), &false.into()));
        assert_eq!(end["events"], events_of(&trace, run).count());
        let given_out = events_of(&trace, run).filter(|event| event["event"] == "dispatch" && !event["rq"].is_null());
        // The legacy queue also reports a flush as inserted, although no elevator sees it.
        let flushes =
            events_of(&trace, run).filter(|event| event["event"] == "block_rq_insert" && event["sectors"] == 0);
        let inserted = count("block_rq_insert") - count("block_rq_merge") - flushes.count() as u64;
        assert_eq!(given_out.count() as u64, if *scheduler == "none" { 0 } else { inserted }, "{scheduler}");
    }
}

#[test]
fn every_event_names_its_process_and_request_and_every_dispatch_a_reason() {
    let folder = tempdir().unwrap();
    let (trace, _) = traced(folder.path(), &[]);
    let mut letters = BTreeSet::new();
    for event in &trace[1..] {
        match text(event, "event") {
            "run_end" | "trace_end" => continue,
            "block_plug" | "block_unplug" => {
                assert!(event["job"].is_string(), "{event}");
                continue;
            }
            "dispatch" => {
                assert!(!text(event, "why").is_empty() && !text(event, "reason").contains(' '), "{event}");
                if event["rq"].is_null() {
                    continue;
                }
            }
            name => assert!(name.starts_with("block_"), "{event}"),
        }
        let process = event["process"].as_u64().unwrap_or_else(|| panic!("whose is {event}"));
        assert_eq!(event["job"], trace[0]["processes"][process as usize]["job"]);
        assert!(event["sector"].is_u64() && event["sectors"].is_u64() && event["cpu"].is_u64(), "{event}");
        letters.insert((text(event, "op").to_owned(), text(event, "rwbs").to_owned()));
    }
    let letters: Vec<(&str, &str)> = letters.iter().map(|(op, rwbs)| (op.as_str(), rwbs.as_str())).collect();
    // An fsync arrives as an empty write, and is issued as a flush command.
    assert_eq!(letters, [("flush", "FF"), ("read", "R"), ("write", "FWS"), ("write", "WS")]);
}

#[test]
fn a_trace_does_not_change_the_results() {
    let folder = tempdir().unwrap();
    let (_, with) = traced(folder.path(), &[]);
    let arguments = ["compare", "load.fio", "--runtime", "100ms", "--format", "json"];
    let without = succeeded(hoistway().current_dir(folder.path()).args(arguments));
    let without = crate::support::repeatable(&without);
    assert_eq!(crate::support::repeatable(&with.to_string())["runs"], without["runs"]);
}

#[test]
fn a_name_that_ends_in_gz_is_compressed() {
    let folder = tempdir().unwrap();
    let (trace, _) = traced(folder.path(), &[]);
    succeeded(hoistway().current_dir(folder.path()).args([
        "compare",
        "load.fio",
        "--runtime",
        "100ms",
        "--trace",
        "events.jsonl.gz",
        "-o",
        "results",
    ]));
    let zipped = fs::read(folder.path().join("events.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&zipped[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, fs::read_to_string(folder.path().join("events.jsonl")).unwrap());
    assert_eq!(text.lines().count(), trace.len());
    assert!(zipped.len() * 4 < text.len());
    let names = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 4, "load, two traces, results, and nothing else");
}

#[test]
fn a_trace_that_cannot_be_written_is_one_error_and_no_file() {
    let folder = tempdir().unwrap();
    let compare = |trace| ["compare", "--runtime", "1s", "--trace", trace];
    refused(folder.path(), &compare("/dev/full"), &["/dev/full: cannot be written", "No space left"]);
    refused(folder.path(), &compare("gone/events"), &["gone/events: cannot be written", "No such file"]);
    refused(folder.path(), &compare("."), &[".: is a directory"]);
    refused(folder.path(), &compare("./results"), &["--trace ./results: is also the output file"]);
}

#[test]
fn reasons_are_counted_by_run_and_job() {
    let folder = tempdir().unwrap();
    let (trace, _) = traced(folder.path(), &[]);
    let file = folder.path().join("events.jsonl");
    let file = file.to_str().unwrap();
    let table = printed(&["why", file]);
    assert!(table.starts_with("load.fio on intel-s3520-1600gb, Linux 7.2, seed 1\n"), "{table}");
    for words in
        ["\nnone\n  never asked for a request\n", "\nmq-deadline\n", "the batch continues in sector order", "reader"]
    {
        assert!(table.contains(words), "{words:?} is not in\n{table}");
    }
    let document: Value = serde_json::from_str(&printed(&["why", "--format", "json", file])).unwrap();
    assert_eq!(keys(&document).join(" "), "format job_file devices kernel seed partial runs");
    for (run, counts) in document["runs"].as_array().unwrap().iter().enumerate() {
        let reasons = counts["reasons"].as_array().unwrap();
        let sum: u64 = reasons.iter().map(|reason| reason["count"].as_u64().unwrap()).sum();
        assert_eq!(sum, count(&trace, run, "dispatch"));
    }
}

#[test]
fn an_incomplete_trace_is_refused() {
    let folder = tempdir().unwrap();
    traced(folder.path(), &[]);
    let whole = fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let lines: Vec<&str> = whole.lines().take(20).collect();
    let refused_why = |content: String, words: &[&str]| {
        fs::write(folder.path().join("events"), content).unwrap();
        refused(folder.path(), &["why", "events"], words);
    };
    refused_why(lines.join("\n") + "\n", &["events: line 21: the trace ends in the middle"]);
    refused_why(lines.join("\n"), &["events: line 20: the trace ends in the middle"]);
    refused_why(String::new(), &["events: line 1: expected the first line of a trace", "hoistway-trace/1"]);
    refused_why("{\"format\":\"hoistway-trace/2\"}\n".to_owned(), &["events: line 1: expected the first line"]);
    refused_why(format!("{}\nhello\n", lines[0]), &["events: line 2: expected an event"]);
    refused(folder.path(), &["why", "gone"], &["gone: cannot be read", "expected a trace", "No such file"]);
}
