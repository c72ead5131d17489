//! Recordings of block I/O as loads.

use std::io::Cursor;
use std::path::Path;

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_experiment::{CallerEnvironment, Comparison, Load, Replay};
use hoistway_measure::{Direction, ProcessResult};
use hoistway_program::{Options, Program, ReplayOptions};
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario};
use hoistway_trace::block::{Columns, Input, ReadError, Recording};

const NULL: &str = "name = \"fixed\"\ntitle = \"one command at a time\"\nmodel = \"null\"\n[shape]\ncapacity_gb = 1\n\
    logical_block_bytes = 512\nphysical_block_bytes = 512\nhw_queues = 1\nqueue_depth = DEPTH\nscsi = false\nrotational = false\n\
    write_cache = false\nfua = false\nmax_sectors = 2560\nmax_segments = 128\n[null]\ndelay_ns = DELAY\n[calibration]\non = \"nothing\"\n\
    valid_range = \"any load\"\n";

fn device(depth: u32, delay_us: u64) -> String {
    NULL.replace("DEPTH", &depth.to_string()).replace("DELAY", &(delay_us * 1000).to_string())
}

/// An I/O: task, direction, queued, issued and completed, in us.
type Row = (u32, bool, u64, u64, u64);

/// The I/Os as blkparse prints them, each at its own sector.
fn blkparse(rows: &[Row]) -> String {
    let mut lines = Vec::new();
    for (&(task, is_write, queued, issued, completed), sector) in rows.iter().zip((0u64..).step_by(1000)) {
        let flags = if is_write { "W" } else { "R" };
        for (action, us, order) in [('C', completed, 0), ('Q', queued, 1), ('G', queued, 2), ('D', issued, 3)] {
            let tail = if action == 'C' { "[0]".to_owned() } else { format!("[task{task}]") };
            let (seconds, rest) = (us / 1_000_000, us % 1_000_000);
            lines.push((
                us,
                order,
                format!("  8,0 0 1 {seconds}.{rest:06}000 {task} {action} {flags} {sector} + 8 {tail}\n"),
            ));
        }
    }
    lines.sort();
    lines.into_iter().map(|(.., line)| line).collect()
}

fn recording(text: &str) -> Recording {
    Recording::read(Input::new("test", Box::new(Cursor::new(text.to_owned().into_bytes()))).unwrap()).unwrap()
}

/// The worked example of the replay rules: a reader with 2 ms think time and a writer of depth 2, on a device that takes 1 ms.
const WORKED_EXAMPLE: [Row; 10] = [
    (1, false, 0, 0, 1000),
    (1, false, 3000, 4000, 5000),
    (1, false, 7000, 8000, 9000),
    (1, false, 11_000, 11_000, 12_000),
    (2, true, 100, 1000, 2000),
    (2, true, 110, 2000, 3000),
    (2, true, 2020, 3000, 4000),
    (2, true, 3020, 5000, 6000),
    (2, true, 4020, 6000, 7000),
    (2, true, 6020, 7000, 8000),
];

/// Replays a program in the order of arrival, one command at a time.
fn replayed(program: &Program, command_us: u64) -> Vec<ProcessResult> {
    let mut load = program.load("disk", &ReplayOptions::default()).unwrap();
    for process in &mut load.processes {
        (process.schedule.ramp, process.schedule.ends) = (Nanos::ZERO, None);
    }
    let preset = Preset::from_toml(&device(1, command_us), "device").unwrap();
    let scenario = Scenario {
        workload: &load,
        devices: vec![&preset],
        guests: None,
        queue: QueueSettings::new("4.19".parse::<Kernel>().unwrap(), 1),
        host: Host::builtin("instant").unwrap(),
        runtime: None,
    };
    let spec = RunSpec::new("noop", 1);
    hoistway_sim::run(&scenario, &spec, &Control::default()).unwrap().processes
}

#[test]
fn a_program_on_a_slower_device_waits_longer_and_thinks_as_long() {
    let options = Options { ios_min: 1, ..Options::default() };
    let program = Program::infer(&mut recording(&blkparse(&WORKED_EXAMPLE)), "test", &options).unwrap();
    let us = |result: &ProcessResult, direction| {
        let of = result.direction(direction);
        (of.ios, of.lat.mean() / 1e3, result.runtime_ns / 1000)
    };
    let by_name = |results: &[ProcessResult], name: &str, direction| {
        us(results.iter().find(|result| result.name == name).unwrap(), direction)
    };
    let done_us = |results: &[ProcessResult]| {
        ["task1", "task2"]
            .map(|name| results.iter().find(|result| result.name == name).unwrap().done_ns.unwrap() / 1000)
    };
    // Replayed at the recorded speed and with commands of 2 ms; both are exact.
    let same = replayed(&program, 1000);
    let (ios, mean_us, runtime_us) = by_name(&same, "task1", Direction::Read);
    assert!((mean_us - 1500.0).abs() < 0.01, "{mean_us}");
    assert_eq!((ios, runtime_us), (4, 12_000));
    assert_eq!(by_name(&same, "task2", Direction::Write).0, 6);
    assert_eq!(done_us(&same), [12_000, 7900]);
    let slower = replayed(&program, 2000);
    let (ios, mean_us, runtime_us) = by_name(&slower, "task1", Direction::Read);
    assert!((mean_us - 3500.0).abs() < 0.01, "{mean_us}");
    assert_eq!((ios, runtime_us), (4, 20_000));
    let latencies = [3900.0, 5890.0, 5980.0, 5980.0, 5980.0, 5980.0];
    let mean = latencies.iter().sum::<f64>() / 6.0;
    let (ios, measured, runtime_us) = by_name(&slower, "task2", Direction::Write);
    assert!((measured - mean).abs() < 0.01, "{measured} {mean}");
    assert_eq!((ios, runtime_us), (6, 18_000));
    assert_eq!(done_us(&slower), [20_000, 17_900]);
}

#[test]
fn a_stream_waits_for_another_and_continues_when_that_has_ended() {
    // The two streams alternate 200 times: each burst of one follows the end of a burst of the other.
    let mut rows = Vec::new();
    for turn in 0..200 {
        let start = turn * 5000;
        rows.push((1, true, start, start, start + 1000));
        rows.push((2, true, start + 1500, start + 1500, start + 2500));
    }
    let program = Program::infer(&mut recording(&blkparse(&rows)), "test", &Options::default()).unwrap();
    assert!(program.streams.iter().all(|stream| stream.waits.len() == 1), "{:?}", program.streams);
    let results = replayed(&program, 3000);
    // The first of task2 comes at its time and finds the device busy for 1500 us; after it each finds the device idle.
    let mean_us = |result: &ProcessResult| result.direction(Direction::Write).lat.mean() / 1e3;
    for (result, mean) in results.iter().zip([3000.0, 3000.0 + 1500.0 / 200.0]) {
        assert_eq!(result.direction(Direction::Write).ios, 200);
        assert!((mean_us(result) - mean).abs() < 0.01, "{} {mean}", mean_us(result));
    }
    // A turn takes two commands and the gaps of the recording: 6000 + 500 + 2500 us.
    let longest = results.iter().map(|result| result.runtime_ns / 1000).max();
    assert_eq!(longest, Some(15_000 + 198 * 9000));
}

/// A recording, and the files next to it.
struct One(&'static str, Option<&'static str>);

impl CallerEnvironment for One {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let beside = self.1.filter(|_| path == Path::new("incident.host.json"));
        beside.map(|text| text.as_bytes().to_vec()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn recording(&self, _: &Path, _: Option<&Columns>) -> Result<Option<Recording>, ReadError> {
        Ok(Some(recording(self.0)))
    }
}

/// A comparison of a recording with `replay`.
fn compared(change: impl FnOnce(&mut Replay)) -> Result<hoistway_answer::ResultsDocument, String> {
    compared_beside(None, change)
}

/// A comparison of a recording that has other files next to it.
fn compared_beside(
    beside: Option<&'static str>,
    change: impl FnOnce(&mut Replay),
) -> Result<hoistway_answer::ResultsDocument, String> {
    let mut rows = Vec::new();
    for at in 0..200 {
        let start = at * 3000;
        rows.push((1, false, start, start, start + 1000));
    }
    for at in 0..500 {
        rows.push((2, true, at * 1200 + 37, at * 1200 + 37, at * 1200 + 1037));
    }
    let text: &'static str = Box::leak(blkparse(&rows).into_boxed_str());
    let mut comparison = Comparison {
        load: Load::File("incident.blktrace.0".into()),
        schedulers: vec!["none".to_owned(), "mq-deadline".to_owned()],
        ..Comparison::default()
    };
    change(&mut comparison.replay);
    comparison.devices = vec![hoistway_experiment::Devices {
        common: Some(hoistway_experiment::Profile::Text { name: "device".to_owned(), text: device(4, 1000) }),
        ..Default::default()
    }];
    comparison.run(&One(text, beside)).map_err(|error| error.to_string())
}

#[test]
fn a_document_describes_the_recording_and_the_quality_of_its_replay() {
    let document = compared(|_| ()).unwrap();
    let summary = document.recording.as_deref().unwrap();
    assert_eq!((summary.ios, &*summary.device, summary.recorded_under.as_deref()), (700, "8,0", Some("none")));
    let names: Vec<&str> = summary.streams.iter().map(|stream| &*stream.name).collect();
    assert_eq!(names, ["task2", "task1"]);
    assert!(
        summary.self_check.len() == 2 && summary.self_check.iter().all(|check| check.off().abs() < 0.01),
        "{summary:?}"
    );
    // The reader ends the run: its work is complete, and the writer's is cut off.
    for run in &document.runs {
        let done = |name: &str| run.jobs.iter().find(|job| job.name == name).unwrap().done_seconds;
        assert!(done("task2").is_none_or(|seconds| seconds > 0.59), "{:?}", done("task2"));
        assert!(done("task1").is_some() != done("task2").is_some(), "{:?}", run.jobs);
    }
    let again: hoistway_answer::ResultsDocument =
        serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap();
    assert_eq!(again.recording, document.recording);
}

#[test]
fn the_host_file_beside_a_recording_gives_its_scheduler_and_settings() {
    const HOST: &str = r#"{"format": "hoistway-recording-host/1", "device": {"number": "8,0"}, "scheduler": "bfq",
        "queue": {"nr_requests": "64"}, "tunables": {"slice_idle": "0", "of_another_kernel": "7"},
        "tasks": [{"pid": 1, "name": "task1"}, {"pid": 2, "name": "task2", "io_priority": "PRIORITY"}]}"#;
    let with = |from: &str, to: &str, change: fn(&mut Replay)| {
        let host: &str = Box::leak(HOST.replace(from, to).into_boxed_str());
        *compared_beside(Some(host), change).unwrap().recording.unwrap()
    };
    let plain = with("PRIORITY", "be:4", |_| ());
    assert_eq!((plain.recorded_under.as_deref(), plain.is_guess), (Some("bfq"), false));
    let own = |recording: &hoistway_answer::document::RecordingSummary| recording.self_check.clone();
    let differs = |from: &str, to: &str| own(&with(from, to, |_| ())) != own(&plain);
    assert!(differs("PRIORITY", "idle"), "priorities of tasks count");
    assert!(differs("\"slice_idle\": \"0\"", "\"slice_idle\": \"8\""), "tunables count");
    let asked = with("PRIORITY", "be:4", |replay| replay.recorded_under = Some("kyber".to_owned()));
    assert_eq!(asked.recorded_under.as_deref(), Some("kyber"));
    let without = *compared(|_| ()).unwrap().recording.unwrap();
    assert_eq!(with("8,0", "8,16", |_| ()), without, "that is about another device");
    let none = |_: &mut Replay| ();
    for wrong in ["{", "{}", r#"{"format": "other/1"}"#] {
        let error = compared_beside(Some(wrong), none).unwrap_err();
        assert!(
            error.contains("incident.host.json: ") && error.contains("expected what `hoistway record` writes"),
            "{error}"
        );
    }
}

#[test]
fn a_replay_that_runs_faster_or_more_than_once_does_more() {
    let iops = |document: &hoistway_answer::ResultsDocument| {
        document.runs[0].jobs.iter().flat_map(|job| &job.operations).map(|of| of.iops).sum::<f64>()
    };
    let (once, fast, twice) = (
        compared(|_| ()).unwrap(),
        compared(|replay| replay.speed = 2.0).unwrap(),
        compared(|replay| replay.copies = 2).unwrap(),
    );
    assert!(iops(&fast) > 1.2 * iops(&once), "{} {}", iops(&fast), iops(&once));
    assert!(iops(&twice) > 1.3 * iops(&once), "{} {}", iops(&twice), iops(&once));
    let of_one = compared(|replay| replay.streams = vec!["task1".to_owned()]).unwrap();
    assert_eq!(of_one.runs[0].jobs.len(), 1);
    let part = compared(|replay| replay.window_ns = Some((0, 100_000_000))).unwrap();
    assert!(part.recording.unwrap().ios < 150);
}

#[test]
fn impossible_replay_options_are_refused_by_name() {
    type Change = fn(&mut Replay);
    let cases: [(Change, &str); 8] = [
        (|replay| replay.speed = 0.0, "`replay.speed`"),
        (|replay| replay.copies = 0, "`replay.copies`"),
        (|replay| replay.streams = vec!["task3".to_owned()], "`replay.streams`"),
        (|replay| replay.depths = [("task1".to_owned(), 0)].into(), "`replay.depths`"),
        (|replay| drop(replay.priorities.insert("task1".to_owned(), "high".to_owned())), "`replay.priorities`"),
        (|replay| replay.window_ns = Some((5, 5)), "`replay.window_ns`"),
        (|replay| replay.recorded_under = Some("anticipatory".to_owned()), "`replay.recorded_under`"),
        (|replay| replay.device = Some("9:0".to_owned()), "`replay.device`"),
    ];
    for (change, name) in cases {
        let error = compared(change).unwrap_err();
        assert!(error.contains(name) && error.contains("expected"), "{error}");
    }
}

#[test]
fn a_job_file_takes_no_options_of_a_replay() {
    let comparison = Comparison { replay: Replay { speed: 2.0, ..Replay::default() }, ..Comparison::default() };
    let error = comparison.run(&hoistway_experiment::Alone).unwrap_err().to_string();
    assert!(error.contains("expected a recording"), "{error}");
}
