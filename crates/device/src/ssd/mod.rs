//! A SATA SSD that is limited by its command stage: the smallest model that explains a published benchmark.
//!
//! Used by: `preset`.
//! Tests: below, `crates/device/src/ssd/debt.rs`, `crates/device/tests/conservation.rs`, `crates/device/tests/exact_disks.rs`.
//!
//! Its parts:
//! 1. **One serial stage**, first come, first served, for controller and link. It determines the throughput, whatever
//!    the queue depth. The time of the stage includes the transfer of the first 4 KiB; longer transfers occupy it
//!    longer.
//! 2. **Writes are acknowledged** directly after it; **reads add a flash read** that overlaps with everything else.
//! 3. **Latency on both sides**: a command takes some time to reach the drive, and its completion to reach the host.
//! 4. **Pauses for garbage collection** ([`debt`]): for some tens of milliseconds the drive completes nothing, if
//!    random writes have come faster than it cleans up for long enough. It continues to accept commands meanwhile, as
//!    many as its queue holds, and completes all of them at once at the end of the pause.
//!
//! Flushes wait for all earlier commands, and nothing passes them. Discards and write-zeroes only change the map, so
//! they cost one (cheap) command whatever their length.
//!
//! The mechanisms were found by fitting the published SATA SSD table (habr), row `none`; the presets contain the
//! numbers. No figure of that row shows that completions are held back and come together: see docs/internals/devices.md. The
//! number of commands inside the drive (NCQ, 32) is the driver's number of tags, so the model needs no queue: since the
//! stage is first come, first served, every completion is known at submission. A command costs one random number and a
//! few additions, without alarms or allocations.

mod debt;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::{Random, UniformTime, from_us};

use debt::Debt;
pub use debt::GarbageCollection;

/// Sectors whose transfer is part of [`SsdParameters::serial_stage_us`]: 4 KiB.
const INCLUDED_SECTORS: u32 = 8;

/// The parameters of an [`Ssd`]: the `[ssd]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdParameters {
    /// Time from the submission until the command is at the drive, us.
    pub host_to_device_us: f64,
    /// Time that a read or write of up to 4 KiB occupies the serial stage, us.
    pub serial_stage_us: f64,
    /// Transfer rate beyond 4 KiB, megabytes (10^6 bytes) per second.
    pub transfer_mb_per_s: f64,
    /// Time from the end of the stage until a command other than a read is acknowledged, us.
    pub acknowledge_us: f64,
    /// Time from the end of the stage until the data of a read has arrived, us.
    pub flash_read_us: f64,
    /// The flash read is drawn uniformly from plus or minus this percentage.
    pub flash_read_jitter_percent: f64,
    /// Time that a flush occupies the stage after all earlier commands are done, us. A FUA write is acknowledged later
    /// by the same time.
    pub flush_us: f64,
    /// Time that a discard or write-zeroes occupies the stage, us.
    pub discard_us: f64,
    /// Time from the drive's completion until the host sees it, us.
    pub device_to_host_us: f64,
    /// The parameters of pauses; without it there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc: Option<GarbageCollection>,
}

/// The model.
#[derive(Clone, Debug)]
pub struct Ssd {
    shape: Shape,
    /// From the host to the drive.
    inbound: Nanos,
    /// Stage time of a transfer of up to 4 KiB.
    stage: Nanos,
    /// Stage time of each sector beyond 4 KiB, ns in fixed point with [`FRACTION_BITS`].
    sector_fixed_ns: u64,
    /// From the stage to the acknowledgement.
    acknowledge: Nanos,
    /// From the stage to the data of a read.
    flash_read: UniformTime,
    /// Stage time of a flush, which FUA adds to a write.
    flush: Nanos,
    /// Stage time of a discard or write-zeroes.
    discard: Nanos,
    /// From the drive to the host.
    outbound: Nanos,
    /// The state of garbage collection, if it can pause the drive.
    debt: Option<Debt>,
    /// When the stage has completed all its work.
    stage_free_at: Instant,
    /// Nothing completes before this time.
    paused_until: Instant,
    /// When the drive has completed all commands.
    all_done: Instant,
    random: Random,
}

/// Fractional bits of [`Ssd::sector_fixed_ns`]: at 550 MB/s a sector takes 930.9 ns, and the error for a megabyte must
/// stay below a microsecond.
const FRACTION_BITS: u32 = 16;

impl Ssd {
    /// An idle drive of this shape without debt. `seed` determines all its random numbers.
    #[must_use]
    pub fn new(shape: Shape, parameters: &SsdParameters, seed: u64) -> Ssd {
        let sector_ns = SECTOR_BYTES as f64 * 1e3 / parameters.transfer_mb_per_s;
        Ssd {
            shape,
            inbound: from_us(parameters.host_to_device_us),
            stage: from_us(parameters.serial_stage_us),
            sector_fixed_ns: (sector_ns * f64::from(1_u32 << FRACTION_BITS)).round() as u64,
            acknowledge: from_us(parameters.acknowledge_us),
            flash_read: UniformTime::around(from_us(parameters.flash_read_us), parameters.flash_read_jitter_percent),
            flush: from_us(parameters.flush_us),
            discard: from_us(parameters.discard_us),
            outbound: from_us(parameters.device_to_host_us),
            debt: parameters.gc.as_ref().map(Debt::new),
            stage_free_at: Instant::ZERO,
            paused_until: Instant::ZERO,
            all_done: Instant::ZERO,
            random: Random::from_seed(seed),
        }
    }

    /// Stage time of a read or write.
    #[inline]
    fn transfer(&self, sectors: u32) -> Nanos {
        let Some(extra_sectors @ 1..) = sectors.checked_sub(INCLUDED_SECTORS) else { return self.stage };
        let extra_ns = (u128::from(extra_sectors) * u128::from(self.sector_fixed_ns)) >> FRACTION_BITS;
        self.stage + Nanos(u64::try_from(extra_ns).unwrap_or(u64::MAX))
    }
}

impl Device for Ssd {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let begin = self.stage_free_at.max(now + self.inbound);
        let mut status = Status::Ok;
        let mut pause = Nanos::ZERO;
        let (stage_end, done) = match command.op {
            _ if !self.shape.holds(&command) => {
                status = Status::IoError;
                let end = begin + self.stage;
                (end, end + self.acknowledge)
            }
            Op::Read => {
                let end = begin + self.transfer(command.sectors);
                (end, end + self.flash_read.draw(&mut self.random))
            }
            Op::Write => {
                let end = begin + self.transfer(command.sectors);
                if let Some(debt) = &mut self.debt {
                    pause = debt.record_write(end, command.sector, command.sectors, &mut self.random);
                }
                let flush_time = if command.fua { self.flush } else { Nanos::ZERO };
                (end, end + self.acknowledge + flush_time)
            }
            Op::Discard | Op::WriteZeroes => {
                let end = begin + self.discard;
                (end, end + self.acknowledge)
            }
            Op::Flush => {
                let end = begin.max(self.all_done) + self.flush;
                (end, end + self.acknowledge)
            }
        };
        self.stage_free_at = stage_end;
        // The command that triggers a pause completes before it.
        let done = done.max(self.paused_until);
        if pause != Nanos::ZERO {
            self.paused_until = self.paused_until.max(stage_end) + pause;
        }
        self.all_done = self.all_done.max(done);
        schedule.end(done + self.outbound, command.tag, status);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::ground::Sector;

    #[test]
    fn a_paused_drive_accepts_its_queue_depth_and_completes_it_after_the_pause() {
        let shape = crate::Preset::builtin("intel-s3520-1600gb").unwrap().shape();
        let gc = GarbageCollection {
            background_pages_per_s: 1.0,
            threshold_pages: 1.5,
            stall_ms: 10.0,
            stall_shortening_percent: 0.0,
            erased_gb: None,
        };
        let parameters = SsdParameters {
            host_to_device_us: 0.0,
            serial_stage_us: 20.0,
            transfer_mb_per_s: 500.0,
            acknowledge_us: 0.0,
            flash_read_us: 100.0,
            flash_read_jitter_percent: 0.0,
            flush_us: 20.0,
            discard_us: 20.0,
            device_to_host_us: 0.0,
            gc: Some(gc),
        };
        let mut drive = Ssd::new(shape, &parameters, 1);
        let mut schedule = Schedule::default();
        for tag in 0..6 {
            let op = if tag == 4 { Op::Read } else { Op::Write };
            let sector = Sector(u64::from(tag) * 1000);
            let command = Command { tag, queue: 0, op, sector, sectors: 8, fua: false };
            drive.submit(Instant::ZERO, command, &mut schedule).unwrap();
        }
        let ends: Vec<u64> = schedule.completions.iter().map(|end| end.at.0 / 1000).collect();
        // The second write triggers a pause from 40 us on; the fourth triggers another one, which is added.
        assert_eq!(ends, [20, 40, 10_040, 10_040, 20_040, 20_040]);
    }
}
