//! A device that does nothing but complete after a delay, like the kernel's null block driver.
//!
//! With it in place of a disk, what is left is the cost of the block layer and of the scheduler. Commands do not
//! disturb each other: there is no stage to queue at. Costs nothing worth counting; with a limit, a heap of the
//! completion times of the commands that it holds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::bio::Status;
use hoistway_blk::ground::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, UniformTime};

/// What a [`Null`] device is made of: the `[null]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullParameters {
    /// Time from the submission to the completion, ns.
    pub delay_ns: u64,
    /// The delay is drawn uniformly from plus or minus this much of itself, percent.
    #[serde(default)]
    pub delay_jitter_percent: f64,
    /// Commands that it holds at a time; what comes beyond is refused until one completes. Without it there is
    /// no limit but the tags of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds_commands: Option<u32>,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Null {
    shape: Shape,
    /// Time from submission to completion.
    delay: UniformTime,
    /// Which commands it holds, if that is limited.
    held: Option<Held>,
    random: Random,
}

/// The commands that a limited device has not yet completed.
#[derive(Clone, Debug)]
struct Held {
    /// Commands that fit, at least 1.
    limit: usize,
    /// When each completes, the earliest first.
    until: BinaryHeap<Reverse<Instant>>,
}

impl Null {
    /// A device of this shape. Its jitter is drawn from `seed`.
    #[must_use]
    pub fn new(shape: Shape, parameters: &NullParameters, seed: u64) -> Null {
        Null {
            shape,
            delay: UniformTime::around(Nanos(parameters.delay_ns), parameters.delay_jitter_percent),
            held: parameters
                .holds_commands
                .map(|limit| Held { limit: limit.max(1) as usize, until: BinaryHeap::new() }),
            random: Random::from_seed(seed),
        }
    }
}

impl Held {
    /// Whether there is room at `now`, when everything that completes by then has gone.
    fn has_room(&mut self, now: Instant) -> bool {
        while self.until.peek().is_some_and(|&Reverse(at)| at <= now) {
            self.until.pop();
        }
        self.until.len() < self.limit
    }
}

impl Device for Null {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        if self.held.as_mut().is_some_and(|held| !held.has_room(now)) {
            return Err(Refusal::UntilCompletion);
        }
        let at = now + self.delay.draw(&mut self.random);
        if let Some(held) = &mut self.held {
            held.until.push(Reverse(at));
        }
        let status = if self.shape.holds(&command) { Status::Ok } else { Status::IoError };
        schedule.end(at, command.tag, status);
        Ok(())
    }

    fn wake(&mut self, _now: Instant, _alarm: u32, _schedule: &mut Schedule) {}

    fn interrupts(&self) -> bool {
        false
    }
}
