//! Makes recordings from tables of I/Os, and replays programs on a simple device.

use std::collections::BTreeMap;
use std::io::Cursor;

use hoistway_load::When;
use hoistway_program::{Options, Program, Step};
use hoistway_trace::block::{Input, Recording};

/// An I/O of a recording: its task, whether it writes, and when it was queued, was taken for submission, was issued and
/// completed, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub task: u32,
    pub is_write: bool,
    pub queue_us: u64,
    pub taken_us: u64,
    pub issue_us: u64,
    pub complete_us: u64,
}

/// The task that is the journal of a file system.
pub const JOURNAL: u32 = 99;

/// The program inferred from these I/Os, in the format of blkparse. Each I/O has its own sector.
pub fn inferred(rows: &[Row], ios_min: u64) -> Program {
    let mut lines = Vec::new();
    for (row, sector) in rows.iter().zip((0u64..).step_by(1000)) {
        let flags = if row.is_write { "WS" } else { "R" };
        // At equal times, completions precede the I/Os that they cause, and the submission of an I/O precedes its
        // issue.
        let events =
            [('C', row.complete_us, 0), ('Q', row.queue_us, 1), ('G', row.taken_us, 2), ('D', row.issue_us, 3)];
        for (action, time_us, order) in events {
            let (seconds, rest) = (time_us / 1_000_000, time_us % 1_000_000);
            let tail = match (action, row.task) {
                ('C', _) => "[0]".to_owned(),
                (_, JOURNAL) => "[jbd2/sda-8]".to_owned(),
                (_, task) => format!("[task{task}]"),
            };
            let line = format!("  8,0 0 1 {seconds}.{rest:06}000 {} {action} {flags} {sector} + 8 {tail}\n", row.task);
            lines.push((time_us, order, line));
        }
    }
    lines.sort();
    let text: String = lines.into_iter().map(|(.., line)| line).collect();
    let input = Input::new("test", Box::new(Cursor::new(text.into_bytes()))).unwrap();
    let mut recording = Recording::read(input).unwrap();
    Program::infer(&mut recording, "test", &Options { ios_min, ..Options::default() }).unwrap()
}

/// All steps of a stream.
pub fn steps(program: &Program, stream: usize) -> Vec<Step> {
    program.steps(stream).map(Result::unwrap).collect()
}

/// The stream of a task.
pub fn stream(program: &Program, task: u32) -> usize {
    program.streams.iter().position(|stream| stream.pid == Some(task)).expect("a stream of this task")
}

/// Runs a program on a device that executes one command at a time, all of the same length. Returns, for each stream,
/// when its I/Os were queued and completed, in microseconds.
pub fn replayed(program: &Program, command_us: u64) -> Vec<Vec<(u64, u64)>> {
    let all: Vec<Vec<Step>> = (0..program.streams.len()).map(|stream| steps(program, stream)).collect();
    let mut queued: Vec<Vec<u64>> = vec![Vec::new(); all.len()];
    let mut done: Vec<Vec<u64>> = vec![Vec::new(); all.len()];
    // Future completions, and the time at which the device is free.
    let mut coming: BTreeMap<(u64, u64), (usize, usize)> = BTreeMap::new();
    let (mut free_us, mut number) = (0, 0);
    loop {
        // The time of each stream's next I/O, if past completions determine it.
        let next = (0..all.len()).filter_map(|stream| {
            let step = all[stream].get(queued[stream].len())?;
            let last_us = queued[stream].last().copied();
            let finished = |stream: usize, count: u64| {
                let count = usize::try_from(count).unwrap();
                (count <= done[stream].len()).then(|| count.checked_sub(1).map(|last| done[stream][last]))
            };
            let time_us = match step.when {
                When::At(time) => time.0 / 1000,
                When::AfterSubmission(gap) => last_us.unwrap() + gap.0 / 1000,
                When::AfterCompletions { own, of, gap } => {
                    let mut after_us = finished(stream, own)?;
                    for (count, wait) in of.iter().zip(&program.streams[stream].waits) {
                        if let Some(count) = count {
                            after_us = after_us.max(finished(wait.on, *count)?);
                        }
                    }
                    (after_us.unwrap() + gap.0 / 1000).max(last_us.unwrap_or(0))
                }
            };
            Some((time_us, stream))
        });
        let next = next.min();
        let completes = coming.first_key_value().map(|(key, of)| (*key, *of));
        match (next, completes) {
            (Some((time_us, stream)), completes) if completes.is_none_or(|((done_us, _), _)| time_us < done_us) => {
                free_us = free_us.max(time_us) + command_us;
                queued[stream].push(time_us);
                coming.insert((free_us, number), (stream, queued[stream].len() - 1));
                number += 1;
            }
            (_, Some((key, (stream, _)))) => {
                coming.remove(&key);
                done[stream].push(key.0);
            }
            _ => break,
        }
    }
    queued.into_iter().zip(done).map(|(queued, done)| queued.into_iter().zip(done).collect()).collect()
}
