//! A host without a scheduler: processes that each keep some I/Os outstanding, and a queue, first come, first
//! served, for those that find no free slot in the device. Its random stream is one of its own.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, Sector};
use hoistway_device::{Command, Device, Schedule};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What one process does: I/O of one size, some of it reads.
#[derive(Clone, Copy)]
pub(crate) struct Process {
    /// I/Os that it keeps outstanding.
    pub(crate) depth: u32,
    /// Reads among its I/Os, percent.
    pub(crate) read_percent: u64,
    /// Size of an I/O, sectors.
    pub(crate) sectors: u32,
    /// Whether one I/O follows the other on the disk, or they are at random places.
    pub(crate) sequential: bool,
    /// Whether its writes end only when they are durable.
    pub(crate) fua: bool,
}

impl Process {
    /// Random I/O of 4 KiB.
    pub(crate) fn random(depth: u32, read_percent: u64) -> Process {
        Process { depth, read_percent, sectors: 8, sequential: false, fua: false }
    }
}

/// What was measured of one process in one direction.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Measured {
    /// I/Os that ended.
    pub(crate) ios: u64,
    /// Sum of their latencies from the submission by the process, ns.
    pub(crate) latency_sum_ns: u64,
    /// The longest of them, ns.
    pub(crate) latency_max_ns: u64,
}

impl Measured {
    pub(crate) fn mean_ms(&self) -> f64 {
        self.latency_sum_ns as f64 / self.ios as f64 / 1e6
    }

    pub(crate) fn max_ms(&self) -> f64 {
        self.latency_max_ns as f64 / 1e6
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Completion(u32),
    Alarm(u32),
}

/// An I/O of a process.
#[derive(Clone, Copy)]
struct Io {
    process: usize,
    op: Op,
    submitted: Instant,
}

/// Runs the processes until `duration` and returns, for each, its `[reads, writes]`.
pub(crate) fn run(device: &mut dyn Device, processes: &[Process], duration: Nanos, seed: u64) -> Vec<[Measured; 2]> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let slots = device.shape().queue_depth;
    let blocks = device.shape().capacity_sectors / 8;
    let mut free: Vec<u32> = (0..slots).rev().collect();
    let mut in_slot: Vec<Option<Io>> = vec![None; slots as usize];
    let mut waiting: VecDeque<Io> = VecDeque::new();
    // Time, order, and the tag of a completion or the number of an alarm.
    let mut events: BinaryHeap<Reverse<(Instant, u64, Event)>> = BinaryHeap::new();
    let mut order = 0;
    let mut next_block = vec![0; processes.len()];
    let mut schedule = Schedule::default();
    let mut measured = vec![[Measured::default(); 2]; processes.len()];

    let next_io = |process: usize, now: Instant, random: &mut Xoshiro256PlusPlus| {
        let op = if random.next_u64() % 100 < processes[process].read_percent { Op::Read } else { Op::Write };
        Io { process, op, submitted: now }
    };
    let deepest = processes.iter().map(|process| process.depth).max().unwrap_or(0);
    for round in 0..deepest {
        for (index, _) in processes.iter().enumerate().filter(|(_, process)| process.depth > round) {
            waiting.push_back(next_io(index, Instant::ZERO, &mut random));
        }
    }
    let mut now = Instant::ZERO;
    loop {
        while let (Some(&io), Some(&tag)) = (waiting.front(), free.last()) {
            let Process { sectors, sequential, fua, .. } = processes[io.process];
            let size = u64::from(sectors.div_ceil(8));
            let block = if sequential {
                let block = next_block[io.process];
                next_block[io.process] = if block + 2 * size <= blocks { block + size } else { 0 };
                block
            } else {
                random.next_u64() % (blocks - size)
            };
            let command = Command {
                tag,
                queue: 0,
                op: io.op,
                sector: Sector(block * 8),
                sectors,
                fua: fua && io.op == Op::Write,
            };
            device.submit(now, command, &mut schedule).expect("there is a free slot");
            waiting.pop_front();
            free.pop();
            in_slot[tag as usize] = Some(io);
        }
        for completion in schedule.completions.drain(..) {
            assert_eq!(completion.status, Status::Ok);
            assert!(completion.at >= now);
            order += 1;
            events.push(Reverse((completion.at, order, Event::Completion(completion.tag))));
        }
        for (at, alarm) in schedule.alarms.drain(..) {
            assert!(at >= now);
            order += 1;
            events.push(Reverse((at, order, Event::Alarm(alarm))));
        }
        let Some(Reverse((at, _, event))) = events.pop() else { break };
        if at > Instant::ZERO + duration {
            break;
        }
        now = at;
        let tag = match event {
            Event::Alarm(alarm) => {
                device.wake(now, alarm, &mut schedule);
                continue;
            }
            Event::Completion(tag) => tag,
        };
        let io = in_slot[tag as usize].take().expect("a command completes once");
        free.push(tag);
        let cell = &mut measured[io.process][io.op.direction().index()];
        let latency_ns = now.since(io.submitted).0;
        cell.ios += 1;
        cell.latency_sum_ns += latency_ns;
        cell.latency_max_ns = cell.latency_max_ns.max(latency_ns);
        waiting.push_back(next_io(io.process, now, &mut random));
    }
    measured
}
