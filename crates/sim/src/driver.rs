//! The driver between the block layer and a device model.

use hoistway_blk::bio::Status;
use hoistway_blk::drive::{Answer, Driver, Refusal};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Now};
use hoistway_blk::request::Rq;
use hoistway_device::{self as device, Command, Device, Schedule, Shape};

use crate::io_thread::IoThread;
use crate::locks::LockMeter;

/// What carries the commands of a disk out.
pub(crate) enum Backing {
    /// A device model.
    Device(Box<dyn Device>),
    /// The thread behind a virtual disk.
    Thread(Box<IoThread>),
}

/// What is around the block layer of a simulated machine.
pub(crate) type Machine<P> = (DiskDriver, P, LockMeter);

/// A disk's driver: it keeps the requests that are in flight and, for SCSI disks, the budget.
pub(crate) struct DiskDriver {
    pub(crate) backing: Backing,
    /// What the model has announced and the event loop has not yet taken.
    pub(crate) schedule: Schedule,
    /// Where each command was sent from, if the device completes them there.
    submitting_cpus: Option<Vec<CpuId>>,
    /// Commands in flight that will end badly: few, if any.
    pub(crate) failed: Vec<(u32, Status)>,
    /// Requests at the device, by command tag.
    in_flight: Vec<Option<Rq>>,
    /// From the command tags of one hardware queue to those of the next; 0 if all share one space.
    tag_stride: u32,
    /// Pieces of budget that are out; `None` for drivers without.
    budget: Option<Budget>,
}

struct Budget {
    taken: u32,
    depth: u32,
    /// A request was refused: the next completion runs all hardware queues (BL-91).
    wanted: bool,
}

impl Backing {
    pub(crate) fn shape(&self) -> &Shape {
        match self {
            Backing::Device(device) => device.shape(),
            Backing::Thread(thread) => &thread.shape,
        }
    }

    fn interrupts(&self) -> bool {
        match self {
            Backing::Device(device) => device.interrupts(),
            Backing::Thread(_) => true,
        }
    }

    #[inline]
    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), device::Refusal> {
        match self {
            Backing::Device(device) => device.submit(now, command, schedule),
            Backing::Thread(thread) => {
                thread.queue(now, command, schedule);
                Ok(())
            }
        }
    }
}

impl DiskDriver {
    pub(crate) fn new(backing: Backing) -> Self {
        let shape = backing.shape();
        let queue_depth = shape.queue_depth;
        let budget = shape.scsi.then_some(Budget { taken: 0, depth: queue_depth, wanted: false });
        let tag_stride = if shape.host_wide_tags { 0 } else { queue_depth };
        let tags = u32::from(shape.hw_queues - 1) * tag_stride + queue_depth;
        DiskDriver {
            submitting_cpus: (!backing.interrupts()).then(|| vec![CpuId(0); tags as usize]),
            schedule: Schedule::default(),
            failed: Vec::new(),
            in_flight: (0..tags).map(|_| None).collect(),
            tag_stride,
            budget,
            backing,
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.backing.shape()
    }

    /// A CPU has sent commands, whose ends the device has announced.
    #[inline]
    pub(crate) fn record_submitting_cpu(&mut self, cpu: CpuId) {
        if let Some(submitting_cpus) = &mut self.submitting_cpus {
            for completion in &self.schedule.completions {
                submitting_cpus[completion.tag as usize] = cpu;
            }
        }
    }

    /// The CPU that a command was sent from, if it completes there.
    #[inline]
    pub(crate) fn completion_cpu_of_command(&self, tag: u32) -> Option<CpuId> {
        self.submitting_cpus.as_ref().map(|submitting_cpus| submitting_cpus[tag as usize])
    }

    /// The request at the device with this command tag.
    #[inline]
    pub(crate) fn in_flight(&self, tag: u32) -> Option<&Rq> {
        self.in_flight[tag as usize].as_ref()
    }

    /// Takes a finished request out of flight, and how it ended.
    #[inline]
    pub(crate) fn finish(&mut self, tag: u32) -> Option<(Rq, Status)> {
        let rq = self.in_flight[tag as usize].take()?;
        if let Some(budget) = &mut self.budget {
            budget.taken = budget.taken.saturating_sub(1);
        }
        Some((rq, if self.failed.is_empty() { Status::Ok } else { self.take_injected_failure(tag) }))
    }

    #[cold]
    fn take_injected_failure(&mut self, tag: u32) -> Status {
        let at = self.failed.iter().position(|&(other, _)| other == tag);
        at.map_or(Status::Ok, |at| self.failed.swap_remove(at).1)
    }

    /// Whether a refused dispatch wants all hardware queues to be run now.
    #[inline]
    pub(crate) fn take_restart(&mut self) -> bool {
        self.budget.as_mut().is_some_and(|budget| std::mem::take(&mut budget.wanted))
    }
}

impl Driver for DiskDriver {
    #[inline]
    fn get_budget(&mut self, _hctx: HctxId) -> bool {
        let Some(budget) = &mut self.budget else { return true };
        if budget.taken < budget.depth {
            budget.taken += 1;
            true
        } else {
            budget.wanted = true;
            false
        }
    }

    #[inline]
    fn put_budget(&mut self, _hctx: HctxId) {
        if let Some(budget) = &mut self.budget {
            budget.taken = budget.taken.saturating_sub(1);
        }
    }

    #[inline]
    fn queue_rq(&mut self, now: Now, rq: Rq, _last: bool) -> Answer {
        let Some(driver_tag) = rq.driver_tag else {
            return Answer::Done(rq, Status::IoError);
        };
        let tag = u32::from(rq.hctx.0) * self.tag_stride + driver_tag;
        let command = Command {
            tag,
            queue: rq.hctx.0,
            op: rq.op,
            sector: rq.sector,
            sectors: rq.sectors,
            fua: rq.flags.contains(hoistway_blk::bio::BioFlags::FUA),
        };
        match self.backing.submit(now.at, command, &mut self.schedule) {
            Ok(()) => {
                self.in_flight[tag as usize] = Some(rq);
                Answer::Queued
            }
            Err(device::Refusal::Busy) => Answer::Refused(rq, Refusal::Busy),
            Err(device::Refusal::UntilCompletion) => Answer::Refused(rq, Refusal::UntilCompletion),
        }
    }
}

#[cfg(test)]
mod tests {
    use hoistway_device::Preset;

    use super::*;

    fn driver(device: &str) -> DiskDriver {
        DiskDriver::new(Backing::Device(Preset::builtin(device).unwrap().build(1)))
    }

    #[test]
    fn a_scsi_disk_is_offered_only_its_depth_and_restarted_once_after_refusal() {
        let mut disk = driver("intel-s3520-1600gb");
        assert_eq!((0..100).filter(|_| disk.get_budget(HctxId(0))).count(), 32);
        assert!(disk.take_restart() && !disk.take_restart());
        disk.put_budget(HctxId(0));
        assert!(disk.get_budget(HctxId(0)) && !disk.take_restart() && !disk.get_budget(HctxId(0)));
        let mut drive = driver("samsung-980pro-1tb");
        assert!((0..5000).all(|_| drive.get_budget(HctxId(0))) && !drive.take_restart(), "its tags are enough");
    }
}
