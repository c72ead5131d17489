//! Random faults: errors, stalls, lost completions, and writes that reach the medium only in part.
//!
//! The fault of a command is drawn at its submission, so equal seeds and loads give equal faults. A command that the
//! wrapped device has accepted still ends exactly once: a lost one ends with a timeout, when the host gives up.

use std::collections::VecDeque;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape, TraceEvent};
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

/// The wrapper.
pub struct FaultInjector {
    inner: Box<dyn Device>,
    /// Probabilities, scaled to 2^32.
    error: u64,
    stall: u64,
    lost: u64,
    torn: u64,
    stalls_for: Nanos,
    lost_after: Nanos,
    /// The fault of each command in flight, by its tag.
    fates: Vec<Fate>,
    random: Random,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    NoFault,
    Error,
    Stall,
    /// Given up at this time.
    Lost(Instant),
    Torn,
}

const CERTAIN: u64 = 1 << 32;

fn chance(per_million: f64) -> u64 {
    (per_million / 1e6 * CERTAIN as f64).round() as u64
}

impl FaultInjector {
    /// Adds faults to `inner`, drawn from `seed`.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, parameters: &FaultParameters, seed: u64) -> FaultInjector {
        let tags = usize::from(inner.shape().hw_queues) * inner.shape().queue_depth as usize;
        FaultInjector {
            error: chance(parameters.errors_per_million),
            stall: chance(parameters.stalls_per_million),
            lost: chance(parameters.lost_per_million),
            torn: chance(parameters.torn_writes_per_million),
            stalls_for: from_ms(parameters.stall_ms),
            lost_after: from_ms(parameters.lost_after_ms),
            fates: vec![Fate::NoFault; tags],
            // Independent of the device's own random numbers.
            random: Random::from_seed(seed ^ 0x6661_756c_7473),
            inner,
        }
    }

    /// Draws the fault of a command. One number decides, so that rare faults exclude each other.
    fn draw(&mut self, now: Instant, command: &Command) -> Fate {
        let drawn = self.random.below(CERTAIN);
        let transfers = matches!(command.op, Op::Read | Op::Write);
        let mut below = self.lost;
        if drawn < below {
            return Fate::Lost(now + self.lost_after);
        }
        below += self.stall;
        if drawn < below {
            return Fate::Stall;
        }
        below += self.error;
        if drawn < below {
            return if transfers { Fate::Error } else { Fate::NoFault };
        }
        below += self.torn;
        if drawn < below && command.op == Op::Write && command.sectors > self.block_sectors() {
            return Fate::Torn;
        }
        Fate::NoFault
    }

    fn block_sectors(&self) -> u32 {
        (self.inner.shape().logical_block_bytes / 512).max(1)
    }

    /// The part of a torn write that is written: at least one block, and not all.
    fn torn(&mut self, command: Command) -> Command {
        let block = self.block_sectors();
        let blocks = u64::from(command.sectors / block).max(2);
        let written = 1 + self.random.below(blocks - 1);
        Command { sectors: (written as u32 * block).min(command.sectors), ..command }
    }

    /// Applies faults to the completions that the wrapped device has scheduled since.
    fn inject_faults(&mut self, from: usize, schedule: &mut Schedule) {
        for completion in &mut schedule.completions[from..] {
            let Some(fate) = self.fates.get_mut(completion.tag as usize) else { continue };
            match std::mem::replace(fate, Fate::NoFault) {
                Fate::NoFault => {}
                Fate::Error => completion.status = Status::Medium,
                Fate::Torn => completion.status = Status::IoError,
                Fate::Stall => completion.at += self.stalls_for,
                Fate::Lost(given_up) => {
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

    fn interrupts(&self) -> bool {
        self.inner.interrupts()
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let fate = self.draw(now, &command);
        let tag = command.tag as usize;
        let passed = if fate == Fate::Torn { self.torn(command) } else { command };
        if tag >= self.fates.len() {
            self.fates.resize(tag + 1, Fate::NoFault);
        }
        let before = std::mem::replace(&mut self.fates[tag], fate);
        let from = schedule.completions.len();
        if let Err(refusal) = self.inner.submit(now, passed, schedule) {
            self.fates[tag] = before;
            return Err(refusal);
        }
        self.inject_faults(from, schedule);
        Ok(())
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        let from = schedule.completions.len();
        self.inner.wake(now, alarm, schedule);
        self.inject_faults(from, schedule);
    }

    fn traced(&self) -> Option<&VecDeque<TraceEvent>> {
        self.inner.traced()
    }
}
