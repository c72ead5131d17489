//! A device model on trial: it gets the commands that a device served, as many at a time, and has to take as long.
//!
//! Used by: crate `experiment` for devices of recordings.
//! Tests: `crates/device/tests/service.rs`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::ground::{Instant, Nanos};

use super::{ServedCommand, ServedOperation};
use crate::model::{Command, Device, Schedule};

/// An operation with fewer commands than this is not compared.
const COMMANDS_MIN: usize = 20;
/// Weight of the logarithm of the 99th percentiles beside that of the means.
const P99_WEIGHT: f64 = 0.5;

/// How a model did on trial.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceTrial {
    /// Each operation with enough commands.
    pub operations: Vec<TriedOperation>,
}

/// An operation of a trial, in ns: recorded, and of the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TriedOperation {
    /// The operation.
    pub operation: ServedOperation,
    /// Number of commands.
    pub commands: usize,
    /// Mean latencies.
    pub mean_ns: [f64; 2],
    /// 99th percentiles.
    pub p99_ns: [f64; 2],
}

impl DeviceTrial {
    /// How far it is off, as a factor: the geometric mean over the operations of the larger mean latency over the smaller one, and with less
    /// weight of the 99th percentiles. Rare operations count as much as others, because somebody may wait for them. Infinite if nothing
    /// could be compared.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let off = |[recorded, model]: [f64; 2]| (model / recorded).ln().abs();
        let both = |it: &TriedOperation| (off(it.mean_ns) + P99_WEIGHT * off(it.p99_ns)) / (1.0 + P99_WEIGHT);
        let count = self.operations.len();
        if count == 0 { f64::INFINITY } else { (self.operations.iter().map(both).sum::<f64>() / count as f64).exp() }
    }
}

/// What a device does next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// The command with this tag ends.
    End(u32),
    /// An alarm.
    Alarm(u32),
}

/// When a command is issued on trial: so many ns after this many have ended. Arrivals that were fixed in time would drift away from a device
/// that was busy, however little its model differs.
#[derive(Clone, Copy)]
struct Cue {
    ended: usize,
    after: Nanos,
}

fn cues(commands: &[ServedCommand]) -> Vec<Cue> {
    let mut ends = BinaryHeap::new();
    let (mut ended, mut last) = (0, commands.first().map_or(Instant::ZERO, |first| first.issued));
    let cue = |command: &ServedCommand| {
        while let Some(&Reverse(end)) = ends.peek()
            && end <= command.issued
        {
            ends.pop();
            (ended, last) = (ended + 1, end);
        }
        ends.push(Reverse(command.ended));
        Cue { ended, after: command.issued.since(last) }
    };
    commands.iter().map(cue).collect()
}

/// Sends `commands` to a device, each when as many have ended as when it was issued, and after the same pause; and compares how long those
/// from number `from` on take.
#[must_use]
pub fn trial(device: &mut dyn Device, commands: &[ServedCommand], from: usize) -> DeviceTrial {
    let shape = device.shape().clone();
    let hw_queues = u32::from(shape.hw_queues.max(1));
    let tags = if shape.host_wide_tags { shape.queue_depth } else { shape.queue_depth * hw_queues };
    let mut free: Vec<u32> = (0..tags).rev().collect();
    let mut number_of_tag = vec![0_usize; tags as usize];
    let (mut issued, mut latencies) = (vec![Instant::ZERO; commands.len()], vec![0_u64; commands.len()]);
    let mut waiting: VecDeque<usize> = VecDeque::new();
    let mut events: BinaryHeap<Reverse<(Instant, Event)>> = BinaryHeap::new();
    let mut schedule = Schedule::default();
    let cues = cues(commands);
    let mut next = 0;
    let mut clock = Instant::ZERO;
    // The first stands for the beginning.
    let mut ends = vec![Instant::ZERO];
    loop {
        // The next command that may come, now that enough have ended.
        let due = cues.get(next).and_then(|cue| Some((*ends.get(cue.ended)? + cue.after).max(clock)));
        let event = events.peek().map(|Reverse((at, _))| *at);
        let now = match (due, event) {
            (Some(due), event) if event.is_none_or(|at| due < at) => {
                issued[next] = due;
                waiting.push_back(next);
                next += 1;
                due
            }
            (_, Some(_)) => {
                let Some(Reverse((at, event))) = events.pop() else { break };
                match event {
                    Event::End(tag) => {
                        let number = number_of_tag[tag as usize];
                        latencies[number] = at.since(issued[number]).0.max(1);
                        free.push(tag);
                        ends.push(at);
                    }
                    Event::Alarm(alarm) => device.wake(at, alarm, &mut schedule),
                }
                at
            }
            _ => break,
        };
        clock = now;
        while let (Some(&number), Some(&tag)) = (waiting.front(), free.last()) {
            let ServedCommand { op, sector, sectors, .. } = commands[number];
            let queue = (tag % hw_queues) as u16;
            let command = Command { tag, queue, op, sector, sectors, fua: false };
            if device.submit(now, command, &mut schedule).is_err() {
                break;
            }
            number_of_tag[tag as usize] = number;
            free.pop();
            waiting.pop_front();
        }
        events.extend(schedule.completions.drain(..).map(|end| Reverse((end.at, Event::End(end.tag)))));
        events.extend(schedule.alarms.drain(..).map(|(at, alarm)| Reverse((at, Event::Alarm(alarm)))));
    }
    let mut fit = DeviceTrial::default();
    for operation in [ServedOperation::Read, ServedOperation::Write, ServedOperation::Flush, ServedOperation::Discard] {
        let is_own = |number: &usize| ServedOperation::of(commands[*number].op) == operation;
        let numbers: Vec<usize> = (from..commands.len()).filter(is_own).collect();
        // Commands that a device never served have no latency: it hangs, or they are lost.
        if numbers.len() < COMMANDS_MIN || numbers.iter().any(|number| latencies[*number] == 0) {
            continue;
        }
        let recorded = sorted(numbers.iter().map(|number| commands[*number].latency().0));
        let model = sorted(numbers.iter().map(|number| latencies[*number]));
        fit.operations.push(TriedOperation {
            operation,
            commands: numbers.len(),
            mean_ns: [mean(&recorded), mean(&model)],
            p99_ns: [p99(&recorded), p99(&model)],
        });
    }
    fit
}

fn sorted(times_ns: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut times_ns: Vec<u64> = times_ns.map(|ns| ns.max(1)).collect();
    times_ns.sort_unstable();
    times_ns
}

fn mean(times_ns: &[u64]) -> f64 {
    times_ns.iter().map(|ns| *ns as f64).sum::<f64>() / times_ns.len() as f64
}

fn p99(sorted_ns: &[u64]) -> f64 {
    sorted_ns[(sorted_ns.len() * 99 / 100).min(sorted_ns.len() - 1)] as f64
}
