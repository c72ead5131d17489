//! A device that only completes after a delay, like the kernel's null block driver.
//!
//! Used instead of a disk, it leaves only the cost of the block layer and the scheduler. Commands do not affect each
//! other: there is no stage to queue at. Its own cost is negligible; with a limit, it keeps a heap of the completion
//! times of its commands.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::bio::Status;
use hoistway_blk::ground::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, UniformTime};

/// The parameters of a [`Null`] device: the `[null]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullParameters {
    /// Time from the submission to the completion, ns.
    pub delay_ns: u64,
    /// The delay is drawn uniformly from plus or minus this percentage.
    #[serde(default)]
    pub delay_jitter_percent: f64,
    /// Maximum commands at a time; more are refused until one completes. Without it the only limit is the number of
    /// driver tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds_commands: Option<u32>,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Null {
    shape: Shape,
    /// Time from submission to completion.
    delay: UniformTime,
    /// The commands that it holds, if their number is limited.
    held: Option<Held>,
    random: Random,
}

/// The commands that a limited device has not completed yet.
#[derive(Clone, Debug)]
struct Held {
    /// Maximum number of commands, at least 1.
    limit: usize,
    /// Completion times, earliest first.
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
    /// Whether there is room at `now`, after everything that completes by then.
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
