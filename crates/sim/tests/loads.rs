//! Loads that a program makes, without a job file.

use std::sync::Arc;

use hoistway_blk::bio::{IoPriority, Op};
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_load::{
    Amount, Direction, Io, Issue, Load, Pattern, Pause, Process, Record, RecordError, Records, Replay, Sizes,
};
use hoistway_sim::{Control, Host, QueueSettings, RunError, RunResult, RunSpec, Scenario, run};

fn simulated(load: &Load) -> Result<RunResult, RunError> {
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let scenario = Scenario {
        workload: load,
        devices: vec![&preset],
        guests: None,
        queue: QueueSettings::new(Kernel::DEFAULT, 4),
        host: Host::builtin(Host::DEFAULT).unwrap(),
        runtime: None,
    };
    let spec = RunSpec::new("mq-deadline", 1);
    run(&scenario, &spec, &Control::default())
}

#[test]
fn a_load_made_by_a_program_runs() {
    let mut load = Load::new();
    let disk = load.file("/dev/sda");
    let mut readers = Process::new("readers", disk, Pattern::read(4096).random());
    readers.issue = Issue::asynchronous(8);
    readers.schedule.runtime = Some(Nanos::from_millis(100));
    load.add_clones(readers, 2);
    let mut pattern = Pattern::new(Direction::Write, 64 << 10);
    pattern.volume.number_ios = 50;
    load.add(Process::new("log", disk, pattern));
    let result = simulated(&load).unwrap();
    assert_eq!(result.processes.len(), 3);
    assert!(
        result.processes[..2].iter().all(|reader| reader.total_ios() > 100 && reader.runtime_ns / 1_000_000 == 100)
    );
    assert_eq!((result.processes[2].total_ios(), result.processes[2].error), (50, 0));
}

#[test]
fn a_load_that_cannot_be_run_is_an_error_that_names_the_field() {
    let wrong = |change: fn(&mut Process)| {
        let mut load = Load::new();
        let disk = load.file("/dev/sda");
        let mut process = Process::new("a", disk, Pattern::read(4096));
        change(&mut process);
        load.add(process);
        simulated(&load).map(|_| ()).unwrap_err().to_string()
    };
    type Change = fn(&mut Process);
    let changes: [(&str, Change); 6] = [
        ("process \"a\": issue.depth: out of range", |p| p.issue.depth = 0),
        ("process \"a\": files: there is no such file", |p| p.files = [1].into()),
        ("process \"a\": schedule.runtime: a process that is time-based", |p| {
            p.plan.pattern_mut().volume.time_based = true;
        }),
        ("process \"a\": plan.pattern.sizes: a block of 0 bytes", |p| {
            p.plan.pattern_mut().sizes[0] = Sizes::Fixed(0);
        }),
        ("process \"a\": plan.pattern.volume.size: the job ends at byte", |p| {
            p.plan.pattern_mut().volume.size = Some(Amount::Bytes(1 << 50));
        }),
        ("process \"a\": schedule.wait_for: there is no such job", |p| p.schedule.wait_for = Some(0)),
    ];
    for (message, change) in changes {
        let error = wrong(change);
        assert!(error.starts_with(message), "{error}");
    }
}

/// Reads `offset_bytes`, and as many times more each 4 KiB further; fails when it is opened for the third time.
#[derive(Debug)]
struct Vanishing(std::sync::atomic::AtomicU32);

impl Records for Vanishing {
    fn open(&self, _: u64) -> Result<Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>, RecordError> {
        let opened = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let record = |at: u64| {
            let io = Io { op: Op::Read, file: 0, priority: IoPriority::UNSET, bytes: 4096, offset_bytes: at * 4096 };
            Ok(Record { io, pause: Pause::After(Nanos::from_millis(1)) })
        };
        Ok(Box::new((0..if opened < 2 { 20 } else { 10 }).map(record)))
    }
}

#[test]
fn a_recording_is_reread_in_each_run_and_a_missing_one_fails_its_process() {
    let mut load = Load::new();
    let disk = load.file("/dev/sda");
    let mut process = Process::new("replay", disk, Pattern::default());
    process.plan.replay = Some(Arc::new(Replay::new(Arc::new(Vanishing(0.into()))).unwrap()));
    load.add(process);
    let first = simulated(&load).unwrap();
    assert_eq!((first.processes[0].total_ios(), first.processes[0].error), (20, 0));
    assert!(first.processes[0].runtime_ns >= 20_000_000, "each waits for its pause");
    let second = simulated(&load).unwrap();
    assert_eq!((second.processes[0].total_ios(), second.processes[0].error), (10, 5));
}
