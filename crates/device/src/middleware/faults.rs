//! Random faults: errors, stalls, lost completions, and writes that reach the medium only in part.
//!
//! The fault of a command is drawn at its submission, so equal seeds and loads give equal faults. A command that the
//! wrapped device has accepted still ends exactly once: a lost one ends with a timeout, when the host gives up.

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, from_ms};

/// The rates of faults: the `[faults]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultParameters {
    /// Reads and writes that end with a medium error, per million.
    pub errors_per_million: f64,
    /// Commands that take longer, per million.
    pub stalls_per_million: f64,
    /// Additional time, ms.
    pub stall_ms: f64,
    /// Commands whose completion is lost, per million.
    pub lost_per_million: f64,
    /// When the host gives up on a lost command, ms after its submission.
    pub lost_after_ms: f64,
    /// Writes of several logical blocks that are written only up to some block, and end with an error; per million.
    pub torn_writes_per_million: f64,
}

/// A device with random faults: it wraps another one.
pub struct FaultInjector {
    inner: Box<dyn Device>,
    /// Probabilities, scaled to 2^32.
    error: u64,
    stall: u64,
    lost: u64,
    torn: u64,
    stall_time: Nanos,
    lost_after: Nanos,
    /// The fault of each command in flight, by its tag.
    faults: Vec<Fault>,
    random: Random,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    Error,
    Stall,
    /// Given up at this time.
    Lost(Instant),
    Torn,
}

const PROBABILITY_ONE: u64 = 1 << 32;

fn scaled_probability(per_million: f64) -> u64 {
    (per_million / 1e6 * PROBABILITY_ONE as f64).round() as u64
}

impl FaultInjector {
    /// Adds faults to `inner`, drawn from `seed`.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, parameters: &FaultParameters, seed: u64) -> FaultInjector {
        let tags = usize::from(inner.shape().hw_queues) * inner.shape().queue_depth as usize;
        FaultInjector {
            error: scaled_probability(parameters.errors_per_million),
            stall: scaled_probability(parameters.stalls_per_million),
            lost: scaled_probability(parameters.lost_per_million),
            torn: scaled_probability(parameters.torn_writes_per_million),
            stall_time: from_ms(parameters.stall_ms),
            lost_after: from_ms(parameters.lost_after_ms),
            faults: vec![Fault::None; tags],
            // Independent of the device's own random numbers.
            random: Random::from_seed(seed ^ 0x6661_756c_7473),
            inner,
        }
    }

    /// Draws the fault of a command. One number decides, so that rare faults exclude each other.
    fn draw_fault(&mut self, now: Instant, command: &Command) -> Fault {
        let drawn = self.random.below(PROBABILITY_ONE);
        let has_data = matches!(command.op, Op::Read | Op::Write);
        let mut threshold = self.lost;
        if drawn < threshold {
            return Fault::Lost(now + self.lost_after);
        }
        threshold += self.stall;
        if drawn < threshold {
            return Fault::Stall;
        }
        threshold += self.error;
        if drawn < threshold {
            return if has_data { Fault::Error } else { Fault::None };
        }
        threshold += self.torn;
        if drawn < threshold && command.op == Op::Write && command.sectors > self.block_sectors() {
            return Fault::Torn;
        }
        Fault::None
    }

    fn block_sectors(&self) -> u32 {
        (self.inner.shape().logical_block_bytes / 512).max(1)
    }

    /// The part of a torn write that is written: at least one block, and not all.
    fn tear(&mut self, command: Command) -> Command {
        let block = self.block_sectors();
        let blocks = u64::from(command.sectors / block).max(2);
        let written = 1 + self.random.below(blocks - 1);
        Command { sectors: (written as u32 * block).min(command.sectors), ..command }
    }

    /// Applies faults to the completions that the wrapped device has scheduled since.
    fn inject_faults(&mut self, first_new: usize, schedule: &mut Schedule) {
        for completion in &mut schedule.completions[first_new..] {
            let Some(fault) = self.faults.get_mut(completion.tag as usize) else { continue };
            match std::mem::replace(fault, Fault::None) {
                Fault::None => {}
                Fault::Error => completion.status = Status::Medium,
                Fault::Torn => completion.status = Status::IoError,
                Fault::Stall => completion.at += self.stall_time,
                Fault::Lost(given_up) => {
                    completion.at = completion.at.max(given_up);
                    completion.status = Status::Timeout;
                }
            }
        }
    }
}

impl Device for FaultInjector {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn inner(&self) -> Option<&dyn Device> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(&mut *self.inner)
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let fault = self.draw_fault(now, &command);
        let tag = command.tag as usize;
        let forwarded = if fault == Fault::Torn { self.tear(command) } else { command };
        if tag >= self.faults.len() {
            self.faults.resize(tag + 1, Fault::None);
        }
        let previous = std::mem::replace(&mut self.faults[tag], fault);
        let first_new = schedule.completions.len();
        if let Err(refusal) = self.inner.submit(now, forwarded, schedule) {
            self.faults[tag] = previous;
            return Err(refusal);
        }
        self.inject_faults(first_new, schedule);
        Ok(())
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        let first_new = schedule.completions.len();
        self.inner.wake(now, alarm, schedule);
        self.inject_faults(first_new, schedule);
    }
}
