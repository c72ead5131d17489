//! The driver between the block layer and a device model.
//!
//! Used by: `simulation`, `page_cache`, `disk`.
//! Tests: below.

use hoistway_blk::bio::Status;
use hoistway_blk::drive::{Answer, Driver, Refusal};
use hoistway_blk::ground::{CpuId, HctxId, Instant, Now};
use hoistway_blk::request::{CpuMap, QueueClass, Rq};
use hoistway_device::{self as device, Command, Device, Preset, Schedule, Shape};

use crate::io_thread::IoThread;
use crate::locks::LockMeter;
use crate::transport::TransportWorkers;

/// What executes the commands of a disk.
pub(crate) enum Backing {
    /// A device model.
    Device(Box<dyn Device>),
    /// A device model behind a transport.
    Transport(Box<TransportWorkers>),
    /// The I/O thread of a virtual disk.
    Thread(Box<IoThread>),
}

/// The environment of the block layer in a simulation.
pub(crate) type Machine<P> = (DiskDriver, P, LockMeter);

/// A disk's driver: its in-flight requests and, for SCSI disks, its budget.
pub(crate) struct DiskDriver {
    pub(crate) backing: Backing,
    /// Completions and alarms that the model has announced and the event loop has not yet taken.
    pub(crate) schedule: Schedule,
    /// The submitting CPU of each command, by tag, if the device completes commands there.
    submitting_cpus: Option<Vec<CpuId>>,
    /// In-flight commands that will fail, by tag: few, if any.
    pub(crate) failed: Vec<(u32, Status)>,
    /// Requests at the device, by command tag.
    in_flight: Vec<Option<Rq>>,
    /// Distance between the command tags of one hardware queue and those of the next; 0 if all share one tag space.
    tag_stride: u32,
    /// The budget; `None` for drivers without one.
    budget: Option<Budget>,
    /// The class of each hardware queue, if they have classes.
    classes: Vec<QueueClass>,
}

struct Budget {
    taken: u32,
    depth: u32,
    /// Whether a budget was refused: the next completion then runs all hardware queues (BL-91).
    was_refused: bool,
}

impl Backing {
    /// The device of a preset, behind its transport if it has one.
    pub(crate) fn of(preset: &Preset, seed: u64) -> Backing {
        let device = preset.build(seed);
        match preset.transport() {
            Some(parameters) => Backing::Transport(Box::new(TransportWorkers::new(device, parameters))),
            None => Backing::Device(device),
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        match self {
            Backing::Device(device) => device.shape(),
            Backing::Transport(workers) => workers.device.shape(),
            Backing::Thread(thread) => &thread.shape,
        }
    }

    fn interrupts(&self) -> bool {
        match self {
            Backing::Device(device) => device.interrupts(),
            Backing::Transport(workers) => workers.device.interrupts(),
            Backing::Thread(_) => true,
        }
    }

    #[inline]
    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), device::Refusal> {
        match self {
            Backing::Device(device) => device.submit(now, command, schedule),
            Backing::Transport(workers) => {
                workers.queue(now, command, schedule);
                Ok(())
            }
            Backing::Thread(thread) => {
                thread.queue(now, command, schedule);
                Ok(())
            }
        }
    }
}

impl DiskDriver {
    /// `map` is that of the disk's queue.
    pub(crate) fn new(mut backing: Backing, map: &CpuMap) -> Self {
        if let Backing::Transport(workers) = &mut backing {
            workers.attach(map);
        }
        let shape = backing.shape();
        let queue_depth = shape.queue_depth;
        let budget = shape.scsi.then_some(Budget { taken: 0, depth: queue_depth, was_refused: false });
        let tag_stride = if shape.host_wide_tags { 0 } else { queue_depth };
        let tags = u32::from(shape.hw_queues - 1) * tag_stride + queue_depth;
        DiskDriver {
            submitting_cpus: (!backing.interrupts()).then(|| vec![CpuId(0); tags as usize]),
            schedule: Schedule::default(),
            failed: Vec::new(),
            in_flight: (0..tags).map(|_| None).collect(),
            tag_stride,
            budget,
            classes: map.classes().to_vec(),
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

    /// The CPU that submitted a command, if the device completes it there.
    #[inline]
    pub(crate) fn completion_cpu_of_command(&self, tag: u32) -> Option<CpuId> {
        self.submitting_cpus.as_ref().map(|submitting_cpus| submitting_cpus[tag as usize])
    }

    /// The request at the device with this command tag.
    #[inline]
    pub(crate) fn in_flight(&self, tag: u32) -> Option<&Rq> {
        self.in_flight[tag as usize].as_ref()
    }

    /// Removes a completed request from the in-flight table. Returns it with its status.
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
        let index = self.failed.iter().position(|&(other, _)| other == tag);
        index.map_or(Status::Ok, |index| self.failed.swap_remove(index).1)
    }

    /// Whether all hardware queues have to run now, because a budget was refused before; resets it.
    #[inline]
    pub(crate) fn take_restart(&mut self) -> bool {
        self.budget.as_mut().is_some_and(|budget| std::mem::take(&mut budget.was_refused))
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
            budget.was_refused = true;
            false
        }
    }

    #[inline]
    fn put_budget(&mut self, _hctx: HctxId) {
        if let Some(budget) = &mut self.budget {
            budget.taken = budget.taken.saturating_sub(1);
        }
    }

    fn arbitrate(&mut self, weights: Option<[u16; 3]>) {
        if let Backing::Device(device) = &mut self.backing {
            device.arbitrate(&self.classes, weights);
        }
    }

    #[inline(always)]
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
    use super::*;

    fn driver(device: &str) -> DiskDriver {
        DiskDriver::new(Backing::of(&Preset::builtin(device).unwrap(), 1), &CpuMap::new(1, [1, 0, 0]))
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
