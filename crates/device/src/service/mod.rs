//! A device that is known by its service times: how long commands of each kind take once it works on them, and how many it works on.
//!
//! Used by: `preset`; crate `experiment` for devices of recordings.
//! Tests: `crates/device/tests/service.rs`.
//!
//! Commands start in the order of their arrival. Each takes a share of the device, and the next one starts as soon as its share is free:
//! a kind with a share of 1/8 is served eight at a time, and one with a share of 1 alone. Service times are drawn, independently of each
//! other, from the distribution of the command's kind.

mod estimate;
mod trial;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

pub use estimate::{Estimated, ServedCommand, estimate};
pub use trial::{DeviceTrial, TriedOperation, trial};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, from_us};
use crate::streams::Streams;

/// The probabilities of the times in [`ServiceKind::times_us`]. The last time is the mean of all longer ones.
pub(crate) const PROBABILITIES: [f64; 20] =
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0];
/// A drawn number of this many bits decides about a service time.
const DRAW_BITS: u32 = 53;

/// The parameters of a [`Service`]: the `[service]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceParameters {
    /// Most nanoseconds that a KiB beyond the size of a kind adds.
    pub kib_ns: f64,
    /// Its kinds of commands.
    pub kinds: Vec<ServiceKind>,
}

/// A kind of commands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceKind {
    /// What it does.
    pub operation: ServedOperation,
    /// Whether it begins where a recent one ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// Mean size, KiB; 0 for a flush.
    pub kib: f64,
    /// The share of the device that one takes, percent.
    pub share_percent: f64,
    /// The service times below which 0, 1, 5, 10, 20, ... 90, 95, 98, 99, 99.5, 99.8, 99.9 and 99.95 % are, and the mean of the longer ones.
    pub times_us: Vec<f64>,
}

/// What a command does. Service times are kept for each of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServedOperation {
    /// A read.
    Read,
    /// A write, with or without FUA, or a write of zeroes.
    Write,
    /// A flush.
    Flush,
    /// A discard.
    Discard,
}

impl ServedOperation {
    pub(crate) const WORDS: &'static [&'static str] = &["read", "write", "flush", "discard"];

    fn of(op: Op) -> ServedOperation {
        match op {
            Op::Read => ServedOperation::Read,
            Op::Write | Op::WriteZeroes => ServedOperation::Write,
            Op::Flush => ServedOperation::Flush,
            Op::Discard => ServedOperation::Discard,
        }
    }
}

/// The model.
#[derive(Clone, Debug)]
pub struct Service {
    shape: Shape,
    kinds: Vec<Kind>,
    kib_ns: f64,
    streams: Streams,
    stations: Stations,
    random: Random,
}

/// A kind with its times in ns.
#[derive(Clone, Debug)]
struct Kind {
    operation: ServedOperation,
    sequential: bool,
    kib: f64,
    share: Share,
    times_ns: [Nanos; PROBABILITIES.len()],
}

/// A share of the device, in units of [`Stations::WHOLE`].
type Share = u64;

/// The commands that the device works on. Used by the model forwards, and by [`estimate()`] to tell waiting from service.
#[derive(Clone, Debug, Default)]
struct Stations {
    /// Ends and shares of those that have started, earliest first.
    ends: BinaryHeap<Reverse<(Instant, Share)>>,
    /// The sum of their shares.
    used: Share,
    /// When the last one started.
    started: Instant,
}

impl Stations {
    /// The whole device.
    const WHOLE: Share = 1 << 32;

    /// When a command that arrives at `now` starts, if all earlier ones end as recorded here.
    #[inline]
    fn start(&mut self, now: Instant, share: Share) -> Instant {
        self.started = self.started.max(now);
        while let Some(&Reverse((end, held))) = self.ends.peek()
            && (end <= self.started || self.used + share > Stations::WHOLE)
        {
            self.started = self.started.max(end);
            self.used -= held;
            self.ends.pop();
        }
        self.started
    }

    #[inline]
    fn ends(&mut self, at: Instant, share: Share) {
        self.used += share;
        self.ends.push(Reverse((at, share)));
    }
}

/// A share in percent as one of [`Stations::WHOLE`], at least 1.
fn share(percent: f64) -> Share {
    ((percent / 100.0 * Stations::WHOLE as f64).round() as Share).clamp(1, Stations::WHOLE)
}

impl Service {
    /// A device of this shape. Its service times are drawn from `seed`.
    #[must_use]
    pub fn new(shape: Shape, parameters: &ServiceParameters, seed: u64) -> Service {
        let kinds = parameters.kinds.iter().map(|kind| {
            let mut times_ns = [Nanos::ZERO; PROBABILITIES.len()];
            for (ns, us) in times_ns.iter_mut().zip(&kind.times_us) {
                *ns = from_us(*us).max(Nanos(1));
            }
            Kind {
                operation: kind.operation,
                sequential: kind.sequential,
                kib: kind.kib,
                share: share(kind.share_percent),
                times_ns,
            }
        });
        let commands = usize::from(shape.hw_queues) * shape.queue_depth as usize;
        let stations = Stations { ends: BinaryHeap::with_capacity(commands.min(1 << 16)), ..Stations::default() };
        Service {
            shape,
            kinds: kinds.collect(),
            kib_ns: parameters.kib_ns,
            streams: Streams::default(),
            stations,
            random: Random::from_seed(seed),
        }
    }

    /// The kind that is most like a command: by what it does, then by whether it is sequential, then by its size.
    fn kind(&self, operation: ServedOperation, sequential: bool, kib: f64) -> Option<&Kind> {
        let unlike = |kind: &&Kind| {
            let operation = kind.operation != operation;
            (operation, kind.sequential != sequential, (kind.kib.max(0.5) / kib.max(0.5)).ln().abs())
        };
        self.kinds.iter().min_by(|a, b| {
            let ((op_a, order_a, size_a), (op_b, order_b, size_b)) = (unlike(a), unlike(b));
            op_a.cmp(&op_b).then(order_a.cmp(&order_b)).then(size_a.total_cmp(&size_b))
        })
    }
}

impl Kind {
    /// Draws a service time.
    fn draw(&self, random: &mut Random) -> Nanos {
        let drawn = random.below(1 << DRAW_BITS) as f64 / (1_u64 << DRAW_BITS) as f64;
        let above = PROBABILITIES.partition_point(|probability| *probability <= drawn).min(PROBABILITIES.len() - 1);
        let (low, high) = (self.times_ns[above - 1], self.times_ns[above]);
        if above == PROBABILITIES.len() - 1 {
            return high;
        }
        let part = (drawn - PROBABILITIES[above - 1]) / (PROBABILITIES[above] - PROBABILITIES[above - 1]);
        low + Nanos((part * high.0.saturating_sub(low.0) as f64).round() as u64)
    }
}

impl Device for Service {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let kib = (u64::from(command.sectors) * SECTOR_BYTES) as f64 / 1024.0;
        let is_sequential = command.sectors > 0 && self.streams.continues(command.sector, command.sectors);
        let Some(kind) = self.kind(ServedOperation::of(command.op), is_sequential, kib).cloned() else {
            schedule.end(now + Nanos(1), command.tag, Status::IoError);
            return Ok(());
        };
        let longer_ns = (kib - kind.kib).max(0.0) * self.kib_ns;
        let service = kind.draw(&mut self.random) + Nanos(longer_ns.round() as u64);
        let end = self.stations.start(now, kind.share) + service;
        self.stations.ends(end, kind.share);
        let status = if self.shape.holds(&command) { Status::Ok } else { Status::IoError };
        schedule.end(end, command.tag, status);
        Ok(())
    }
}
