//! What a device model is: it accepts commands and says when each completes.
//!
//! A model lives in virtual time and never asks for it: every call gets the time. It writes its completions into a
//! [`Schedule`], which the owner of the clock empties after each call. No scheduler's name and no tunable of a
//! scheduler ever reaches a model.

use std::collections::VecDeque;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Sector};

/// A command as the driver sends it to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The driver's number for it, unique among the commands in flight and less than
    /// `hw_queues * queue_depth`, or than `queue_depth` with host-wide tags. It comes back in the [`Completion`].
    pub tag: u32,
    /// The hardware queue it was sent on, less than [`Shape::hw_queues`].
    pub queue: u16,
    /// What to do.
    pub op: Op,
    /// First sector (512 bytes).
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Force unit access: a write completes only when it is on stable media.
    pub fua: bool,
}

/// A device's answer to a command it cannot take now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Try again later; nothing is promised about when (RESOURCE).
    Busy,
    /// A completion of this device will make room (DEV_RESOURCE).
    UntilCompletion,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// When the host sees it.
    pub at: Instant,
    /// Which command.
    pub tag: u32,
    /// How it ended.
    pub status: Status,
}

/// A command that a device got, or its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// It took a command.
    Taken(Instant, Command),
    /// It refused one.
    Refused(Instant, Command, Refusal),
    /// It has said at that time how and when a command ends.
    Ends(Instant, Completion),
}

/// What a model wants to happen later. Times lie at or after the `now` of the call.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Commands that end, each exactly once.
    pub completions: Vec<Completion>,
    /// Moments at which the model wants [`Device::wake`] to be called, each with a number of its own choice.
    /// An alarm cannot be taken back: a model ignores the ones that it no longer needs.
    pub alarms: Vec<(Instant, u32)>,
}

impl Schedule {
    /// Whether nothing has been announced.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.completions.is_empty() && self.alarms.is_empty()
    }

    /// Ends command `tag` well at `at`.
    #[inline]
    pub fn complete(&mut self, at: Instant, tag: u32) {
        self.end(at, tag, Status::Ok);
    }

    /// Ends command `tag` at `at` with `status`.
    #[inline]
    pub fn end(&mut self, at: Instant, tag: u32, status: Status) {
        self.completions.push(Completion { at, tag, status });
    }
}

/// The fixed properties of a device that the block layer needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Logical block size in bytes, a power of two.
    pub logical_block_bytes: u32,
    /// Physical block size in bytes, a power of two and at least the logical one.
    pub physical_block_bytes: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// Commands that each hardware queue holds (driver tags), or all of them together.
    pub queue_depth: u32,
    /// Whether all hardware queues share one space of driver tags.
    pub host_wide_tags: bool,
    /// Whether the host drives it as a SCSI disk, which SATA disks are too: with a budget of `queue_depth` commands
    /// that is taken before a request is drawn from the scheduler.
    pub scsi: bool,
    /// Whether it is a rotating disk.
    pub rotational: bool,
    /// Whether it has a volatile write cache, so that flushes mean something.
    pub write_cache: bool,
    /// Whether it can do FUA writes.
    pub fua: bool,
    /// Largest transfer in sectors that the hardware takes (`max_hw_sectors`).
    pub max_sectors: u32,
    /// Largest number of physical segments of a command.
    pub max_segments: u16,
}

impl Shape {
    /// Whether the sectors of `command` exist. A flush has none and always fits.
    #[inline]
    #[must_use]
    pub fn holds(&self, command: &Command) -> bool {
        let sectors = u64::from(command.sectors);
        sectors == 0 || command.sector.0.checked_add(sectors).is_some_and(|end| end <= self.capacity_sectors)
    }
}

/// A device model.
///
/// A command beyond the end of the device is accepted and ends with [`Status::IoError`].
pub trait Device: Send {
    /// The properties that do not change.
    fn shape(&self) -> &Shape;

    /// Takes a command at `now`, or refuses it. Calls come in the order of time.
    ///
    /// # Errors
    /// A [`Refusal`] if the command cannot be taken now; the driver will try again.
    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal>;

    /// An alarm of this model has come.
    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule);

    /// Whether it interrupts a CPU of its own choice. What completes commands by a timer, as the null block driver does, has
    /// that on the CPU that sent them.
    fn interrupts(&self) -> bool {
        true
    }

    /// What was traced of the device, the oldest first, if a tracer is around it.
    fn traced(&self) -> Option<&VecDeque<TraceEvent>> {
        None
    }
}
