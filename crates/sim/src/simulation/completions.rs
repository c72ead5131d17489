//! Commands that devices have completed: their interrupts, and the CPUs that the rest is done on.

use hoistway_blk::bio::BioFlags;
use hoistway_blk::caller::BlockQueue;
use hoistway_blk::ground::{CpuId, Local};
use hoistway_blk::queue::CompletionPlace;
use hoistway_blk::request::Rq;
use hoistway_blk::watch::Probe;
use hoistway_legacy::AnyQueue;

use super::Simulation;
use crate::cpu::Cpus;
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::events::{Event, Kind};
use crate::identity::{is_of_task, task_of};

/// In the place of a completion's setting: its interrupt has waited for others on the CPU that it came to.
const WAITED_FOR_INTERRUPTS: u32 = 1;
/// The same, and it passes its work on to another CPU, which may be busy, too.
const WAITED_TO_REDIRECT: u32 = 2;
/// It was passed on, and has waited for others there.
const REDIRECTED: u32 = 3;

impl<P: Probe> Simulation<'_, P> {
    /// A device has completed a command. `setting` says for what its interrupt has waited, if it has.
    #[inline]
    pub(super) fn complete(&mut self, disk: u32, tag: u32, setting: u32) {
        if setting != 0
            && self.cpus.may_delay_interrupts(self.now)
            && self.is_delayed_by_earlier_interrupts(disk, tag, setting)
        {
            return;
        }
        let may_wait = !matches!(setting, WAITED_FOR_INTERRUPTS | REDIRECTED);
        if may_wait && self.cpus.any_takes_interrupt(self.now) && self.interrupt_waits(disk, tag, setting) {
            return;
        }
        let SimulatedDisk { front, driver, section, is_used_by_tasks, interrupts, administration, .. } =
            &mut self.disks[disk as usize];
        let Some((rq, status)) = driver.finish(tag) else { return };
        let (restart, is_used_by_tasks, has_writes) =
            (driver.take_restart(), *is_used_by_tasks, administration.waits());
        let (interrupted, place) =
            interrupt_of(&rq, driver.completion_cpu_of_command(tag), (front, interrupts), &self.cpus);
        let payer = rq.bios.first().filter(|bio| is_of_task(bio)).map_or(self.last_submitter, task_of);
        let cpu = if setting == REDIRECTED || !is_used_by_tasks {
            place.cpu(interrupted)
        } else {
            self.cpus.complete(self.now, interrupted, place)
        };
        if setting == REDIRECTED {
            self.cpus.complete_redirected(self.now, cpu);
        }
        if cpu != interrupted
            && let Some(bio) = rq.bios.first().filter(|bio| is_of_task(bio))
        {
            self.tasks[task_of(bio) as usize].charge(self.now, self.cpus.redirection());
        }
        self.probe.enter(disk, None);
        self.meter.begin(self.now, cpu, *section);
        let mut cx = self.caller.cx::<Machine<P>>(self.clock.now, cpu, driver, &mut self.probe, &self.meter);
        front.complete(&mut cx, rq, status);
        let has_announced = !driver.schedule.is_empty();
        self.finish_device_call(disk, cpu, has_announced);
        if is_used_by_tasks {
            self.charge_lock_time_in_interrupt(cpu, payer);
        }
        if restart {
            self.run_all(disk, cpu);
        }
        if has_writes {
            self.poll_queue_writes(disk);
        }
    }

    /// Whether those before an interrupt have taken longer than they had when it was given its turn: then it comes later.
    #[cold]
    fn is_delayed_by_earlier_interrupts(&mut self, disk: u32, tag: u32, setting: u32) -> bool {
        let SimulatedDisk { front, driver, interrupts, .. } = &self.disks[disk as usize];
        let Some(rq) = driver.in_flight(tag) else { return false };
        let (interrupted, place) =
            interrupt_of(rq, driver.completion_cpu_of_command(tag), (front, interrupts), &self.cpus);
        let cpu = if setting == REDIRECTED { place.cpu(interrupted) } else { interrupted };
        let Some(turn) = self.cpus.is_late(self.now, cpu) else { return false };
        self.events.push(turn, Event::of(Kind::Complete, disk).about(tag).with_setting(setting));
        true
    }

    /// Whether the interrupt of a completion has to wait for others, on its CPU or on that which it passes its work on to: then it
    /// comes later.
    #[inline(never)]
    fn interrupt_waits(&mut self, disk: u32, tag: u32, setting: u32) -> bool {
        let SimulatedDisk { front, driver, interrupts, is_used_by_tasks: true, .. } = &self.disks[disk as usize] else {
            return false;
        };
        let Some(rq) = driver.in_flight(tag).filter(|rq| !rq.flags.contains(BioFlags::POLLED)) else { return false };
        let (interrupted, place) =
            interrupt_of(rq, driver.completion_cpu_of_command(tag), (front, interrupts), &self.cpus);
        let process_step_done = setting == WAITED_TO_REDIRECT;
        let waits_here = if process_step_done { None } else { self.cpus.interrupt_waits(self.now, interrupted, place) };
        let (turn, setting) = match (waits_here, place) {
            (Some(turn), CompletionPlace::Redirected(_)) => (turn, WAITED_TO_REDIRECT),
            (Some(turn), _) => (turn, WAITED_FOR_INTERRUPTS),
            (None, CompletionPlace::Redirected(to)) => {
                let Some(turn) = self.cpus.redirect_to_busy_cpu(self.now, interrupted, to) else { return false };
                (turn, REDIRECTED)
            }
            (None, _) => return false,
        };
        self.events.push(turn, Event::of(Kind::Complete, disk).about(tag).with_setting(setting));
        true
    }
}

/// The CPU that the completion of a request interrupts, and where its work is done. Each hardware queue has one interrupt; a
/// device without any completes where a command was sent from.
#[inline(always)]
fn interrupt_of(
    rq: &Rq,
    sender: Option<CpuId>,
    (front, interrupts): (&AnyQueue<Local>, &[CpuId]),
    cpus: &Cpus,
) -> (CpuId, CompletionPlace) {
    if rq.flags.contains(BioFlags::POLLED) {
        // Its submitter finds it, and no CPU is interrupted.
        return (rq.ctx, CompletionPlace::Interrupt);
    }
    let interrupted = sender.unwrap_or_else(|| interrupts[rq.hctx.index()]);
    (interrupted, front.completion_place(rq, interrupted, |one, other| cpus.share_cache(one, other)))
}
