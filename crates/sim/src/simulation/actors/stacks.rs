//! Stacked devices in the event loop: bios of processes and of the devices' threads for the disks below, and completions.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::Submitted;
use hoistway_blk::ground::{CpuId, Waiter};
use hoistway_blk::watch::Probe;

use super::{BioEndContext, Simulation, opens_plug, wake};
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::events::{Event, Kind};
use crate::identity::{Sleeper, task_of};
use crate::stacks::WorkStep;

impl<P: Probe> Simulation<'_, P> {
    /// Submits the current bio of a process that uses stacked devices: the bios for the disks below, or the bio itself if
    /// its file is a disk.
    #[cold]
    pub(in super::super) fn submit_through_layers(&mut self, number: u32) -> Submitted {
        let task = &mut self.tasks[number as usize];
        let Some(layers) = &mut self.layers else { return Submitted::Done };
        let file = task.current_disk.disk;
        let mut has_begun = !layers.has(file);
        if !has_begun && let Some(bio) = task.current_disk.submitter.withdraw() {
            layers.begin(self.now, (number, task.cpu), file, bio);
        }
        // The bios of one call of the top have a plug in common on kernels with implicit ones.
        let has_several = layers.has_several(number);
        let mut opened = false;
        loop {
            let task = &mut self.tasks[number as usize];
            if !has_begun {
                let next = self.layers.as_mut().and_then(|layers| layers.next_of_task(number));
                let Some((disk, bio)) = next else { break };
                task.switch_to(disk);
                task.current_disk.submitter.begin(bio);
            }
            has_begun = false;
            let (disk, cpu, now) = (task.current_disk.disk, task.cpu, self.clock.now);
            let device = &mut self.disks[disk as usize];
            let is_throttled = device.throttling.is_some();
            if is_throttled && device.throttles(self.now, task) {
                self.schedule_release(disk);
                continue;
            }
            self.last_submitter = number;
            let SimulatedDisk { queue, driver, plug_use, section, .. } = device;
            self.meter.begin(self.now, cpu, *section);
            if task.recorded_plug().unwrap_or_else(|| opens_plug(*plug_use, task.call_size())) {
                task.current_disk.submitter.plug();
            } else if has_several && queue.generation().unplugged_runs_inline {
                opened = true;
                task.current_disk.submitter.plug();
            }
            self.probe.enter(disk, Some(Waiter(number)));
            let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
            let submitted = task.current_disk.submitter.make_progress(queue, &mut cx);
            self.settle(disk, cpu);
            self.charge_lock_time(cpu, number);
            if submitted == Submitted::Parked {
                if is_throttled {
                    self.disks[disk as usize].tags_ran_out();
                }
                self.flush_other_plugs(number);
                return Submitted::Parked;
            }
        }
        if opened {
            self.flush_plugs(number);
        }
        self.finish_stacked_bios();
        Submitted::Done
    }

    /// Runs the thread of a stacked device.
    #[cold]
    pub(super) fn run_stack_thread(&mut self, layer: u32) {
        if let Some(layers) = &mut self.layers {
            layers.work(self.now, layer);
        }
        while self.submit_from_thread(layer) == Some(Submitted::Done) {}
        while let Some(next) = self.layers.as_mut().and_then(|layers| layers.thread(layer).next_plugged()) {
            let (disk, cpu) = (next.disk, CpuId(0));
            let SimulatedDisk { queue, driver, section, .. } = &mut self.disks[disk as usize];
            self.meter.begin(self.now, cpu, *section);
            self.probe.enter(disk, None);
            let mut cx = self.caller.cx::<Machine<P>>(self.clock.now, cpu, driver, &mut self.probe, &self.meter);
            next.submitter.unplug(queue, &mut cx);
            self.settle(disk, cpu);
        }
        self.finish_stacked_bios();
    }

    /// Submits the next bio of a thread; `None` if it has none.
    fn submit_from_thread(&mut self, layer: u32) -> Option<Submitted> {
        let cpu = CpuId(0);
        let next = self.layers.as_mut()?.thread(layer).next_disk()?;
        let disk = next.disk;
        let SimulatedDisk { queue, driver, section, throttling, .. } = &mut self.disks[disk as usize];
        if let Some(throttling) = throttling.as_mut().filter(|_| !next.submitter.is_parked())
            && throttling.throttles(self.now, queue, &mut next.submitter)
        {
            self.schedule_release(disk);
            return Some(Submitted::Done);
        }
        self.meter.begin(self.now, cpu, *section);
        self.probe.enter(disk, None);
        next.submitter.plug();
        let mut cx = self.caller.cx::<Machine<P>>(self.clock.now, cpu, driver, &mut self.probe, &self.meter);
        let submitted = next.submitter.make_progress(queue, &mut cx);
        if let Some(throttling) = throttling.as_mut().filter(|_| submitted == Submitted::Parked) {
            throttling.tags_ran_out();
        }
        self.settle(disk, cpu);
        Some(submitted)
    }

    /// A CPU begins or ends to encrypt or decrypt.
    #[cold]
    pub(super) fn run_crypt_work(&mut self, number: u32) {
        let Simulation { layers: Some(layers), cpus, events, now, .. } = self else { return };
        let (cpu, mut work) = match layers.work_step(number) {
            WorkStep::Begin(cpu, time) => {
                let cpu = cpu.unwrap_or_else(|| cpus.first_free(*now));
                (cpu, cpus.add_work(*now, cpu, time))
            }
            WorkStep::Check(cpu, mut work) => {
                if cpus.is_done(cpu, &mut work) {
                    layers.work_ended(number);
                    return self.finish_stacked_bios();
                }
                (cpu, work)
            }
            WorkStep::Nothing => return,
        };
        work.until = work.until.max(*now);
        layers.work_accepted(number, cpu, work);
        events.push(work.until, Event::new(Kind::Actor, Sleeper::CryptWork(number).waiter().0));
    }

    /// The thread of a stacked device slept for a request, and one is free.
    pub(super) fn wake_stack_thread(&mut self, layer: u32) {
        if let Some(layers) = &mut self.layers {
            layers.unpark(layer);
        }
        self.finish_stacked_bios();
    }

    /// Ends bios of processes whose parts ended in the last call, and schedules threads that have work.
    fn finish_stacked_bios(&mut self) {
        let Simulation { now, tasks, disks, cpus, events, page_cache, layers, flows, .. } = self;
        BioEndContext { now: *now, page_cache, tasks, disks, cpus, events, layers, flows }.finish_stacked_bios();
    }
}

impl BioEndContext<'_> {
    /// A part of a bio for a disk below a stacked device has completed. Returns whether a process has something to reap.
    pub(super) fn bio_of_stack_ended(&mut self, bio: &Bio, status: Status) -> bool {
        if let Some(layers) = self.layers {
            layers.disk_bio_ended(self.now, bio, status);
        }
        self.finish_stacked_bios()
    }

    fn finish_stacked_bios(&mut self) -> bool {
        let BioEndContext { now, tasks, disks, cpus, events, layers: Some(layers), flows, .. } = self else {
            return false;
        };
        let (now, mut has_woken) = (*now, false);
        while let Some((bio, status)) = layers.next_ended() {
            let task = &mut tasks[task_of(&bio) as usize];
            task.bio_ended(&bio, status);
            task.recorded_ended(now, &bio, flows);
            task.charge(now, cpus.completion());
            if task.can_reap() {
                has_woken = true;
                wake(now, task, cpus, events);
            }
        }
        while let Some((layer, disk)) = layers.next_called() {
            let at = disk.map_or(now, |disk| disks[disk as usize].worker_ready_at(now, cpus, events));
            events.push(at, Event::new(Kind::Actor, Sleeper::StackThread(layer).waiter().0));
        }
        while let Some((work, disk)) = layers.next_added_work() {
            let at = disk.map_or(now, |disk| disks[disk as usize].worker_ready_at(now, cpus, events));
            events.push(at, Event::new(Kind::Actor, Sleeper::CryptWork(work).waiter().0));
        }
        has_woken
    }
}
