//! The interface of device models: a model accepts commands and reports when each completes.
//!
//! Used by: `flash`, `middleware`, `preset`, `null`, `optane` and others; crates `sim`, `engine`, `experiment`.
//! Tests: `crates/device/tests/exact.rs`.
//!
//! A model lives in virtual time and never reads a clock: every call gets the time. It reports its completions in a
//! [`Schedule`], which the owner of the clock empties after each call. No scheduler name or tunable ever reaches a
//! model.

use std::collections::VecDeque;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Sector};
use hoistway_blk::request::{Arbitration, QueueClass, Transport};

/// A command as the driver sends it to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The driver's number for it, unique among the commands in flight and less than `hw_queues * queue_depth`, or than
    /// `queue_depth` with host-wide tags. It is returned in the [`Completion`].
    pub tag: u32,
    /// The hardware queue it was sent on, less than [`Shape::hw_queues`].
    pub queue: u16,
    /// The operation.
    pub op: Op,
    /// First sector (512 bytes).
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Force unit access: a write completes only when it is on stable media.
    pub fua: bool,
}

/// A device's response to a command that it cannot accept now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Try again later; there is no guarantee when (RESOURCE).
    Busy,
    /// A completion of this device will make room (DEV_RESOURCE).
    UntilCompletion,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// When the host sees it.
    pub at: Instant,
    /// The tag of the command.
    pub tag: u32,
    /// The result.
    pub status: Status,
}

/// A command that a device got, or its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// It accepted a command.
    Taken(Instant, Command),
    /// It refused a command.
    Refused(Instant, Command, Refusal),
    /// It reported at that time how and when a command ends.
    Ends(Instant, Completion),
}

/// Events that a model schedules. Their times are not before the `now` of the call.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Commands that end, each exactly once.
    pub completions: Vec<Completion>,
    /// Times at which the model wants [`Device::wake`] to be called, each with a number of its choice. An alarm cannot
    /// be cancelled: a model ignores alarms that it no longer needs.
    pub alarms: Vec<(Instant, u32)>,
}

impl Schedule {
    /// Whether nothing is scheduled.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.completions.is_empty() && self.alarms.is_empty()
    }

    /// Ends command `tag` successfully at `at`.
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
    /// Commands per hardware queue (driver tags), or in total with host-wide tags.
    pub queue_depth: u32,
    /// Whether all hardware queues share their driver tags.
    pub host_wide_tags: bool,
    /// Whether its driver asks for no scheduler by default.
    pub wants_no_scheduler: bool,
    /// Whether the host drives it as a SCSI disk, which includes SATA disks: with a budget of `queue_depth` commands
    /// that is taken before a request is dispatched from the scheduler.
    pub scsi: bool,
    /// Whether it is a rotating disk.
    pub rotational: bool,
    /// Whether it has a volatile write cache, so that flushes have an effect.
    pub write_cache: bool,
    /// Whether it supports FUA writes.
    pub fua: bool,
    /// Maximum transfer of the hardware in sectors (`max_hw_sectors`).
    pub max_sectors: u32,
    /// Maximum physical segments of a command.
    pub max_segments: u16,
    /// Its weighted round robin between classes of hardware queues, if it has that.
    pub arbitration: Option<Arbitration>,
    /// The transport between the host's block layer and it, if there is one.
    pub transport: Option<Transport>,
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
/// A command beyond the end of the device is accepted and ends with [`Status::IoError`]. No method has a default: a wrapper
/// that forgot to forward it would silently change the device.
pub trait Device: Send {
    /// The constant properties.
    fn shape(&self) -> &Shape;

    /// Accepts a command at `now`, or refuses it. Calls come in the order of time.
    ///
    /// # Errors
    /// A [`Refusal`] if the command cannot be accepted now; the driver will retry.
    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal>;

    /// The device that it wraps, if it does: what it does not do itself, that one does.
    fn inner(&self) -> Option<&dyn Device> {
        None
    }

    /// The same, to change it.
    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        None
    }

    /// An alarm of this model has fired.
    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        let _ = (now, alarm, schedule);
    }

    /// Sets the class of each hardware queue and the weights of the classes high, medium and low; `None`: it arbitrates as at the start. A
    /// device whose [`Shape::arbitration`] is missing ignores it.
    fn arbitrate(&mut self, classes: &[QueueClass], weights: Option<[u16; 3]>) {
        if let Some(inner) = self.inner_mut() {
            inner.arbitrate(classes, weights);
        }
    }

    /// Whether it interrupts a CPU of its own choice. A device that completes commands by a timer, such as the null block
    /// driver, completes them on the CPU that submitted them.
    fn interrupts(&self) -> bool {
        self.inner().is_none_or(Device::interrupts)
    }

    /// The traced events, oldest first, if the device has a tracer.
    fn traced(&self) -> Option<&VecDeque<TraceEvent>> {
        self.inner()?.traced()
    }
}
