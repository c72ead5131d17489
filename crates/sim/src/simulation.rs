//! The event loop: tasks, queues and devices in virtual time.
//!
//! Used by: crates `calibrate`, `evidence`, `experiment`, `observed`.
//! Tests: `crates/sim/src/simulation/late_interrupts.rs`, `crates/sim/tests/loads.rs`, `crates/sim/tests/statistics.rs`.

mod actors;
mod completions;
mod effects;
mod late_interrupts;
mod phases;
mod setup;
mod turns;

use std::sync::atomic::Ordering;

use hoistway_blk::caller::{Caller, Cx, Due, Submitted};
use hoistway_blk::ground::{CpuId, Instant, Local, Nanos, PlugUse, Waiter};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::schedulers::Registry;
use hoistway_blk::watch::Probe;
use hoistway_legacy::AnyQueue;
use hoistway_load::Load;
use hoistway_load::process::{Flows, Phases, SteadyStates};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::administration::{Fate, PendingAdministration, Write};
use crate::cgroups::Cgroups;
use crate::clock::TickClock;
use crate::cpu::{Cpus, Enqueued, NextTurn, StepEnd, Woken};
use crate::disk::SimulatedDisk;
use crate::driver::{Backing, Machine};
use crate::events::{Event, EventQueue, Kind};
use crate::host::Host;
use crate::identity::Sleeper;
use crate::locks::LockMeter;
use crate::page_cache::PageCache;
use crate::scenario::{Control, RunError, RunResult, RunSpec, Scenario};
use crate::stacks::Layers;
use crate::statistics::Statistics;
use crate::task::{NextAction, Task};
use crate::throttling::Hold;

/// Events between two checks of [`Control`].
const CHECK_EVERY: u32 = 1 << 14;

/// Runs a scenario.
///
/// # Errors
/// If the queue's configuration, the load or a tunable is invalid.
pub fn run(scenario: &Scenario<'_>, spec: &RunSpec, control: &Control) -> Result<RunResult, RunError> {
    Ok(run_with_statistics(scenario, spec, control)?.0)
}

/// Runs a scenario and also returns the statistics of its devices and cgroups.
///
/// # Errors
/// As for [`run`].
pub fn run_with_statistics(
    scenario: &Scenario<'_>,
    spec: &RunSpec,
    control: &Control,
) -> Result<(RunResult, Statistics), RunError> {
    Ok(Simulation::new(scenario, spec, Statistics::new(scenario, spec))?.run(control))
}

/// Runs a scenario with a probe, which is returned. Each type of probe builds the simulator anew, so programs use
/// `hoistway_observed::run_observed`.
///
/// # Errors
/// As for [`run`].
pub fn run_probed<P: Probe>(
    scenario: &Scenario<'_>,
    spec: &RunSpec,
    control: &Control,
    probe: P,
) -> Result<(RunResult, P), RunError> {
    Ok(Simulation::new(scenario, spec, probe)?.run(control))
}

struct Simulation<'a, P> {
    workload: &'a Load,
    now: Instant,
    clock: TickClock,
    events: EventQueue,
    late: late_interrupts::LateInterrupts,
    cpus: Cpus,
    /// CPU time to start a process: `release` without `startdelay`, `start` with it.
    release: Nanos,
    start: Nanos,
    /// Random stream for the order and wake-up times of processes that start together.
    starts: Xoshiro256PlusPlus,
    caller: Caller,
    /// Lock costs of the current call.
    meter: LockMeter,
    host: &'a Host,
    schedulers: &'a Registry,
    /// The last submitter, which is charged for workers.
    last_submitter: u32,
    disks: Vec<SimulatedDisk>,
    /// The cgroups that tasks are in.
    cgroups: Cgroups,
    /// The cgroups of the guests on the host, if there are guests.
    host_cgroups: Option<Cgroups>,
    /// Scheduled writes to files of `queue/`.
    writes: &'a [Write],
    /// The outcome of each write.
    fates: Vec<Fate>,
    /// Whether a CPU that inserts while another CPU does leaves its request to that one.
    may_delegate_insertion: bool,
    tasks: Vec<Task>,
    flows: Flows,
    steady: SteadyStates,
    phases: Phases,
    /// `None` if no process does buffered I/O.
    page_cache: Option<Box<PageCache>>,
    /// `None` if there are no stacked devices.
    layers: Option<Box<Layers>>,
    ios: u64,
    probe: P,
}

impl<'a, P: Probe> Simulation<'a, P> {
    fn run(mut self, control: &Control) -> (RunResult, P) {
        let mut partial = false;
        let mut until_check = CHECK_EVERY;
        for (index, write) in self.writes.iter().enumerate() {
            self.events.push(Instant::ZERO + write.at, Event::new(Kind::Write, index as u32));
        }
        self.start_actors();
        self.start_tasks();
        'time: while self.phases.is_running() {
            let Some((at, event)) = self.events.pop() else { break };
            self.now = at;
            self.clock.advance(at);
            self.event(event);
            until_check -= 1;
            if until_check == 0 {
                until_check = CHECK_EVERY;
                control.reached_ns.store(self.now.0, Ordering::Relaxed);
                if control.cancelled.load(Ordering::Relaxed) {
                    partial = true;
                    break 'time;
                }
            }
        }
        control.reached_ns.store(self.now.0, Ordering::Relaxed);
        let now = self.now;
        let refused = self.disks.iter_mut().flat_map(|disk| disk.administration.refused.drain(..)).collect();
        let (io_cost, io_latency) = (self.io_cost_summaries(), self.io_latency_summaries());
        // Disks are dropped before their waiters, and lower disks before the virtual disks on them.
        while self.disks.pop().is_some() {}
        let result = RunResult {
            processes: self.tasks.into_iter().map(|task| task.into_result(now, &self.steady)).collect(),
            simulated: Nanos(now.0),
            ios: self.ios,
            locks: self.meter.used(),
            refused,
            fates: self.fates,
            page_cache: self.page_cache.map(|cache| cache.into_summary()),
            io_cost,
            io_latency,
            partial,
        };
        (result, self.probe)
    }

    /// The host's disks, to whose files in `queue/` the scheduled writes go.
    fn host_disks(&self) -> std::ops::Range<usize> {
        let first = if self.host_cgroups.is_some() { self.workload.files.len() } else { 0 };
        first..self.disks.len()
    }

    /// Tries the pending writes to the files of a device's queue.
    #[cold]
    fn poll_queue_writes(&mut self, disk: u32) {
        let now = self.clock.now;
        self.probe.enter(disk, None);
        self.begin_call(disk, CpuId(0));
        let device = &mut self.disks[disk as usize];
        let mut cx = self.caller.cx::<Machine<P>>(now, CpuId(0), &mut device.driver, &mut self.probe, &self.meter);
        let (switched, retry) = device.administration.make_progress(&mut cx, &device.queue, &mut self.fates);
        if switched {
            device.section = self.meter.section_cost(self.host, self.schedulers, device.queue.scheduler());
            let host_cgroups = self.host_cgroups.as_ref().filter(|_| !device.is_used_by_tasks);
            let cgroups = host_cgroups.unwrap_or(&self.cgroups);
            cgroups.announce_to(&device.queue, now, &mut self.caller.effects);
        }
        if let PendingAdministration::PollAfter(after) = retry {
            self.events.push(self.now + after, Event::new(Kind::Administer, disk));
        }
        self.settle(disk, CpuId(0));
    }

    fn event(&mut self, event: Event) {
        let (target, detail, setting) = (event.target(), event.detail(), event.setting());
        match event.kind() {
            Kind::Complete => self.complete(target, detail, setting),
            Kind::Run => self.finish_wakeup(target),
            Kind::NextIoOfTurn => self.make_progress(target, setting),
            Kind::Due => self.due(target, Due::due_from_index(detail as usize), setting),
            Kind::Cpu => self.switch_task(CpuId(target), setting),
            Kind::Task => {
                if self.tasks[target as usize].alarm_setting == setting {
                    self.wake(target);
                }
            }
            Kind::Alarm => {
                let driver = &mut self.disks[target as usize].driver;
                match &mut driver.backing {
                    Backing::Device(device) => {
                        self.meter.reset(self.now);
                        device.wake(self.now, detail, &mut driver.schedule);
                        self.settle(target, CpuId(0));
                    }
                    Backing::Transport(_) => self.call_transport(target, detail, setting),
                    Backing::Thread(_) => self.act(Sleeper::IoThread(target), setting),
                }
            }
            Kind::Actor => self.act(Sleeper::from_waiter(Waiter(target)), setting),
            Kind::Write => {
                for disk in self.host_disks() {
                    self.disks[disk].administration.enqueue(target, self.writes[target as usize].clone());
                    if !self.disks[disk].administration.waits() {
                        self.poll_queue_writes(disk as u32);
                    }
                }
            }
            Kind::Administer => self.poll_queue_writes(target),
            Kind::Steady => self.take_steady_sample(target),
            Kind::LateInterrupts => self.late_interrupts(target),
            Kind::Round => self.continue_run(target, CpuId(detail), setting),
        }
    }

    // --- CPUs ---

    #[inline]
    fn wake(&mut self, number: u32) {
        wake(self.now, &mut self.tasks[number as usize], &mut self.cpus, &mut self.events);
    }

    /// Wakes tasks that an fio flow balance has released.
    #[cold]
    fn wake_released(&mut self) {
        while let Some(released) = self.flows.pop_released() {
            self.wake(released);
        }
    }

    /// Ends a wake-up: the task runs, or waits for its CPU.
    #[inline]
    fn finish_wakeup(&mut self, number: u32) {
        let task = &mut self.tasks[number as usize];
        self.cpus.record_arrival(task);
        if task.is_running {
            // The task woke itself, and has continued since.
            task.is_woken = false;
        } else if self.cpus.has_waiting(task) {
            // The task was preempted meanwhile, and runs when its turn comes.
        } else if self.cpus.is_free(self.now, task) {
            self.occupy(number);
        } else {
            let Enqueued { stopped, next } = self.cpus.enqueue(self.now, task);
            if let Some(at) = next {
                self.events.push(at, self.cpus.task_switch_event(task.cpu));
            }
            if let Some((other, left)) = stopped {
                self.tasks[other as usize].preempt(left);
            }
        }
    }

    /// Switches a CPU to its next task, unless interrupts have delayed it.
    #[inline]
    fn switch_task(&mut self, cpu: CpuId, setting: u32) {
        match self.cpus.next(self.now, cpu, setting) {
            NextTurn::Run(task) => self.occupy(task),
            NextTurn::Later(at) => self.events.push(at, self.cpus.task_switch_event(cpu)),
            NextTurn::NoTask => {}
        }
    }

    /// Starts the turn of a task on its CPU.
    #[inline]
    fn occupy(&mut self, number: u32) {
        let task = &mut self.tasks[number as usize];
        task.is_woken = false;
        self.cpus.enter(self.now, task);
        self.step(number);
    }

    /// Continues a task in the middle of its turn, unless interrupts have delayed it.
    fn make_progress(&mut self, number: u32, setting: u32) {
        let task = &mut self.tasks[number as usize];
        if task.step_setting != setting {
            return;
        }
        match self.cpus.end_of_task_step(self.now, task) {
            StepEnd::Submits => {
                task.is_running = false;
                self.step(number);
            }
            StepEnd::Later(at) => self.events.push(at, Event::new(Kind::NextIoOfTurn, number).with_setting(setting)),
        }
    }

    /// Preempts a task in the middle of its turn; it stays runnable.
    fn preempt_task(&mut self, number: u32, next: Option<Instant>) {
        let task = &mut self.tasks[number as usize];
        task.is_running = false;
        task.is_woken = true;
        if let Some(at) = next {
            self.events.push(at, self.cpus.task_switch_event(task.cpu));
        }
    }

    /// Runs a task on its CPU until it waits or has another I/O to submit.
    #[inline]
    fn step(&mut self, number: u32) {
        let more = self.run_task(number);
        if self.flows.has_released() {
            self.wake_released();
        }
        let task = &mut self.tasks[number as usize];
        let next = if let Some(time) = more {
            match self.cpus.continue_turn(self.now, task, time) {
                Ok(at) => {
                    task.is_running = true;
                    self.events.push(at, Event::new(Kind::NextIoOfTurn, number).with_setting(task.step_setting));
                    return;
                }
                Err(next) => return self.preempt_task(number, next),
            }
        } else {
            self.cpus.yield_cpu(self.now, task)
        };
        if let Some(at) = next {
            self.events.push(at, self.cpus.task_switch_event(task.cpu));
        }
    }

    // --- calls into the block layer ---

    #[inline]
    pub(super) fn begin_call(&mut self, disk: u32, cpu: CpuId) {
        self.meter.begin(self.now, cpu, self.disks[disk as usize].section);
    }

    /// Charges a CPU and a task for the lock costs of the current call.
    #[inline]
    fn charge_lock_time(&mut self, cpu: CpuId, payer: u32) {
        let spent = self.meter.spent();
        if spent > Nanos::ZERO {
            self.cpus.spend(self.now, cpu, spent);
            self.tasks[payer as usize].charge(self.now, spent);
        }
    }

    /// The same for an interrupt: interrupts that wait behind it come later.
    #[inline]
    fn charge_lock_time_in_interrupt(&mut self, cpu: CpuId, payer: u32) {
        let spent = self.meter.spent();
        if spent > Nanos::ZERO {
            self.cpus.charge_interrupt(self.now, cpu, spent);
            self.tasks[payer as usize].charge(self.now, spent);
        }
    }

    #[inline]
    fn with_queue<R>(
        &mut self,
        disk: u32,
        cpu: CpuId,
        body: impl FnOnce(&AnyQueue<Local>, &mut Cx<'_, Machine<P>>) -> R,
    ) -> R {
        let now = self.clock.now;
        self.probe.enter(disk, None);
        let SimulatedDisk { queue, driver, section, .. } = &mut self.disks[disk as usize];
        self.meter.begin(self.now, cpu, *section);
        body(queue, &mut self.caller.cx(now, cpu, driver, &mut self.probe, &self.meter))
    }

    /// Carries out an entry of a disk's agenda that is due.
    fn due(&mut self, disk: u32, due: Due, setting: u32) {
        let device = &mut self.disks[disk as usize];
        if device.agenda.is_due(due, setting) {
            let cpu = device.cpu_of(due);
            let is_worker = matches!(due, Due::Run(_)) && device.host_worker.is_none();
            if is_worker && !device.submitter_dispatches {
                self.cpus.charge_worker_until(self.now, cpu);
            }
            self.with_queue(disk, cpu, |queue, cx| due.carry_out(queue, cx));
            self.settle(disk, cpu);
            if is_worker {
                self.charge_lock_time(cpu, self.last_submitter);
            }
        }
    }

    /// Continues a task until it waits, or until its next submission, which is a later event because it has submitted one now.
    /// Returns the CPU time until that submission.
    #[inline(always)]
    fn run_task(&mut self, number: u32) -> Option<Nanos> {
        let mut has_submitted = false;
        loop {
            let task = &mut self.tasks[number as usize];
            if task.has_exited() {
                return None;
            }
            let next = task.next(self.now, &mut self.flows);
            // A task with several disks may have switched to another one.
            let (disk, cpu, now) = (task.current_disk.disk, task.cpu, self.clock.now);
            match next {
                NextAction::Submit => {
                    if std::mem::replace(&mut has_submitted, true) && self.cpus.has_submission_cost() {
                        task.resume_call();
                        return Some(self.cpus.submission(task));
                    }
                    if task.has_detour {
                        if task.is_buffered {
                            self.call_page_cache(disk, number);
                            return None;
                        }
                        match self.submit_through_layers(number) {
                            Submitted::Done => continue,
                            Submitted::Parked => return None,
                        }
                    }
                    let device = &mut self.disks[disk as usize];
                    let is_throttled = device.throttling.is_some();
                    if is_throttled {
                        match device.hold(self.now, task) {
                            Hold::Passes => {}
                            Hold::Bio => {
                                self.schedule_release(disk);
                                continue;
                            }
                            Hold::Submitter(owner) => {
                                self.sleep_for_latency(number, owner);
                                return None;
                            }
                        }
                    }
                    self.last_submitter = number;
                    let SimulatedDisk { queue, driver, plug_use, section, .. } = device;
                    self.meter.begin(self.now, cpu, *section);
                    if task.recorded_plug().unwrap_or_else(|| opens_plug(*plug_use, task.call_size())) {
                        task.current_disk.submitter.plug();
                    }
                    self.probe.enter(disk, Some(Waiter(number)));
                    let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
                    let submitted = task.current_disk.submitter.make_progress(queue, &mut cx);
                    let has_announced = !driver.schedule.is_empty();
                    self.finish_device_call(disk, cpu, has_announced);
                    self.charge_lock_time(cpu, number);
                    if submitted == Submitted::Parked {
                        if is_throttled {
                            self.disks[disk as usize].tags_ran_out();
                        }
                        if self.tasks[number as usize].has_other_disks() {
                            self.flush_other_plugs(number);
                        }
                        return None;
                    }
                }
                NextAction::EndCall => {
                    if task.current_disk.submitter.is_plugged() {
                        // The task waited for a lock, which others may get before it inserts, so the insertion must be a later
                        // event.
                        if has_submitted && self.may_delegate_insertion && self.meter.has_waited_for_lock() {
                            return Some(Nanos::ZERO);
                        }
                        let SimulatedDisk { queue, driver, section, .. } = &mut self.disks[disk as usize];
                        self.meter.begin(self.now, cpu, *section);
                        self.probe.enter(disk, Some(Waiter(number)));
                        let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
                        task.current_disk.submitter.unplug(queue, &mut cx);
                        self.settle(disk, cpu);
                        self.charge_lock_time(cpu, number);
                    }
                    self.tasks[number as usize].call_ended(self.now);
                }
                NextAction::Wait(mut alarm) => {
                    if let Some(at) = alarm.filter(|_| task.is_recorded && self.cpus.has_submission_cost()) {
                        let pause = at.since(self.now);
                        let lead = self.cpus.sleep_lead(task, pause);
                        if pause <= lead.max(RUNNING_MAX) {
                            return Some(pause);
                        }
                        alarm = Some(at - lead);
                    }
                    // Invalidates an earlier alarm.
                    task.alarm_setting = task.alarm_setting.wrapping_add(1);
                    let event = Event::new(Kind::Task, number).with_setting(task.alarm_setting);
                    if let Some(at) = alarm {
                        self.events.push(at, event);
                    }
                    return None;
                }
                NextAction::Exit => {
                    let io_context = task.io_context();
                    let count = self.disks.len() as u32;
                    let disks: Vec<u32> = task.disks().filter(|&disk| disk < count).collect();
                    for disk in disks {
                        let queue = &self.disks[disk as usize].queue;
                        queue.notify(now, &mut self.caller.effects, SchedulerEvent::IoContextExited(io_context));
                        self.settle(disk, cpu);
                    }
                    self.task_exited(number);
                    return None;
                }
            }
        }
    }

    /// Flushes all plugs of a task.
    #[cold]
    fn flush_plugs(&mut self, number: u32) {
        self.flush_other_plugs(number);
        let Simulation { tasks, disks, caller, probe, meter, .. } = self;
        let task = &mut tasks[number as usize];
        let (disk, cpu) = (task.current_disk.disk, task.cpu);
        let SimulatedDisk { queue, driver, section, .. } = &mut disks[disk as usize];
        meter.begin(self.now, cpu, *section);
        probe.enter(disk, Some(Waiter(number)));
        let mut cx = caller.cx::<Machine<P>>(self.clock.now, cpu, driver, probe, meter);
        task.current_disk.submitter.unplug(queue, &mut cx);
        self.settle(disk, cpu);
        self.charge_lock_time(cpu, number);
    }

    /// Flushes the plugs of a task's other disks before it sleeps for a tag of one disk.
    #[cold]
    fn flush_other_plugs(&mut self, number: u32) {
        let cpu = self.tasks[number as usize].cpu;
        while let Some(task_disk) = self.tasks[number as usize].other_plugged_disk() {
            let disk = task_disk.disk;
            let SimulatedDisk { queue, driver, section, .. } = &mut self.disks[disk as usize];
            self.meter.begin(self.now, cpu, *section);
            self.probe.enter(disk, Some(Waiter(number)));
            let mut cx = self.caller.cx::<Machine<P>>(self.clock.now, cpu, driver, &mut self.probe, &self.meter);
            task_disk.submitter.unplug(queue, &mut cx);
            self.settle(disk, cpu);
            self.charge_lock_time(cpu, number);
        }
    }
}

/// Wakes a task that sleeps for a completion, a tag or a time. A task that is already woken needs no further event.
#[inline]
fn wake(now: Instant, task: &mut Task, cpus: &mut Cpus, events: &mut EventQueue) {
    if !task.is_woken && !task.is_running && !task.has_exited() {
        task.is_woken = true;
        match cpus.wake(now, task) {
            Woken::Arrives(at) => events.push(at, Event::new(Kind::Run, task.number)),
            Woken::Chooses(at) => events.push(at, cpus.task_switch_event(task.cpu)),
            Woken::Joins => {}
        }
    }
}

/// In a pause of a recorded program that is no longer than this, its task computes; in a longer one it sleeps.
const RUNNING_MAX: Nanos = Nanos::from_micros(50);

/// Whether a system call that submits this many I/Os of a raw device opens a plug around them (BL-10 to BL-12).
fn opens_plug(plug_use: PlugUse, count: usize) -> bool {
    match plug_use {
        PlugUse::Always | PlugUse::DirectAndBatches => true,
        PlugUse::Batches => count > 2,
    }
}
