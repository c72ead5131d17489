//! Compares recordings with other observers of the same I/O: fio, blkparse and btt, perf, and our own commands.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use hoistway_trace::block::{Action, Event, Flags};
use serde_json::Value;

use crate::skips::skipped;
use crate::support::{Bench, events, has, of, succeeded};

const MIXED: &str = "--rw=randrw --bs=4k --ioengine=libaio --iodepth=8 --iodepth_batch=4 --number_ios=3000 --size=32m \
                     --fsync=100 --prioclass=1 --prio=3";

/// Reads, writes and flushes that fio counted.
fn counted(bench: &Bench) -> (u64, u64, u64) {
    let text = fs::read_to_string(bench.path("fio.json")).unwrap();
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let ios = |direction: &str| json["jobs"][0][direction]["total_ios"].as_u64().unwrap();
    (ios("read"), ios("write"), ios("sync"))
}

#[test]
fn the_ios_are_those_that_fio_counted() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let (printed, _) = succeeded(bench.record().arg("--").args(bench.fio(MIXED)));
    let (reads, writes, flushes) = counted(&bench);
    assert!(reads + writes == 3000 && flushes > 0, "{reads} {writes} {flushes}");
    let (events, losses, recording) = bench.events();
    let is_fio = |event: &&Event| recording.names().get(event.pid) == Some("fio");
    let queued: Vec<Event> = of(&events, Action::Queue).iter().filter(is_fio).copied().collect();
    let count = |wanted: fn(&Event) -> bool| queued.iter().filter(|event| wanted(event)).count() as u64;
    assert_eq!(count(|event| event.bytes == 4096 && event.flags.has(Flags::READ)), reads);
    assert_eq!(count(|event| event.bytes == 4096 && event.flags.has(Flags::WRITE)), writes);
    assert_eq!(count(|event| event.bytes == 0 && event.flags.has(Flags::FLUSH)), flushes);
    let sum = |action: Action| of(&events, action).iter().map(|event| u64::from(event.bytes)).sum::<u64>();
    let bytes = (reads + writes) * 4096;
    for action in [Action::Queue, Action::GetRequest, Action::Issue, Action::Complete] {
        assert_eq!(sum(action), bytes, "{action:?}");
    }
    assert_eq!((losses.lost_events, losses.truncated, losses.unknown_actions), (0, 0, 0));
    let ios = reads + writes + flushes;
    assert!(printed.contains("0 events lost") && printed.contains("us of CPU time per I/O"), "{printed}");
    let host: Value = serde_json::from_str(&fs::read_to_string(bench.path("x.host.json")).unwrap()).unwrap();
    assert_eq!(host["ios"], ios);
    let task = host["tasks"].as_array().unwrap().iter().find(|task| task["ios"] == ios).unwrap();
    assert_eq!(task["name"], "fio");
    // On a busy machine fio may end before it is read.
    assert!(task["nice"].is_null() || task["nice"] == 0, "{task}");
    // Kernels before 6.11 do not report the priority of a request.
    assert!(task["io_priority"].is_null() || task["io_priority"] == "rt:3", "{task}");
    assert_eq!(Bench::instances(), [""; 0]);
}

#[test]
fn blkparse_and_btt_read_the_files() {
    let Some(bench) = Bench::new().filter(|_| has("fio") && has("blkparse") && has("btt")) else { return };
    succeeded(bench.record().arg("--").args(bench.fio(MIXED)));
    let (events, ..) = bench.events();
    let folder = bench.folder.path();
    let arguments = ["-i", "x", "-d", "x.bin"];
    let (text, said) = succeeded(Command::new("blkparse").args(arguments).current_dir(folder));
    assert!(said.lines().all(|line| line.starts_with("Input file ")), "{said}");
    // blkparse loses the last records of a recording.
    const LOST_MAX: u64 = 140;
    let lines = text.lines().filter(|line| line.starts_with("  7,")).count() as u64;
    assert!((events.len() as u64 - LOST_MAX..=events.len() as u64).contains(&lines), "{lines} of {}", events.len());
    assert!(text.contains("[fio]") && !text.contains("[(null)]"), "{text}");
    let (btt, _) = succeeded(Command::new("btt").args(["-i", "x.bin"]).current_dir(folder));
    let number = |name: &str| {
        let line = btt.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {btt}"));
        line.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    let ios = of(&events, Action::Queue).iter().filter(|event| event.bytes > 0).count() as u64;
    for name in ["Q2G", "D2C", "Q2C"] {
        assert!((ios - LOST_MAX..=ios).contains(&number(name)), "{name}: {} of {ios}", number(name));
    }
}

#[test]
fn perf_sees_the_same_ios() {
    let Some(bench) = Bench::new().filter(|_| has("perf") && has("fio")) else { return };
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-a",
        "-k",
        "mono",
        "-e",
        "block:block_bio_queue,block:block_rq_issue",
        "-o",
        "perf.data",
    ]);
    perf.current_dir(bench.folder.path()).stderr(Stdio::null());
    let mut perf = perf.args(["--", "sleep", "4"]).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    succeeded(
        bench.record().arg("--").args(bench.fio("--rw=randrw --bs=4k --ioengine=psync --number_ios=1000 --size=32m")),
    );
    if !perf.wait().unwrap().success() {
        skipped("perf may not record");
        return;
    }
    let mut script = Command::new("perf");
    script.args(["script", "-i", "perf.data", "--ns"]).current_dir(bench.folder.path());
    let (text, _) = succeeded(&mut script);
    fs::write(bench.path("perf.txt"), text).unwrap();
    let (ours, ..) = bench.events();
    let (of_perf, ..) = events(&bench.path("perf.txt"));
    let device = ours[0].device;
    for action in [Action::Queue, Action::Issue] {
        let shown = |events: &[Event]| {
            let of_it = of(events, action).into_iter().filter(|event| event.device == device);
            of_it.map(|event| (event.sector, event.bytes, event.flags, event.pid)).collect::<Vec<_>>()
        };
        assert_eq!(shown(&ours), shown(&of_perf), "{action:?}");
        // Both read the same clock, perf a moment later or earlier.
        let apart = of(&ours, action)
            .iter()
            .zip(of(&of_perf, action).iter().filter(|event| event.device == device))
            .map(|(one, other)| one.time_ns.abs_diff(other.time_ns))
            .max();
        assert!(apart.is_some_and(|ns| ns < 10_000_000), "{apart:?}");
    }
}

#[test]
fn our_own_commands_read_a_recording_with_its_side_files() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let queue = format!("/sys/block/{}/queue", bench.name());
    if fs::write(format!("{queue}/scheduler"), "mq-deadline").is_err() {
        skipped("the scheduler may not be set");
        return;
    }
    fs::write(format!("{queue}/nr_requests"), "48").unwrap();
    fs::write(format!("{queue}/iosched/fifo_batch"), "3").unwrap();
    succeeded(bench.record().arg("--").args(bench.fio(MIXED)));
    let (info, _) = succeeded(bench.hoistway().args(["trace", "info", "x.blktrace.0"]));
    assert!(info.contains("3030 I/Os") || info.contains("I/Os of 1 stream\n"), "{info}");
    let compare = ["compare", "x.blktrace.0", "--format", "json", "--repeat", "1", "--schedulers", "none"];
    let (json, _) = succeeded(bench.hoistway().args(compare));
    let document: Value = serde_json::from_str(&json).unwrap();
    let recording = &document["recording"];
    assert_eq!((&recording["recorded_under"], &recording["is_guess"]), (&"mq-deadline".into(), &false.into()));
}

#[test]
fn a_queue_that_is_full_is_reported_while_it_is_recorded() {
    let Some(bench) = Bench::new().filter(|_| has("fio")) else { return };
    let queue = format!("/sys/block/{}/queue", bench.name());
    if fs::write(format!("{queue}/scheduler"), "mq-deadline").is_err() {
        skipped("the scheduler may not be set");
        return;
    }
    fs::write(format!("{queue}/nr_requests"), "4").unwrap();
    let deep = "--rw=randread --bs=4k --ioengine=libaio --iodepth=32 --time_based --runtime=3 --size=32m";
    let (_, said) = succeeded(bench.record().arg("--").args(bench.fio(deep)));
    assert!(said.contains("fio (") && said.contains("waits for free requests"), "{said}");
    assert!(said.contains(&format!("echo 1024 > {queue}/nr_requests")), "{said}");
}
