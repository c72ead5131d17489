//! Completions of devices: their interrupts, and the CPUs that do the completion work.

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
use crate::identity::submitting_task;

/// Value of a completion's setting: its interrupt has waited behind others on the interrupted CPU.
const WAITED_FOR_INTERRUPTS: u32 = 1;
/// The same, and its work is redirected to another CPU, which may be busy, too.
const WAITED_TO_REDIRECT: u32 = 2;
/// Its work was redirected, and has waited behind interrupts of the other CPU.
const REDIRECTED: u32 = 3;

impl<P: Probe> Simulation<'_, P> {
    /// Handles the completion of a command. `setting` says what its interrupt has already waited for, 0 for nothing.
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
        let SimulatedDisk { queue, driver, is_used_by_tasks, interrupts, administration, throttling, .. } =
            &mut self.disks[disk as usize];
        let Some((rq, status)) = driver.finish(tag) else { return };
        let (restart, is_used_by_tasks, has_writes, has_limits) =
            (driver.take_restart(), *is_used_by_tasks, administration.waits(), throttling.is_some());
        let (interrupted, place) =
            interrupt_of(&rq, driver.completion_cpu_of_command(tag), (queue, interrupts), &self.cpus);
        let payer = rq.bios.first().and_then(submitting_task).unwrap_or(self.last_submitter);
        let cpu = if setting == REDIRECTED || !is_used_by_tasks {
            place.cpu(interrupted)
        } else {
            self.cpus.complete(self.now, interrupted, place)
        };
        if setting == REDIRECTED {
            self.cpus.complete_redirected(self.now, cpu);
        }
        if has_limits {
            self.completed_under_limits(disk, &rq);
        }
        if cpu != interrupted
            && let Some(task) = rq.bios.first().and_then(submitting_task)
        {
            self.tasks[task as usize].charge(self.now, self.cpus.redirection());
        }
        self.probe.enter(disk, None);
        let SimulatedDisk { queue, driver, section, .. } = &mut self.disks[disk as usize];
        self.meter.begin(self.now, cpu, *section);
        let mut cx = self.caller.cx::<Machine<P>>(self.clock.now, cpu, driver, &mut self.probe, &self.meter);
        queue.complete(&mut cx, rq, status);
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

    /// Whether earlier interrupts took longer than when this one's turn was reserved. If so, its event is scheduled again.
    #[cold]
    fn is_delayed_by_earlier_interrupts(&mut self, disk: u32, tag: u32, setting: u32) -> bool {
        let SimulatedDisk { queue, driver, interrupts, .. } = &self.disks[disk as usize];
        let Some(rq) = driver.in_flight(tag) else { return false };
        let (interrupted, place) =
            interrupt_of(rq, driver.completion_cpu_of_command(tag), (queue, interrupts), &self.cpus);
        let cpu = if setting == REDIRECTED { place.cpu(interrupted) } else { interrupted };
        let Some(turn) = self.cpus.delayed_start(self.now, cpu) else { return false };
        self.late.add(&mut self.events, turn, cpu, (disk, tag, setting));
        true
    }

    /// Late interrupts of a CPU are due: the first one is handled, the others wait for it.
    pub(super) fn late_interrupts(&mut self, group: u32) {
        while let Some((cpu, (disk, tag, setting))) = self.late.next(group) {
            if self.cpus.may_delay_interrupts(self.now)
                && let Some(turn) = self.cpus.delayed_start(self.now, cpu)
            {
                return self.late.delay(&mut self.events, group, turn);
            }
            self.late.take(group);
            self.complete(disk, tag, setting);
        }
    }

    /// Whether a completion interrupt has to wait for others, on its CPU or on the CPU that its work is redirected to. If so, its
    /// event is scheduled again.
    #[inline(never)]
    fn interrupt_waits(&mut self, disk: u32, tag: u32, setting: u32) -> bool {
        let SimulatedDisk { queue, driver, interrupts, is_used_by_tasks: true, .. } = &self.disks[disk as usize] else {
            return false;
        };
        let Some(rq) = driver.in_flight(tag).filter(|rq| !rq.flags.contains(BioFlags::POLLED)) else { return false };
        let (interrupted, place) =
            interrupt_of(rq, driver.completion_cpu_of_command(tag), (queue, interrupts), &self.cpus);
        let process_step_done = setting == WAITED_TO_REDIRECT;
        let turn_here = if process_step_done { None } else { self.cpus.interrupt_waits(self.now, interrupted, place) };
        let (turn, setting) = match (turn_here, place) {
            (Some(turn), CompletionPlace::Redirected(_)) => (turn, WAITED_TO_REDIRECT),
            (Some(turn), _) => (turn, WAITED_FOR_INTERRUPTS),
            (None, CompletionPlace::Redirected(to)) => {
                let Some(turn) = self.cpus.redirect_to_busy_cpu(self.now, interrupted, to) else { return false };
                (turn, REDIRECTED)
            }
            (None, _) => return false,
        };
        self.events.push(turn, Event::new(Kind::Complete, disk).with_detail(tag).with_setting(setting));
        true
    }
}

/// The CPU that the completion of a request interrupts, and the place of the completion work. Each hardware queue has one
/// interrupt; a device without interrupts completes on the submitting CPU.
#[inline(always)]
fn interrupt_of(
    rq: &Rq,
    completion_cpu: Option<CpuId>,
    (queue, interrupts): (&AnyQueue<Local>, &[CpuId]),
    cpus: &Cpus,
) -> (CpuId, CompletionPlace) {
    if rq.flags.contains(BioFlags::POLLED) {
        // The submitter polls for it, so no CPU is interrupted.
        return (rq.ctx, CompletionPlace::Interrupt);
    }
    let interrupted = completion_cpu.unwrap_or_else(|| interrupts[rq.hctx.index()]);
    (interrupted, queue.completion_place(rq, interrupted, |first, second| cpus.share_cache(first, second)))
}
