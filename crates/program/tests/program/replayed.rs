//! The program that is inferred from a run of a known program is the known one.

use proptest::prelude::*;

use crate::support::{Row, inferred, replayed};

/// A loop that keeps `depth` I/Os outstanding, and thinks after each completion for the next time in the table.
#[derive(Clone, Debug)]
struct Loop {
    depth: usize,
    start_us: u64,
    thinks_us: Vec<u64>,
}

/// Runs loops on a device that executes one command at a time.
fn run(loops: &[Loop], command_us: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut submitted = vec![0; loops.len()];
    // Future submissions and completions, each with its stream.
    let mut coming: std::collections::BTreeSet<(u64, bool, u64, usize)> = Default::default();
    let mut number = 0;
    let mut free_us = 0;
    for (stream, of) in loops.iter().enumerate() {
        for slot in 0..of.depth {
            coming.insert((of.start_us + 7 * slot as u64, true, number, stream));
            number += 1;
        }
    }
    while let Some((now_us, is_submission, _, stream)) = coming.pop_first() {
        number += 1;
        let of = &loops[stream];
        if is_submission {
            if submitted[stream] == of.thinks_us.len() {
                continue;
            }
            let issue_us = u64::max(free_us, now_us);
            free_us = issue_us + command_us;
            let task = stream as u32 + 1;
            let (queue_us, taken_us, complete_us) = (now_us, now_us, free_us);
            rows.push(Row { task, is_write: false, queue_us, taken_us, issue_us, complete_us });
            submitted[stream] += 1;
            coming.insert((free_us, false, number, stream));
        } else {
            // If a stream is thinking when another of its I/Os completes, it continues in the order of completions.
            let think_us = of.thinks_us[(submitted[stream]).min(of.thinks_us.len() - 1)];
            coming.insert((now_us + think_us, true, number, stream));
        }
    }
    rows
}

fn loops() -> impl Strategy<Value = Vec<Loop>> {
    // Think times are shorter than a command, so that the submissions of a stream keep the order of its completions.
    let thinks_us = prop::collection::vec(1u64..400, 1..40);
    let of_one = (1usize..4, 0u64..3000, thinks_us);
    prop::collection::vec(of_one.prop_map(|(depth, start_us, thinks_us)| Loop { depth, start_us, thinks_us }), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn replaying_a_recording_on_its_own_device_is_the_recording(loops in loops(), command_us in 401u64..2000) {
        let mut rows = run(&loops, command_us);
        // The order of two simultaneous events is unknown.
        let mut times: Vec<u64> = rows.iter().map(|row| row.queue_us).collect();
        times.sort_unstable();
        prop_assume!(times.windows(2).all(|pair| pair[0] < pair[1]));
        // A recording starts at its first event.
        for row in &mut rows {
            for time_us in [&mut row.queue_us, &mut row.taken_us, &mut row.issue_us, &mut row.complete_us] {
                *time_us -= times[0];
            }
        }
        let program = inferred(&rows, 1);
        let times = replayed(&program, command_us);
        for (stream, of) in program.streams.iter().zip(times) {
            let recorded: Vec<(u64, u64)> = rows
                .iter()
                .filter(|row| Some(row.task) == stream.pid)
                .map(|row| (row.queue_us, row.complete_us))
                .collect();
            prop_assert_eq!(of, recorded, "task {:?}", stream.pid);
        }
    }
}
