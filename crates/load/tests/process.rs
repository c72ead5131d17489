//! The main loop of a process alone: every I/O ends when the test says so.

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos};
use hoistway_load::process::{Flows, Phases, RunningProcess, STEADY_SAMPLE, SteadyStates, Step};
use hoistway_load::{
    Ends, Engine, Flow, Issue, Latency, LatencyTarget, Load, Pattern, Process, Rate, RateLimits, RateProcess,
    Steadiness, SteadyFigure, SteadyState, Think, ThinkBlocks, Volume, WriteSync,
};
use hoistway_measure::ProcessResult;

const BLOCK: u64 = 4096;

/// A process of its own, and the I/Os that it has submitted.
struct Single {
    process: RunningProcess,
    flows: Flows,
    now: Instant,
    in_flight: Vec<u32>,
}

impl Single {
    /// A process on a device of `blocks` blocks.
    fn new(pattern: Pattern, blocks: u64, change: impl FnOnce(&mut Process)) -> Single {
        let mut load = Load::new();
        let file = load.file("disk");
        let mut process = Process::new("p", file, pattern);
        change(&mut process);
        load.add(process);
        load.check().expect("a possible load");
        let generator = load.processes[0].generator(0, 1, |_| blocks * BLOCK).expect("it fits");
        let process = RunningProcess::new(&load.processes[0], 0, generator, 1, None);
        Single { process, flows: Flows::new(&load.processes), now: Instant::ZERO, in_flight: Vec::new() }
    }

    /// What it submits until it waits, after these of its I/Os in flight have ended: reads and writes by their block, flushes as `s`,
    /// `|` at the end of a call, and at last when it wants to go on, `-` if only when an I/O ends, or `end`.
    fn run_until_wait(&mut self, ended: &[usize]) -> String {
        let mut slots: Vec<u32> = ended.iter().map(|&index| self.in_flight[index]).collect();
        self.in_flight.retain(|slot| !slots.contains(slot));
        slots.drain(..).for_each(|slot| self.process.ended(slot));
        let mut words = Vec::new();
        loop {
            match self.process.next(self.now, &mut self.flows) {
                Step::Submit(slot) => {
                    self.in_flight.push(slot);
                    let io = self.process.io(slot);
                    let is_flush = io.is_committing || io.op == Some(Op::Flush);
                    words.push(if is_flush { "s".to_owned() } else { (io.offset_bytes / BLOCK).to_string() });
                }
                Step::EndCall => {
                    self.process.call_ended(self.now);
                    words.push("|".to_owned());
                }
                Step::Wait(None) => return words.join(" ") + " -",
                Step::Wait(Some(until)) => return format!("{} {}", words.join(" "), until.0),
                Step::Exit => return words.join(" ") + " end",
            }
        }
    }

    /// What it submits when it has its turn at this time, in ns.
    fn at(&mut self, ns: u64) -> String {
        self.now = Instant(ns);
        self.run_until_wait(&[])
    }

    /// Runs it to its end on a device whose latency follows from the number of I/Os in flight.
    fn run(mut self, latency: impl Fn(u32) -> Nanos) -> ProcessResult {
        let mut ends: Vec<(Instant, u32)> = Vec::new();
        loop {
            match self.process.next(self.now, &mut self.flows) {
                Step::Submit(slot) => ends.push((self.now + latency(self.process.in_flight()), slot)),
                Step::EndCall => self.process.call_ended(self.now),
                Step::Wait(alarm) => {
                    ends.sort();
                    let end = ends.first().map(|&(at, _)| at);
                    self.now = end.into_iter().chain(alarm).min().expect("something to wait for").max(self.now);
                    let (ended, in_flight) = ends.into_iter().partition(|&(at, _)| at <= self.now);
                    ends = in_flight;
                    Vec::into_iter(ended).for_each(|(_, slot)| self.process.ended(slot));
                }
                Step::Exit => return self.process.into_result(self.now, None),
            }
        }
    }
}

/// The same pattern, repeated.
fn looping(pattern: Pattern, loops: u64) -> Pattern {
    Pattern { volume: Volume { loops, ..pattern.volume }, ..pattern }
}

/// A writer of four blocks at a depth of four, with an fsync after two.
fn syncing(engine: Engine) -> Single {
    let pattern = Pattern { sync_every: [2, 0], ..Pattern::write(4096) };
    Single::new(pattern, 4, |process| process.issue = Issue { engine, ..Issue::asynchronous(4) })
}

#[test]
fn libaio_sleeps_in_an_fsync_beside_writes_in_flight() {
    let mut writer = syncing(Engine::Libaio);
    assert_eq!(writer.run_until_wait(&[]), "0 | 1 | s | -");
    assert_eq!(writer.run_until_wait(&[0]), " -", "nothing before the fsync has ended");
    assert_eq!(writer.run_until_wait(&[1]), "2 | 3 | -", "one write is still in flight");
}

#[test]
fn io_uring_continues_beside_an_fsync() {
    let mut writer = syncing(Engine::IoUring);
    // As in fio another one is due until the first has ended.
    assert_eq!(writer.run_until_wait(&[]), "0 | 1 | s | s | -");
    assert_eq!(writer.run_until_wait(&[2]), "2 | -", "the writes are still in flight");
}

#[test]
fn an_fsync_of_posixaio_waits_for_earlier_submissions() {
    let mut writer = syncing(Engine::Posixaio);
    assert_eq!(writer.run_until_wait(&[]), "0 | 1 | -");
    assert_eq!(writer.run_until_wait(&[0]), " -");
    assert_eq!(writer.run_until_wait(&[0]), "s | -");
    assert_eq!(writer.run_until_wait(&[0]), "2 | 3 | -");
}

#[test]
fn a_durable_write_of_a_synchronous_engine_is_followed_by_a_flush() {
    let mut writer = Single::new(Pattern::write(4096), 2, |process| process.caching.write_sync = WriteSync::Dsync);
    assert_eq!(writer.run_until_wait(&[]), "0 | -");
    assert_eq!(writer.run_until_wait(&[0]), "s | -");
    assert_eq!(writer.run_until_wait(&[0]), "1 | -");
    assert_eq!(writer.run_until_wait(&[0]), "s | -");
    assert_eq!(writer.run_until_wait(&[0]), " end");
    assert_eq!(writer.process.done(), (2, 2 * BLOCK));
}

#[test]
fn end_fsync_flushes_at_the_end_and_is_not_measured() {
    let mut writer = Single::new(Pattern::write(4096), 1, |process| process.caching.end_fsync = true);
    assert_eq!(
        [writer.run_until_wait(&[]), writer.run_until_wait(&[0]), writer.run_until_wait(&[0])],
        ["0 | -", "s | -", " end"]
    );
    assert_eq!(writer.process.into_result(Instant(1), None).sync.total_ios, 0);
}

#[test]
fn a_queue_drains_to_its_lower_mark_and_fills_in_batches() {
    let issue = Issue { depth_low: Some(2), batch: 2, complete_max: 4, ..Issue::asynchronous(4) };
    let mut reader = Single::new(Pattern::read(4096), 9, |process| process.issue = issue);
    assert_eq!(reader.run_until_wait(&[]), "0 1 | 2 3 | -");
    assert_eq!(reader.run_until_wait(&[0]), " -");
    assert_eq!(reader.run_until_wait(&[0]), "4 5 | -");
}

#[test]
fn a_failed_io_is_not_measured_and_ends_its_process() {
    let mut reader = Single::new(Pattern::read(4096), 9, |process| process.issue = Issue::asynchronous(2));
    assert_eq!(reader.run_until_wait(&[]), "0 | 1 | -");
    let failed = reader.in_flight.remove(0);
    reader.process.io_failed(failed, 5);
    assert_eq!(reader.run_until_wait(&[]), " -", "the other is still in flight");
    assert_eq!(reader.run_until_wait(&[0]), " end");
    let result = reader.process.into_result(Instant(9), None);
    assert_eq!((result.error, result.total_ios()), (5, 1));
}

#[test]
fn io_that_overlaps_waits_for_that_which_is_in_flight() {
    let mut writer = Single::new(looping(Pattern::write(8192), 3), 2, |process| {
        process.issue = Issue { serialize_overlap: true, ..Issue::asynchronous(4) };
    });
    assert_eq!(writer.run_until_wait(&[]), "0 | -");
    assert_eq!(writer.run_until_wait(&[0]), "0 | -");
    assert_eq!(writer.run_until_wait(&[0]), "0 | -");
    assert_eq!(writer.run_until_wait(&[0]), " end");
}

#[test]
fn a_rate_and_a_run_time_bound_a_process() {
    let limits = RateLimits::Ios([1_000_000, 0, 0]);
    let mut reader = Single::new(Pattern::read(4096), 9, |process| {
        process.issue = Issue::asynchronous(4);
        process.pace.rate = Some(Rate { limits, process: RateProcess::Linear });
        process.schedule.runtime = Some(Nanos(2500));
    });
    assert_eq!(reader.run_until_wait(&[]), "0 | 1000");
    assert_eq!(reader.at(999), " 1000");
    assert_eq!(reader.at(2100), "1 | 2 | 3000", "it makes up for what it missed");
    assert_eq!(reader.at(2500), " -");
    assert_eq!(reader.run_until_wait(&[0, 1, 2]), " end");
}

#[test]
fn a_pause_waits_for_the_ios_in_flight_and_says_how_long_it_spins() {
    let think = Think { sleep: Nanos(300), spin: Nanos(200), blocks: 2, ..Think::default() };
    let mut reader = Single::new(Pattern::read(4096), 9, |process| {
        process.issue = Issue::asynchronous(2);
        process.pace.think = Some(think);
    });
    assert_eq!(reader.run_until_wait(&[]), "0 | 1 | -");
    assert_eq!(reader.run_until_wait(&[0]), "2 | -");
    assert_eq!(reader.run_until_wait(&[0]), " -");
    assert_eq!(reader.process.take_spin(), Nanos::ZERO);
    assert_eq!(reader.run_until_wait(&[0]), " 500");
    assert_eq!([reader.process.take_spin(), reader.process.take_spin()], [Nanos(200), Nanos::ZERO]);
    assert_eq!(reader.at(500), "3 | 4 | -");
}

#[test]
fn an_fsync_counts_for_no_pause() {
    let pattern = Pattern { sync_every: [2, 0], ..Pattern::write(4096) };
    for counting in [ThinkBlocks::Completed, ThinkBlocks::Issued] {
        let mut writer = Single::new(pattern.clone(), 6, |process| {
            process.pace.think = Some(Think { sleep: Nanos(500), blocks: 2, counting, ..Think::default() });
        });
        assert_eq!(writer.run_until_wait(&[]), "0 | -");
        assert_eq!(writer.run_until_wait(&[0]), "1 | -");
        assert_eq!(writer.run_until_wait(&[0]), " 500", "after two writes, before their fsync");
        assert_eq!(writer.at(500), "s | -");
        assert_eq!(writer.run_until_wait(&[0]), "2 | -", "no pause after it");
        assert_eq!(writer.run_until_wait(&[0]), "3 | -");
        assert_eq!(writer.run_until_wait(&[0]), " 1000");
    }
}

#[test]
fn a_search_finds_the_depth_that_keeps_a_latency() {
    let rule = LatencyTarget { target: Nanos(1000), window: Nanos(100_000), percentile: 95.0, goes_on: false };
    let search = |limit: u32| {
        let reader = Single::new(looping(Pattern::read(4096), 1 << 20), 9, |process| {
            process.issue = Issue::asynchronous(32);
            process.latency = Latency { target: Some(rule), ..Latency::default() };
        });
        let result = reader.run(|depth| Nanos(if depth > limit { 1500 } else { 900 }));
        result.latency_search.expect("it has searched").depth
    };
    assert_eq!([1, 5, 20, 99].map(search), [1, 5, 20, 32]);
}

#[test]
fn processes_of_a_balance_wait_for_each_other() {
    let mut load = Load::new();
    let file = load.file("disk");
    for weight in [2, 1] {
        let mut process = Process::new("p", file, Pattern::read(4096));
        process.issue = Issue::asynchronous(8);
        process.pace.flow = Some(Flow { id: 1, weight, ..Flow::default() });
        load.add(process);
    }
    let mut flows = Flows::new(&load.processes);
    let mut processes: Vec<RunningProcess> = (0..)
        .zip(&load.processes)
        .map(|(number, process)| {
            let generator = process.generator(number, 1, |_| 99 * BLOCK).expect("it fits");
            RunningProcess::new(process, number, generator, 1, None)
        })
        .collect();
    assert!(processes.iter().all(RunningProcess::depends_on_other_processes));
    let mut submits = |process: usize, flows: &mut Flows| {
        let (process, mut count) = (&mut processes[process], 0);
        loop {
            match process.next(Instant::ZERO, flows) {
                Step::Submit(_) => count += 1,
                Step::EndCall => process.call_ended(Instant::ZERO),
                Step::Wait(None) => return count,
                step => panic!("{step:?}"),
            }
        }
    };
    assert_eq!([submits(0, &mut flows), submits(0, &mut flows)], [3, 0]);
    assert!(!flows.has_released());
    assert_eq!(
        submits(1, &mut flows),
        3,
        "3 of 6 are one more than a third of 6, as 3 of 3 are one more than two thirds"
    );
    assert_eq!((flows.pop_released(), flows.pop_released()), (Some(0), None));
    assert_eq!(submits(0, &mut flows), 5, "its queue is full: 9 of 12 would be one more than two thirds");
}

/// Processes with these schedules: phase, job, job that is waited for, and which it ends.
fn phases<const N: usize>(schedules: [(u32, usize, Option<usize>, Option<Ends>); N]) -> Phases {
    let process = |(phase, job, wait_for, ends)| {
        let mut process = Process::new("p", 0, Pattern::read(4096));
        let schedule = &mut process.schedule;
        (schedule.phase, schedule.job, schedule.wait_for, schedule.ends) = (phase, job, wait_for, ends);
        process
    };
    Phases::new(&schedules.map(process))
}

#[test]
fn a_phase_starts_after_the_previous_one_and_a_waiter_after_its_job() {
    let mut phases = phases([
        (0, 0, None, None),
        (0, 0, None, None),
        (0, 1, Some(0), None),
        (2, 2, None, None),
        (2, 3, Some(1), None),
    ]);
    assert_eq!((phases.start(), phases.start(), phases.is_running()), (vec![0, 1], vec![], true));
    assert_eq!((phases.exited(1), phases.start()), (vec![], vec![]));
    assert_eq!((phases.exited(0), phases.start()), (vec![], vec![2]));
    assert!(phases.has_started(2) && !phases.has_started(3));
    assert_eq!((phases.exited(2), phases.start()), (vec![], vec![3, 4]), "phase 1 is empty");
    assert_eq!((phases.exited(4), phases.exited(3), phases.start()), (vec![], vec![], vec![]));
    assert!(!phases.is_running());
}

#[test]
fn an_exiting_job_ends_its_group_its_phase_or_all() {
    for (ends, expected) in [(Ends::Group, vec![0, 1, 2]), (Ends::Phase, vec![0, 1]), (Ends::All, vec![0, 1, 2])] {
        let mut phases = phases([(0, 0, None, Some(ends)), (0, 1, None, None), (1, 2, None, None)]);
        phases.start();
        assert_eq!(phases.exited(0), expected, "{ends:?}");
    }
}

#[test]
fn a_process_that_exits_before_its_phase_is_not_waited_for() {
    let mut phases = phases([(0, 0, None, None), (1, 1, None, None), (1, 2, None, None)]);
    phases.start();
    phases.exited(1);
    assert_eq!((phases.exited(0), phases.start()), (vec![], vec![2]));
    phases.exited(2);
    assert!(phases.start().is_empty() && !phases.is_running());
}

#[test]
fn results_that_are_steady_end_all_that_are_watched_together() {
    let steadiness = Steadiness { figure: SteadyFigure::Ios, is_slope: false, limit: 10.0, is_percent: true };
    let process = |group_reporting| {
        let mut process = Process::new("p", 0, Pattern::read(4096));
        process.steady_state = Some(SteadyState { steadiness, seconds: 2, ramp: Nanos(7) });
        process.schedule.group_reporting = group_reporting;
        process
    };
    let mut steady = SteadyStates::new(&[process(true), process(true), process(false)]);
    assert_eq!(steady.begin(1, Instant(10)), Some((0, Instant(17))));
    assert_eq!(steady.begin(0, Instant(11)), None, "that is watched already");
    assert_eq!((steady.members(0), steady.members(1)), (&[0, 1][..], &[2][..]));
    let samples = [0, 100, 150, 255, 358].map(|ios| steady.sample(0, (ios, ios * BLOCK)));
    assert_eq!(samples, [false, false, false, false, true]);
    let document = steady.document(1).expect("it is watched");
    assert_eq!((document.attained, document.data.iops), (1, vec![105, 103]));
    assert_eq!(STEADY_SAMPLE, Nanos::from_secs(1));
}
