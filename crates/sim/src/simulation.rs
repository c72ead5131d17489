//! The event loop: tasks, queues and devices in virtual time.

mod actors;
mod completions;
mod effects;
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
use crate::locks::{LockMeter, SectionCost};
use crate::page_cache::PageCache;
use crate::scenario::{Control, RunError, RunResult, RunSpec, Scenario};
use crate::statistics::Statistics;
use crate::task::{NextAction, Task};

/// Events between two looks at [`Control`].
const CHECK_EVERY: u32 = 1 << 14;

/// Runs a scenario.
///
/// # Errors
/// If the queue, the load or a tunable is not possible.
pub fn run(scenario: &Scenario<'_>, spec: &RunSpec, control: &Control) -> Result<RunResult, RunError> {
    Ok(run_with_statistics(scenario, spec, control)?.0)
}

/// Runs a scenario and keeps the statistics of its devices and cgroups.
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
    cpus: Cpus,
    /// What the beginning of a process takes of its CPU, of one that is ready and of one that is made then.
    release: Nanos,
    start: Nanos,
    /// Which of those that begin together comes first, and how long each takes to wake up.
    starts: Xoshiro256PlusPlus,
    caller: Caller,
    /// What the current call has paid for locks.
    meter: LockMeter,
    host: &'a Host,
    schedulers: &'a Registry,
    /// The last submitter pays for the workers.
    last_submitter: u32,
    disks: Vec<SimulatedDisk>,
    /// The cgroups that tasks are in.
    cgroups: Cgroups,
    /// Those of the guests on the host, if there are guests.
    host_cgroups: Option<Cgroups>,
    /// What is written while the load runs.
    writes: &'a [Write],
    /// What has become of each.
    fates: Vec<Fate>,
    /// Whether a CPU that inserts when another does leaves it to that one.
    may_delegate_insertion: bool,
    tasks: Vec<Task>,
    flows: Flows,
    steady: SteadyStates,
    phases: Phases,
    /// If a process needs it.
    page_cache: Option<Box<PageCache>>,
    ios: u64,
    probe: P,
}

impl<'a, P: Probe> Simulation<'a, P> {
    fn run(mut self, control: &Control) -> (RunResult, P) {
        let mut partial = false;
        let mut until_check = CHECK_EVERY;
        for (index, write) in self.writes.iter().enumerate() {
            self.events.push(Instant::ZERO + write.at, Event::of(Kind::Write, index as u32));
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
        // The disks go before all that still wait for something of them, and that which others lie on before those.
        while self.disks.pop().is_some() {}
        let result = RunResult {
            processes: self.tasks.into_iter().map(|task| task.into_result(now, &self.steady)).collect(),
            simulated: Nanos(now.0),
            ios: self.ios,
            locks: self.meter.used(),
            refused,
            fates: self.fates,
            page_cache: self.page_cache.map(|cache| cache.into_summary()),
            partial,
        };
        (result, self.probe)
    }

    /// The disks whose files are written: those of the host.
    fn host_disks(&self) -> std::ops::Range<usize> {
        let first = if self.host_cgroups.is_some() { self.workload.files.len() } else { 0 };
        first..self.disks.len()
    }

    /// Files of a device's queue are written, or it is looked whether what was written can be done.
    #[cold]
    fn poll_queue_writes(&mut self, disk: u32) {
        let now = self.clock.now;
        self.probe.enter(disk, None);
        self.begin_call(disk, CpuId(0));
        let on = &mut self.disks[disk as usize];
        let mut cx = self.caller.cx::<Machine<P>>(now, CpuId(0), &mut on.driver, &mut self.probe, &self.meter);
        let (switched, left) = on.administration.make_progress(&mut cx, &on.front, &mut self.fates);
        if switched {
            on.section = SectionCost::of(self.host, self.schedulers, on.front.scheduler());
            let of_host = self.host_cgroups.as_ref().filter(|_| !on.is_used_by_tasks);
            let cgroups = of_host.unwrap_or(&self.cgroups);
            cgroups.introduce(&on.front, now, &mut self.caller.effects);
        }
        if let PendingAdministration::PollAfter(after) = left {
            self.events.push(self.now + after, Event::of(Kind::Administer, disk));
        }
        self.settle(disk, CpuId(0));
    }

    fn event(&mut self, event: Event) {
        let (place, what, setting) = (event.place(), event.what(), event.setting());
        match event.kind() {
            Kind::Complete => self.complete(place, what, setting),
            Kind::Run => self.woken(place),
            Kind::NextIoOfTurn => self.make_progress(place, setting),
            Kind::Due => self.due(place, Due::due_from_index(what as usize), setting),
            Kind::Cpu => self.next_on(CpuId(place), setting),
            Kind::Task => {
                if self.tasks[place as usize].alarm_setting == setting {
                    self.wake(place);
                }
            }
            Kind::Alarm => {
                let driver = &mut self.disks[place as usize].driver;
                match &mut driver.backing {
                    Backing::Device(device) => {
                        self.meter.rest(self.now);
                        device.wake(self.now, what, &mut driver.schedule);
                        self.settle(place, CpuId(0));
                    }
                    Backing::Thread(_) => self.act(Sleeper::IoThread(place), setting),
                }
            }
            Kind::Actor => self.act(Sleeper::of(Waiter(place)), setting),
            Kind::Write => {
                for disk in self.host_disks() {
                    self.disks[disk].administration.ask(place, self.writes[place as usize].clone());
                    if !self.disks[disk].administration.waits() {
                        self.poll_queue_writes(disk as u32);
                    }
                }
            }
            Kind::Administer => self.poll_queue_writes(place),
            Kind::Steady => self.watch(place),
            Kind::Round => self.continue_dispatching(place, CpuId(what)),
        }
    }

    // --- CPUs ---

    #[inline]
    fn wake(&mut self, number: u32) {
        wake(self.now, &mut self.tasks[number as usize], &mut self.cpus, &mut self.events);
    }

    /// Wakes tasks that a balance has let go on.
    #[cold]
    fn wake_released(&mut self) {
        while let Some(released) = self.flows.pop_released() {
            self.wake(released);
        }
    }

    /// A wake-up is over: the task runs, or waits for its CPU.
    #[inline]
    fn woken(&mut self, number: u32) {
        let task = &mut self.tasks[number as usize];
        self.cpus.arrives(task);
        if task.is_running {
            // It was woken by what it did itself, and has gone on since.
            task.is_woken = false;
        } else if self.cpus.has_waiting(task) {
            // It was put off meanwhile, and has its turn when that comes.
        } else if self.cpus.is_free(self.now, task) {
            self.occupy(number);
        } else {
            let Enqueued { stopped, next } = self.cpus.enqueue(self.now, task);
            if let Some(at) = next {
                self.events.push(at, self.cpus.task_switch_event(task.cpu));
            }
            if let Some((other, left)) = stopped {
                self.tasks[other as usize].stop(left);
            }
        }
    }

    /// A CPU turns to the next task that wants it, unless interrupts have kept it.
    #[inline]
    fn next_on(&mut self, cpu: CpuId, setting: u32) {
        match self.cpus.next(self.now, cpu, setting) {
            NextTurn::Run(task) => self.occupy(task),
            NextTurn::Later(at) => self.events.push(at, self.cpus.task_switch_event(cpu)),
            NextTurn::NoTask => {}
        }
    }

    /// A task has its CPU.
    #[inline]
    fn occupy(&mut self, number: u32) {
        let task = &mut self.tasks[number as usize];
        task.is_woken = false;
        self.cpus.enter(self.now, task);
        self.step(number);
    }

    /// A task in the middle of its turn continues, unless interrupts have kept its CPU.
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
            StepEnd::Later(at) => self.events.push(at, Event::of(Kind::NextIoOfTurn, number).with_setting(setting)),
        }
    }

    /// A task in the middle of its turn waits until others have had its CPU: it is as good as woken.
    fn preempt_task(&mut self, number: u32, next: Option<Instant>) {
        let task = &mut self.tasks[number as usize];
        task.is_running = false;
        task.is_woken = true;
        if let Some(at) = next {
            self.events.push(at, self.cpus.task_switch_event(task.cpu));
        }
    }

    /// Lets a task run on its CPU until it waits, or has another I/O to put forward.
    #[inline]
    fn step(&mut self, number: u32) {
        let more = self.run_task(number);
        if self.flows.has_released() {
            self.wake_released();
        }
        let task = &mut self.tasks[number as usize];
        let next = if let Some(time) = more {
            match self.cpus.goes_on(self.now, task, time) {
                Ok(at) => {
                    task.is_running = true;
                    self.events.push(at, Event::of(Kind::NextIoOfTurn, number).with_setting(task.step_setting));
                    return;
                }
                Err(next) => return self.preempt_task(number, next),
            }
        } else {
            self.cpus.ran(self.now, task)
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

    /// A call on a CPU has taken time beyond what the host profile says of every scheduler: for locks. A task pays.
    #[inline]
    fn charge_lock_time(&mut self, cpu: CpuId, payer: u32) {
        let spent = self.meter.spent();
        if spent > Nanos::ZERO {
            self.cpus.spend(self.now, cpu, spent);
            self.tasks[payer as usize].charge(self.now, spent);
        }
    }

    /// The same of an interrupt: those that wait for it come later.
    #[inline]
    fn charge_lock_time_in_interrupt(&mut self, cpu: CpuId, payer: u32) {
        let spent = self.meter.spent();
        if spent > Nanos::ZERO {
            self.cpus.charge_interrupt(self.now, cpu, spent);
            self.tasks[payer as usize].charge(self.now, spent);
        }
    }

    #[inline]
    fn with_front<R>(
        &mut self,
        disk: u32,
        cpu: CpuId,
        body: impl FnOnce(&AnyQueue<Local>, &mut Cx<'_, Machine<P>>) -> R,
    ) -> R {
        let now = self.clock.now;
        self.probe.enter(disk, None);
        let SimulatedDisk { front, driver, section, .. } = &mut self.disks[disk as usize];
        self.meter.begin(self.now, cpu, *section);
        body(front, &mut self.caller.cx(now, cpu, driver, &mut self.probe, &self.meter))
    }

    /// The moment of something on the agenda of a disk has come.
    fn due(&mut self, disk: u32, due: Due, setting: u32) {
        let on = &mut self.disks[disk as usize];
        if on.agenda.is_due(due, setting) {
            let cpu = on.cpu_of(due);
            let is_worker = matches!(due, Due::Run(_)) && on.host_worker.is_none();
            if is_worker && !on.submitter_dispatches {
                self.cpus.charge_worker_until(self.now, cpu);
            }
            self.with_front(disk, cpu, |front, cx| due.carry_out(front, cx));
            self.settle(disk, cpu);
            if is_worker {
                self.charge_lock_time(cpu, self.last_submitter);
            }
        }
    }

    /// Lets a task continue until it waits, or until it has an I/O in hand that comes later, because it has submitted one now.
    /// Returns what that takes of its CPU.
    #[inline(always)]
    fn run_task(&mut self, number: u32) -> Option<Nanos> {
        let mut has_submitted = false;
        loop {
            let task = &mut self.tasks[number as usize];
            if task.has_exited() {
                return None;
            }
            let next = task.next(self.now, &mut self.flows);
            // A task of several disks may have turned to another one.
            let (disk, cpu, now) = (task.lane.disk, task.cpu, self.clock.now);
            match next {
                NextAction::Submit => {
                    if std::mem::replace(&mut has_submitted, true) && self.cpus.has_submission_cost() {
                        task.resume_call();
                        return Some(self.cpus.submission(task));
                    }
                    if task.is_buffered {
                        self.call_page_cache(disk, number);
                        return None;
                    }
                    let on = &mut self.disks[disk as usize];
                    if on.throttling.is_some() && on.keeps(self.now, task) {
                        self.set_release(disk);
                        continue;
                    }
                    self.last_submitter = number;
                    let SimulatedDisk { front, driver, plug_use, section, .. } = on;
                    self.meter.begin(self.now, cpu, *section);
                    if task.recorded_plug().unwrap_or_else(|| opens_plug(*plug_use, task.call_size())) {
                        task.lane.submitter.plug();
                    }
                    self.probe.enter(disk, Some(Waiter(number)));
                    let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
                    let submitted = task.lane.submitter.make_progress(front, &mut cx);
                    let has_announced = !driver.schedule.is_empty();
                    self.finish_device_call(disk, cpu, has_announced);
                    self.charge_lock_time(cpu, number);
                    if submitted == Submitted::Parked {
                        if self.tasks[number as usize].has_other_disks() {
                            self.flush_other_plugs(number);
                        }
                        return None;
                    }
                }
                NextAction::EndCall => {
                    if task.lane.submitter.is_plugged() {
                        // It has waited for a lock, and others have it before it inserts: which it meets depends on the time.
                        if has_submitted && self.may_delegate_insertion && self.meter.has_waited_for_lock() {
                            return Some(Nanos::ZERO);
                        }
                        let SimulatedDisk { front, driver, section, .. } = &mut self.disks[disk as usize];
                        self.meter.begin(self.now, cpu, *section);
                        self.probe.enter(disk, Some(Waiter(number)));
                        let mut cx = self.caller.cx::<Machine<P>>(now, cpu, driver, &mut self.probe, &self.meter);
                        task.lane.submitter.unplug(front, &mut cx);
                        self.settle(disk, cpu);
                        self.charge_lock_time(cpu, number);
                    }
                    self.tasks[number as usize].call_ended(self.now);
                }
                NextAction::Wait(alarm) => {
                    // Whatever alarm was set before is void.
                    task.alarm_setting = task.alarm_setting.wrapping_add(1);
                    let event = Event::of(Kind::Task, number).with_setting(task.alarm_setting);
                    if let Some(at) = alarm {
                        self.events.push(at, event);
                    }
                    return None;
                }
                NextAction::Exit => {
                    let io_context = task.io_context();
                    let disks: Vec<u32> = task.disks().collect();
                    for disk in disks {
                        let front = &self.disks[disk as usize].front;
                        front.notify(now, &mut self.caller.effects, SchedulerEvent::IoContextExited(io_context));
                        self.settle(disk, cpu);
                    }
                    self.task_exited(number);
                    return None;
                }
            }
        }
    }

    /// A task goes to sleep for a tag of one disk: what it has plugged for others goes out.
    #[cold]
    fn flush_other_plugs(&mut self, number: u32) {
        let cpu = self.tasks[number as usize].cpu;
        while let Some(lane) = self.tasks[number as usize].other_plugged_disk() {
            let disk = lane.disk;
            let SimulatedDisk { front, driver, section, .. } = &mut self.disks[disk as usize];
            self.meter.begin(self.now, cpu, *section);
            self.probe.enter(disk, Some(Waiter(number)));
            let mut cx = self.caller.cx::<Machine<P>>(self.clock.now, cpu, driver, &mut self.probe, &self.meter);
            lane.submitter.unplug(front, &mut cx);
            self.settle(disk, cpu);
            self.charge_lock_time(cpu, number);
        }
    }
}

/// Wakes a task that sleeps, for a completion, for a tag or for a time. If it is on its way already, it takes what has
/// happened with it.
#[inline]
fn wake(now: Instant, task: &mut Task, cpus: &mut Cpus, events: &mut EventQueue) {
    if !task.is_woken && !task.is_running && !task.has_exited() {
        task.is_woken = true;
        match cpus.wake(now, task) {
            Woken::Arrives(at) => events.push(at, Event::of(Kind::Run, task.number)),
            Woken::Chooses(at) => events.push(at, cpus.task_switch_event(task.cpu)),
            Woken::Joins => {}
        }
    }
}

/// Whether a system call that submits this many I/Os of a raw device opens a plug around them (BL-10 to BL-12).
fn opens_plug(plug_use: PlugUse, count: usize) -> bool {
    match plug_use {
        PlugUse::Always | PlugUse::DirectAndBatches => true,
        PlugUse::Batches => count > 2,
    }
}
