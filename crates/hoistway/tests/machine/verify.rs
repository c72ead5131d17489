//! `hoistway verify`.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::tempdir;

use crate::loop_device::Loop;
use crate::support::{ended_with, has_fio, hoistway};

const JOB: &str = "[global]\nioengine=io_uring\ndirect=1\nfilename=/dev/nothing\nsize=32m\nruntime=1s\ntime_based\n\
                   [one]\nrw=randread\nbs=4k\niodepth=4\n[two]\nrw=randread\nbs=64k\nnumjobs=2\n";

#[test]
fn a_job_is_predicted_and_run_under_each_scheduler_and_all_is_as_before() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), JOB).unwrap();
    device.set("scheduler", "kyber");
    device.set("iosched/read_lat_nsec", "1000000");
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    let place = ["--device", "intel-p4800x-375gb", "--target", &path, "--journal", "journal"];
    let runs = ["--rounds", "2", "--repeat", "2", "--runtime", "100ms"];
    let line = [&["verify", "load.fio"], &place[..], &runs[..]].concat();
    let (printed, _) = ended_with(&[0], &mut hoistway(folder.path(), &line));
    for words in
        ["one, read", "two, read", "mq-deadline  p99 ", "Median error: iops ", "Order: of ", "Nothing is certain"]
    {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert_eq!(device.state(), before);
    let line = [&line[..], &["--schedulers", "none,bfq", "--format", "json"]].concat();
    let (printed, _) = ended_with(&[0], &mut hoistway(folder.path(), &line));
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&document["format"], &document["rounds"]), (&"hoistway-verify/1".into(), &2.into()));
    // Two jobs with three figures each, except for the percentiles of two processes.
    assert_eq!((document["figures"].as_array().unwrap().len(), document["pairs"].as_array().unwrap().len()), (10, 5));
    assert_eq!(document["pairs"][0]["schedulers"], serde_json::json!(["none", "bfq"]));
    assert!(document["figures"].as_array().unwrap().iter().all(|figure| figure["measured"].as_f64().unwrap() > 0.0));
    assert_eq!(device.state(), before);
}

#[test]
fn settings_are_varied_and_what_was_measured_is_a_results_document() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), JOB).unwrap();
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    let line = ["verify", "load.fio", "--device", "null", "--target", &path, "--journal", "journal"];
    let runs = ["--rounds", "2", "--repeat", "2", "--runtime", "50ms", "--schedulers", "none,mq-deadline"];
    let settings = ["--vary", "mq-deadline.fifo_batch=1,16", "--vary", "queue.nomerges=0", "--ramp", "10ms"];
    let settings = [&settings[..], &["--queue", "read_ahead_kb=64"]].concat();
    let outputs = ["--format", "json", "--report", "page.html", "--measured", "measured.json"];
    let limits = ["--fail-if", "one:read:p99>1ns", "--fail-if", "two:read:iops<1"];
    let line = [&line[..], &runs, &settings, &outputs, &limits].concat();
    let (printed, said) = ended_with(&[3], &mut hoistway(folder.path(), &line));
    assert_eq!(device.state(), before);
    assert!(said.contains("--fail-if one:read:p99>1ns: ") && !said.contains("two:read:iops"), "{said}");
    let checked: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let schedulers: Vec<&str> =
        checked["figures"].as_array().unwrap()[..3].iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    assert_eq!(
        schedulers,
        ["none nomerges=0", "mq-deadline fifo_batch=1 nomerges=0", "mq-deadline fifo_batch=16 nomerges=0"]
    );

    let text = fs::read_to_string(folder.path().join("measured.json")).unwrap();
    let measured = hoistway_answer::ResultsDocument::from_json(&text).unwrap();
    assert!(measured.is_real && measured.real_place == Some(hoistway_answer::document::RealPlace::Kernel));
    assert!(measured.job_text.contains(&format!("filename={path}\n")) && measured.command.contains("--measured"));
    let runs: Vec<(&str, u32, &serde_json::Value)> =
        measured.runs.iter().map(|run| (&*run.variant.label, run.repeat, &run.queue_files["read_ahead_kb"])).collect();
    let ahead = serde_json::json!(64);
    // The order of a round rotates.
    let [none, one, sixteen] =
        ["none nomerges=0", "mq-deadline fifo_batch=1 nomerges=0", "mq-deadline fifo_batch=16 nomerges=0"];
    let expected = [(none, 0), (one, 0), (sixteen, 0), (one, 1), (sixteen, 1), (none, 1)];
    assert_eq!(runs, expected.map(|(label, round)| (label, round, &ahead)));
    let jobs = &measured.runs[0].jobs;
    assert_eq!(jobs.iter().map(|job| (&*job.name, job.processes)).collect::<Vec<_>>(), [("one", 1), ("two", 2)]);
    let figure = checked["figures"].as_array().unwrap()[0].clone();
    let mean = measured.runs.iter().filter(|run| run.scheduler == "none").map(|run| run.jobs[0].operations[0].iops);
    assert!((figure["measured"].as_f64().unwrap() - mean.sum::<f64>() / 2.0).abs() < 1e-6, "{figure}");
    assert!(fs::read_to_string(folder.path().join("page.html")).unwrap().contains("fifo_batch=16"));
    // It is stored as any other: it can be rendered again.
    ended_with(&[0], &mut hoistway(folder.path(), &["report", "measured.json", "-o", "again.html"]));
}

#[test]
fn a_device_that_is_named_twice_is_written() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("write.fio"), JOB.replace("randread", "randwrite")).unwrap();
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    let written = || fs::read_to_string(format!("/sys/block/{}/stat", device.name)).unwrap();
    let sectors = |stat: &str| stat.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap();
    let begin = sectors(&written());
    let line =
        ["verify", "write.fio", "--device", "null", "--target", &path, "--writes", &path, "--journal", "journal"];
    let runs = ["--rounds", "2", "--repeat", "2", "--runtime", "50ms", "--schedulers", "none,bfq"];
    let (printed, said) = ended_with(&[0, 3], &mut hoistway(folder.path(), &[&line[..], &runs[..]].concat()));
    assert!(printed.contains("one, write") && sectors(&written()) > begin, "{printed}");
    assert!(said.contains("the first of 4 runs took "), "{said}");
    assert_eq!(device.state(), before);
}

#[test]
fn a_scheduler_that_another_program_sets_while_one_is_measured_ends_it() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), JOB.replace("\nbs=", "\nrate_iops=20\nbs=")).unwrap();
    let path = format!("/dev/{}", device.name);
    let line = ["verify", "load.fio", "--device", "null", "--target", &path, "--journal", "journal"];
    let runs = ["--runtime", "2s", "--schedulers", "kyber,none"];
    let mut verifying = hoistway(folder.path(), &[&line[..], &runs[..]].concat());
    let mut child = verifying.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !device.shown("scheduler").contains("[kyber]") {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it set a scheduler");
        thread::sleep(Duration::from_millis(5));
    }
    device.set("scheduler", "bfq");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let words = format!("{}: another program set its scheduler to bfq while kyber was measured", device.name);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty() && said.contains(&words), "{output:?}");
}

#[test]
fn a_recording_runs_in_our_own_engine() {
    let Some(device) = Loop::in_memory() else { return };
    let folder = tempdir().unwrap();
    let text: String = (0..200)
        .flat_map(|number| {
            let (us, sector) = (number * 500, number * 9973 % 100_000 / 8 * 8);
            ["Q", "G", "I", "D"]
                .into_iter()
                .map(move |action| {
                    format!("  7,0    0 {:8} 0.{us:06}000  77  {action}   R {sector} + 8 [reader]\n", number * 5)
                })
                .chain([format!("  7,0    0 {:8} 0.{:06}000  77  C   R {sector} + 8 [0]\n", number * 5, us + 90)])
        })
        .collect();
    fs::write(folder.path().join("trace.txt"), text).unwrap();
    let path = format!("/dev/{}", device.name);
    let line = ["verify", "trace.txt", "--device", "intel-p4800x-375gb", "--target", &path, "--journal", "journal"];
    let line = [&line[..], &["--rounds", "2", "--repeat", "2", "--schedulers", "none,mq-deadline"]].concat();
    let (printed, _) = ended_with(&[0], &mut hoistway(folder.path(), &line));
    assert!(printed.contains("reader, read") && printed.contains("mq-deadline  iops"), "{printed}");
    assert!(device.shown("scheduler").contains("[none]"));
}

#[test]
fn an_interrupt_restores_the_scheduler() {
    let Some(device) = Loop::in_memory().filter(|_| has_fio()) else { return };
    let folder = tempdir().unwrap();
    // The simulation of a long run is quick if it has few I/Os.
    let slow = JOB.replace("\nbs=", "\nrate_iops=20\nbs=");
    fs::write(folder.path().join("load.fio"), slow).unwrap();
    device.set("scheduler", "bfq");
    device.set("nr_requests", "77");
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    for signal in [Signal::INT, Signal::TERM] {
        let line =
            ["verify", "load.fio", "--device", "null", "--target", &path, "--journal", "journal", "--runtime", "20s"];
        let mut verifying = hoistway(folder.path(), &[&line[..], &["--schedulers", "kyber,none"]].concat());
        let mut child = verifying.stdout(Stdio::null()).spawn().unwrap();
        while !device.shown("scheduler").contains("[kyber]") {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it set a scheduler");
            thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(device.state(), before);
    }
}

#[test]
fn an_impossible_verification_is_refused_and_changes_nothing() {
    let Some(device) = Loop::in_memory() else { return };
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("load.fio"), JOB).unwrap();
    fs::write(folder.path().join("write.fio"), JOB.replace("randread", "randwrite")).unwrap();
    fs::write(folder.path().join("file"), vec![1; 1 << 20]).unwrap();
    let before = device.state();
    let path = format!("/dev/{}", device.name);
    let refused = |line: &[&str], words: &str| {
        let line = [&["verify", "--device", "null", "--journal", "journal"], line].concat();
        let (_, said) = ended_with(&[2], &mut hoistway(folder.path(), &line));
        assert!(said.contains(words), "{said}");
        assert_eq!(device.state(), before);
    };
    refused(&["write.fio", "--target", &path], "the load writes (expected --writes with the target named again");
    refused(&["write.fio", "--target", &path, "--writes", "file"], "--writes file: is not the target");
    refused(&["write.fio", "--target", "file", "--writes", "file"], "no run created this file");
    refused(&["load.fio", "--target", "gone"], "gone: cannot be found");
    let hint = format!("{}: is the name of a device (expected {path}, or ", device.name);
    refused(&["load.fio", "--target", &device.name], &hint);
    refused(&["write.fio", "--target", &device.name, "--writes", &device.name], &hint);
    assert!(!folder.path().join(&device.name).exists());
    refused(&["none.fio", "--target", &path], "none.fio");
    refused(&["load.fio", "--target", &path, "--schedulers", "cfq"], "cfq");
    refused(&["load.fio", "--target", &path, "--vary", "bfq.no=1"], "--vary bfq.no=1: ");
    refused(&["load.fio", "--target", &path, "--set", "mq-deadline.fifo_batch=x"], "--set mq-deadline.fifo_batch=x: ");
    refused(&["load.fio", "--target", &path, "--report", "x", "--measured", "x"], "x");
    refused(&["load.fio", "--target", &path, "--measured", "load.fio"], "load.fio");
    fs::write(folder.path().join("journal"), "").unwrap();
    refused(&["load.fio", "--target", &path], "journal");
    // A mounted file system, or a device on top of it, has exclusive access to it.
    let above = Command::new("losetup").args(["--find", "--show", &path]).output().unwrap();
    let above = String::from_utf8(above.stdout).unwrap();
    refused(&["write.fio", "--target", &path, "--writes", &path], "");
    let _ = Command::new("losetup").args(["--detach", above.trim()]).status();
}
