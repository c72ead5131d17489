//! Programs of real recordings.

use std::path::PathBuf;

use hoistway_program::{Class, Kind, Options, Program, ReplayOptions};
use hoistway_trace::block::Recording;

fn program(name: &str) -> Program {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/block/data");
    let mut recording = Recording::open(&data.join(name)).unwrap();
    Program::infer(&mut recording, name, &Options::default()).unwrap()
}

#[test]
fn a_database_and_its_journal_wait_for_each_other() {
    let program = program("sqlite-commits.blktrace.0.gz");
    let stream = |name: &str| program.streams.iter().position(|stream| stream.name == name).unwrap();
    let (database, journal) = (stream("python3"), stream("jbd2/loop0-8"));
    let waits = |stream: usize, on: usize| program.streams[stream].waits.iter().find(|wait| wait.on == on).copied();
    let one = waits(database, journal).expect("python3 waits for jbd2");
    let other = waits(journal, database).expect("jbd2 waits for python3");
    assert!(one.is_seen && one.observed == 0 && one.expected > 150.0, "{one:?}");
    assert!(other.is_seen && other.observed == 0 && other.expected > 80.0, "{other:?}");
    assert_eq!((program.streams[database].class, program.streams[journal].kind), (Class::Closed, Kind::Helper));
    // The recorded program slept 3 ms between commits.
    let think_ms = program.streams[database].think_ns.unwrap() as f64 / 1e6;
    assert!((0.01..8.0).contains(&think_ms), "{think_ms} ms");
    assert_eq!((program.unfinished, program.counts.queued), (0, 2365));
}

#[test]
fn every_io_of_a_recording_is_a_step() {
    for name in ["smp.blktrace.0.gz", "sqlite-commits.blktrace.0.gz", "linux-6.1.blktrace.0.gz"] {
        let program = program(name);
        for (at, stream) in program.streams.iter().enumerate() {
            let steps: Vec<_> = program.steps(at).map(Result::unwrap).collect();
            assert_eq!(steps.len() as u64, stream.ios, "{name}: {}", stream.name);
            assert!(steps.is_sorted_by_key(|step| step.at));
        }
        let load = program.load("disk", &ReplayOptions::default()).unwrap();
        let replayed: u64 =
            load.processes.iter().map(|process| process.plan.replay.as_ref().unwrap().summary.ios).sum();
        assert_eq!(replayed, program.counts.queued, "{name}");
    }
}

#[test]
fn a_recording_without_inserts_was_made_without_a_scheduler() {
    assert_eq!(program("blktrace-viewer.bin.gz").recorded_under, Some("none"));
    assert_eq!(program("smp.blktrace.0.gz").recorded_under, None);
    let was_scheduled = |name: &str| program(name).was_scheduled;
    assert!(was_scheduled("smp.blktrace.0.gz") && was_scheduled("sqlite-commits.blktrace.0.gz"));
    assert!(!was_scheduled("blktrace-viewer.bin.gz"));
    assert_eq!(program("bfqm.blktrace.0").recorded_under, Some("bfq"));
}
