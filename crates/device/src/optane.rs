//! An SSD with phase-change memory: low, symmetric latency, no erase blocks and so no garbage collection.
//!
//! Used by: `preset`.
//! Tests: `crates/device/tests/exact.rs`, `crates/device/tests/models.rs`.
//!
//! A command passes a serial front end; its pages of 4 KiB then go to the channels that contain them, each of which
//! does one operation at a time, first come, first served. A write is durable when it completes, so a flush does
//! nothing. All times are known at submission, so there are no alarms and no allocations.

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, UniformTime, from_us};

/// The parameters of an [`Optane`] drive: the `[optane]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptaneParameters {
    /// Time from the submission until the command is at the drive, us.
    pub host_to_device_us: f64,
    /// Time from the drive's completion until the host sees it, us.
    pub device_to_host_us: f64,
    /// Time that a read of up to 4 KiB occupies the front end, us.
    pub read_command_us: f64,
    /// Time that any other command of up to 4 KiB occupies the front end, us.
    pub write_command_us: f64,
    /// Front-end transfer rate of a read beyond 4 KiB, megabytes (10^6 bytes) per second.
    pub read_mb_per_s: f64,
    /// Front-end transfer rate of a write beyond 4 KiB, megabytes (10^6 bytes) per second.
    pub write_mb_per_s: f64,
    /// Number of independent channels.
    pub channels: u32,
    /// Time in which a channel reads or writes 4 KiB, us.
    pub access_us: f64,
    /// The time is drawn uniformly from plus or minus this percentage.
    pub access_jitter_percent: f64,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Optane {
    shape: Shape,
    inbound: Nanos,
    outbound: Nanos,
    read_command: Nanos,
    write_command: Nanos,
    /// Transfer time of a sector beyond 4 KiB, ns: of a read, of a write.
    sector_ns: [f64; 2],
    access: UniformTime,
    front_end_free_at: Instant,
    /// When each channel has completed all its work.
    channels: Vec<Instant>,
    random: Random,
}

/// Sectors of a page.
const PAGE_SECTORS: u64 = 8;

impl Optane {
    /// An idle drive of this shape. `seed` determines all its random numbers.
    #[must_use]
    pub fn new(shape: Shape, parameters: &OptaneParameters, seed: u64) -> Optane {
        let sector_ns = |mb_per_s: f64| SECTOR_BYTES as f64 * 1e3 / mb_per_s;
        Optane {
            shape,
            inbound: from_us(parameters.host_to_device_us),
            outbound: from_us(parameters.device_to_host_us),
            read_command: from_us(parameters.read_command_us),
            write_command: from_us(parameters.write_command_us),
            sector_ns: [sector_ns(parameters.read_mb_per_s), sector_ns(parameters.write_mb_per_s)],
            access: UniformTime::around(from_us(parameters.access_us), parameters.access_jitter_percent),
            front_end_free_at: Instant::ZERO,
            channels: vec![Instant::ZERO; parameters.channels.max(1) as usize],
            random: Random::from_seed(seed),
        }
    }

    /// Occupies the front end. Returns when the command has passed.
    #[inline]
    fn pass_front_end(&mut self, at: Instant, is_read: bool, sectors: u32) -> Instant {
        let command = if is_read { self.read_command } else { self.write_command };
        let extra_sectors = f64::from(sectors.saturating_sub(PAGE_SECTORS as u32));
        let extra = Nanos((extra_sectors * self.sector_ns[usize::from(!is_read)]) as u64);
        self.front_end_free_at = self.front_end_free_at.max(at) + command + extra;
        self.front_end_free_at
    }

    /// When the channels have completed all pages of a transfer.
    #[inline]
    fn access(&mut self, at: Instant, command: &Command) -> Instant {
        let last = command.sector.0 + u64::from(command.sectors.max(1)) - 1;
        let channels = self.channels.len() as u64;
        let mut done = at;
        for page in command.sector.0 / PAGE_SECTORS..=last / PAGE_SECTORS {
            let channel = &mut self.channels[(page % channels) as usize];
            *channel = (*channel).max(at) + self.access.draw(&mut self.random);
            done = done.max(*channel);
        }
        done
    }
}

impl Device for Optane {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let at = now + self.inbound;
        let (status, done) = match command.op {
            _ if !self.shape.holds(&command) => (Status::IoError, self.pass_front_end(at, false, 0)),
            Op::Read | Op::Write => {
                let transferred_at = self.pass_front_end(at, command.op == Op::Read, command.sectors);
                (Status::Ok, self.access(transferred_at, &command))
            }
            Op::Flush | Op::Discard | Op::WriteZeroes => (Status::Ok, self.pass_front_end(at, false, 0)),
        };
        schedule.end(done + self.outbound, command.tag, status);
        Ok(())
    }
}
