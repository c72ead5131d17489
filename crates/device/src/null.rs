//! A device that only completes after a delay, like the kernel's null block driver.
//!
//! Used by: `preset`.
//! Tests: `crates/device/tests/conservation.rs`, `crates/device/tests/exact.rs`.
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
    in_flight: Option<InFlight>,
    random: Random,
}

/// The commands that a limited device has not completed yet.
#[derive(Clone, Debug)]
struct InFlight {
    /// Maximum number of commands, at least 1.
    limit: usize,
    /// Completion times, earliest first.
    completion_times: BinaryHeap<Reverse<Instant>>,
}

impl Null {
    /// A device of this shape. Its jitter is drawn from `seed`.
    #[must_use]
    pub fn new(shape: Shape, parameters: &NullParameters, seed: u64) -> Null {
        Null {
            shape,
            delay: UniformTime::around(Nanos(parameters.delay_ns), parameters.delay_jitter_percent),
            in_flight: parameters
                .holds_commands
                .map(|limit| InFlight { limit: limit.max(1) as usize, completion_times: BinaryHeap::new() }),
            random: Random::from_seed(seed),
        }
    }
}

impl InFlight {
    /// Whether there is room at `now`, after everything that completes by then.
    fn has_room(&mut self, now: Instant) -> bool {
        while self.completion_times.peek().is_some_and(|&Reverse(at)| at <= now) {
            self.completion_times.pop();
        }
        self.completion_times.len() < self.limit
    }
}

impl Device for Null {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        if self.in_flight.as_mut().is_some_and(|in_flight| !in_flight.has_room(now)) {
            return Err(Refusal::UntilCompletion);
        }
        let at = now + self.delay.draw(&mut self.random);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.completion_times.push(Reverse(at));
        }
        let status = if self.shape.holds(&command) { Status::Ok } else { Status::IoError };
        schedule.end(at, command.tag, status);
        Ok(())
    }

    fn interrupts(&self) -> bool {
        false
    }
}
