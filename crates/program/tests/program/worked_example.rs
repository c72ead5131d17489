//! A reader with think time and a writer of depth 2, on a device that executes one command at a time, in 1,000 us each.

use hoistway_blk::ground::Nanos;
use hoistway_load::When;
use hoistway_program::{Change, Class, Program};

use crate::support::{JOURNAL, Row, inferred, replayed, steps, stream};

const P: u32 = 1;
const W: u32 = 2;

fn row(task: u32, queue_us: u64, issue_us: u64, complete_us: u64) -> Row {
    Row { task, is_write: task == W, queue_us, taken_us: queue_us, issue_us, complete_us }
}

fn example() -> Program {
    let rows = [
        row(P, 0, 0, 1000),
        row(P, 3000, 4000, 5000),
        row(P, 7000, 8000, 9000),
        row(P, 11_000, 11_000, 12_000),
        row(W, 100, 1000, 2000),
        row(W, 110, 2000, 3000),
        row(W, 2020, 3000, 4000),
        row(W, 3020, 5000, 6000),
        row(W, 4020, 6000, 7000),
        row(W, 6020, 7000, 8000),
    ];
    inferred(&rows, 1)
}

fn after(own: u64, gap_us: u64) -> When {
    When::AfterCompletions { own, of: [None; 3], gap: Nanos::from_micros(gap_us) }
}

#[test]
fn the_reader_thinks_and_the_writer_keeps_two_outstanding() {
    let program = example();
    let whens = |task| steps(&program, stream(&program, task)).into_iter().map(|step| step.when).collect::<Vec<_>>();
    assert_eq!(whens(P), [When::At(Nanos(0)), after(1, 2000), after(2, 2000), after(3, 2000)]);
    let submitted = When::AfterSubmission(Nanos::from_micros(10));
    let after_completions = [after(1, 20), after(2, 20), after(3, 20), after(4, 20)];
    let expected = [&[When::At(Nanos::from_micros(100)), submitted][..], &after_completions].concat();
    assert_eq!(whens(W), expected);
}

#[test]
fn the_program_on_a_slower_device_matches_the_manual_calculation() {
    let program = example();
    let times = replayed(&program, 2000);
    assert_eq!(times[stream(&program, P)], [(0, 2000), (4000, 8000), (10_000, 14_000), (16_000, 20_000)]);
    let of_writer = [(100, 4000), (110, 6000), (4020, 10_000), (6020, 12_000), (10_020, 16_000), (12_020, 18_000)];
    assert_eq!(times[stream(&program, W)], of_writer);
}

#[test]
fn four_reads_leave_the_reader_undecided_and_the_writer_is_a_closed_loop() {
    let program = example();
    let reader = &program.streams[stream(&program, P)];
    let of_reader = (reader.evidence.over, reader.evidence.busy, reader.evidence.batches, reader.class);
    assert_eq!(of_reader, (0.0, 0.5, 4, Class::Undecided));
    let writer = &program.streams[stream(&program, W)];
    assert_eq!((writer.evidence.busy, writer.evidence.batches, writer.class), (1.0, 5, Class::Closed));
    assert!(writer.evidence.heels > 3.0, "{:?}", writer.evidence);
    let changes: Vec<Change> =
        program.alternatives.iter().flat_map(|alternative| alternative.changes.clone()).collect();
    assert!(changes.contains(&Change::Open { stream: stream(&program, P) }), "{changes:?}");
    assert!(!changes.contains(&Change::Open { stream: stream(&program, W) }), "{changes:?}");
}

/// A task that writes and thinks, and after every fourth write waits for a commit if it calls fsync, beside commits for others at random times.
fn beside_a_journal(calls_fsync: bool, think_us: u64, commit_us: u64, seed: u64) -> Program {
    let mut random = seed;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let written = |task, queue_us, us| Row { is_write: true, ..row(task, queue_us, queue_us, queue_us + us) };
    let (mut rows, mut now_us, mut journal_free_us) = (Vec::new(), 1000, 0);
    for write in 0..2000 {
        rows.push(written(P, now_us, 200));
        let until_us = now_us + 200 + think_us;
        let mut commit_at = (write % 4 == 3 && calls_fsync).then_some(now_us + 201);
        now_us = until_us;
        loop {
            let is_own = commit_at.is_some();
            let begin_us =
                commit_at.take().unwrap_or_else(|| until_us - think_us + below(6 * commit_us)).max(journal_free_us);
            if !is_own && begin_us > until_us {
                break;
            }
            rows.push(written(JOURNAL, begin_us, commit_us));
            journal_free_us = begin_us + commit_us + 1;
            if is_own {
                now_us = journal_free_us + think_us;
            }
        }
    }
    inferred(&rows, 1)
}

/// Neither reading is excluded where a task waits for the journal at times; a task that never does is not suspected of it.
#[test]
fn a_task_that_waits_for_the_journal_at_times_is_simulated_with_and_without() {
    // Fixed cases, because chance alone looks like a wait in some of many.
    for seed in 0..16 {
        let (think_us, commit_us) = (300 + 37 * seed, 250 + 46 * seed);
        for calls_fsync in [false, true] {
            let program = beside_a_journal(calls_fsync, think_us, commit_us, seed);
            let wait = Change::Waits { stream: stream(&program, P), on: stream(&program, JOURNAL) };
            let is_tried = program.alternatives.iter().any(|alternative| alternative.changes.contains(&wait));
            assert_eq!(is_tried, calls_fsync, "seed {seed}: {:?}", program.alternatives);
        }
    }
}

#[test]
fn seven_reads_classify_the_reader_as_a_closed_loop() {
    let reads: Vec<Row> = (0..7).map(|read| row(P, 2000 * read, 2000 * read, 2000 * read + 1000)).collect();
    assert_eq!(inferred(&reads, 1).streams[0].class, Class::Closed);
}

#[test]
fn time_blocked_in_submission_does_not_count_as_a_gap() {
    let taken = |queue_us, taken_us, issue_us, complete_us| Row { taken_us, ..row(P, queue_us, issue_us, complete_us) };
    let rows =
        [taken(0, 1, 2, 1000), taken(10, 11, 1000, 2000), taken(20, 1003, 2000, 3000), taken(1012, 2001, 3000, 4000)];
    let program = inferred(&rows, 1);
    let last = steps(&program, 0)[3];
    assert_eq!(last.when, When::AfterSubmission(Nanos::from_micros(9)));
    assert_eq!(program.streams[0].hidden_depth, Some(3), "the queue let it have no more");
}
