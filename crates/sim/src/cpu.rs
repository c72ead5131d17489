//! Simulated CPUs: interrupts, wake-ups, run queues and the CPU time that each costs.
//!
//! Used by: `simulation`, `workers`, `transport`.
//! Tests: `crates/sim/src/cpu/` (in its files).
//!
//! A CPU does one thing at a time: the interrupt of a completion, or one task. The time from a completion until its process has submitted
//! the next I/O is
//!
//! ```text
//! interrupt | wake-up, drawn for each   | waiting for the CPU | submission
//! complete_ns  wake_ns                    if it is busy         submit_ns
//! ```
//!
//! A task reaps and submits one I/O in one event, at the end of that submission, so that a wake-up of a shallow closed loop is one event.
//! Each further I/O of the same turn is an event of its own, `submit_ns` later, and interrupts can come between. Each page of a direct I/O
//! beyond the first adds `page_ns`. A completion while its task runs wakes no task: the task reaps it after its current step. A completion
//! while the task is still waking up is reaped in the same turn. A process that slept for a tag takes it `resume_ns` after it runs again,
//! because it paid for the submission before it slept.
//!
//! A task keeps its CPU until it sleeps, has used up its slice, or is preempted by a woken task (`fair`, `preemption`). Interrupts pause
//! it; their time is charged to it, as on kernels without `CONFIG_IRQ_TIME_ACCOUNTING`, so a task that is interrupted more often waits
//! longer for its next turn.
//!
//! Interrupts of a CPU are handled one at a time and before tasks: they limit how fast a device can complete, but a task that they delay
//! for too long gets its turn anyway.
//!
//! `wakes` implements wake-ups, `moves` the choice of the CPU for a woken task.
//!
//! An idle CPU sleeps and takes time to wake (`idle_ns`, `sleep`). The block layer still processes a completion at once.
//!
//! A hardware queue interrupts the first of its CPUs. `queue/rq_affinity` decides which CPU does the completion work. If it is another
//! CPU, the interrupted one pays `redirect_ns` and the other one `complete_ns`, as if the device had interrupted it; the work queues
//! behind that CPU's interrupts.
//!
//! A process that polls keeps its CPU until its I/O completes, but yields to another process that wants to run. It continues without a
//! wake-up; the completion costs as much as one by interrupt.
//!
//! With guests, these are the CPUs of the guests; interrupts of the host's device do not reach them.
//!
//! The worker of a hardware queue starts `worker_ns` after the interrupt that scheduled it, goes before tasks but does not interrupt a
//! submission, and has issued a command `dispatch_ns` later. A command that the submitter issues itself is part of `submit_ns`.

mod moves;
mod preemption;
mod sleep;
mod wakes;
mod work;

use hoistway_blk::ground::{CpuId, Instant, Nanos};
use hoistway_blk::queue::CompletionPlace;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::events::{Event, Kind};
use crate::fair::FairQueue;
use crate::host::Host;
use crate::span::Span;
use crate::task::Task;
pub(crate) use preemption::Enqueued;
use sleep::{CpuRandomness, IdleStates, part_of};
pub(crate) use wakes::Woken;
pub(crate) use work::Work;

/// Longest time that interrupts can delay a task: Linux then defers interrupt work to ksoftirqd. The value is assumed.
const INTERRUPT_TIME_MAX: Nanos = Nanos::from_millis(2);

/// The slice of a task on a host with one CPU, and the increment for each doubling up to eight CPUs: EEVDF's base slice
/// (`/sys/kernel/debug/sched/base_slice_ns`).
const SLICE: Nanos = Nanos(700_000);

/// The next task of a CPU.
pub(crate) enum NextTurn {
    /// This task runs now.
    Run(u32),
    /// The chosen task cannot run before this time, because of interrupts.
    Later(Instant),
    /// No task waits.
    NoTask,
}

/// The result of a step in the middle of a task's turn.
pub(crate) enum StepEnd {
    /// The step is complete: the task submits.
    Submits,
    /// Interrupts delayed the step until this time.
    Later(Instant),
}

/// The CPUs of the host.
pub(crate) struct Cpus {
    cpus: Vec<Cpu>,
    /// Maximum of all CPUs' `interrupts_until`.
    interrupts_until: Instant,
    /// Maximum of the `serves_until` that lock waits have made later than the scheduled turns.
    late_until: Instant,
    submit: Nanos,
    page: Nanos,
    switch: Nanos,
    /// Switch time of a task that waits for its CPU: not part of `wake`, but with the same relative spread.
    late_switch: Span,
    resume: Nanos,
    slice: Nanos,
    complete: Nanos,
    waking: Nanos,
    dispatch: Nanos,
    redirect: Nanos,
    wake: Span,
    worker: Span,
    idle_states: IdleStates,
    /// Random events on each CPU.
    randomness: Box<[CpuRandomness]>,
    /// Tasks never migrate (`keeps_cpus`).
    no_migration: bool,
}

/// Separates the random streams of CPUs from all others of the seed.
const CPU_STREAM: u64 = 0x6368_616e_6365_0000;

#[derive(Clone, Default)]
struct Cpu {
    /// Number of its last-level cache.
    cache: u16,
    /// End of its known work.
    free_at: Instant,
    /// End of its last exit from an idle state.
    slept_until: Instant,
    /// End of its interrupt work, including interrupts that still wait for their turn.
    interrupts_until: Instant,
    /// End of the interrupt work whose turn has come.
    serves_until: Instant,
    /// The task that ran last, and the end of its current step.
    task: u32,
    task_until: Instant,
    /// Whether that task is in the middle of its turn, which began at `turn_began`; its current step began at `step_began`.
    in_turn: bool,
    turn_began: Instant,
    step_began: Instant,
    /// Final part of the current step that runs inside a system call.
    in_call: Nanos,
    /// End of the last turn.
    turn_ended: Instant,
    /// End of its current or last wake-up.
    awake_at: Instant,
    /// Total time of all interrupts so far.
    interrupted: Nanos,
    /// Tasks that are about to arrive on this CPU, or poll on it.
    incoming_tasks: u32,
    /// Run queue: tasks whose wake-up is over.
    waiting: FairQueue,
    /// The next task, chosen from the run queue or woken alone. Its event is set, and the CPU is busy until then.
    next_task: Option<NextTask>,
    /// The valid setting of that event; events of replaced choices have older ones.
    setting: u32,
}

/// The task that a CPU is switching to.
#[derive(Clone, Copy)]
struct NextTask {
    task: u32,
    /// Whether it is outside the run queue: it woke alone, or its time is already counted because others woke meanwhile.
    is_outside_run_queue: bool,
    /// Start of its turn.
    began: Instant,
    /// CPU time of its first step, and the final part of it that runs inside a system call.
    entry: Nanos,
    in_call: Nanos,
    /// Latest end of its first step, however many interrupts come.
    latest_start: Instant,
}

impl Cpu {
    /// Switches to a task at `from`; its turn begins at `began`. Returns the end of its first step.
    #[inline]
    fn switch_to_task(
        &mut self,
        task: u32,
        is_outside_run_queue: bool,
        (began, from): (Instant, Instant),
        [entry, in_call]: [Nanos; 2],
    ) -> Instant {
        self.next_task = Some(NextTask {
            task,
            is_outside_run_queue,
            began,
            entry,
            in_call,
            latest_start: began + INTERRUPT_TIME_MAX.max(entry),
        });
        self.free_at = self.free_at.max(from) + entry;
        self.free_at
    }

    /// Delays the CPU's work by an interrupt of this length.
    #[inline]
    fn interrupt(&mut self, now: Instant, time: Nanos) {
        self.free_at = self.free_at.max(now) + time;
        self.interrupted += time;
        if self.task_until > now {
            self.task_until += time;
        }
        if self.awake_at > now {
            self.awake_at += time;
        }
    }

    /// Ends the turn of a task.
    #[inline]
    fn end_turn(&mut self, now: Instant, task: &mut Task) {
        task.is_on_cpu = false;
        self.in_turn = false;
        self.free_at = self.free_at.max(now) + std::mem::take(&mut task.spin);
        self.task = task.number;
        self.task_until = self.free_at;
        self.turn_ended = self.free_at;
    }
}

impl Cpus {
    /// Creates this many CPUs; their random events are drawn from `seed`.
    pub(crate) fn new(host: &Host, cpus: u16, seed: u64) -> Self {
        let cache_cpus = host.cache_cpus.unwrap_or(cpus).max(1);
        let cpu_randomness = |cpu| CpuRandomness::new(seed ^ CPU_STREAM ^ u64::from(cpu) << 32);
        Cpus {
            cpus: (0..cpus).map(|cpu| Cpu { cache: cpu / cache_cpus, ..Cpu::default() }).collect(),
            interrupts_until: Instant::ZERO,
            late_until: Instant::ZERO,
            submit: Nanos(host.submit_ns),
            page: Nanos(host.page_ns()),
            switch: Nanos(host.switch_ns()),
            late_switch: Span::about(host.switch_ns(), host.wake_ns),
            resume: Nanos(host.resume_ns()),
            slice: Nanos(SLICE.0 * u64::from(1 + cpus.clamp(1, 8).ilog2())),
            complete: Nanos(host.complete_ns),
            waking: Nanos(host.waking_ns()),
            dispatch: Nanos(host.dispatch_ns()),
            redirect: Nanos(host.redirect_ns),
            wake: Span::new(host.wake_ns),
            worker: Span::new(host.worker_ns),
            randomness: (0..cpus).map(cpu_randomness).collect(),
            idle_states: IdleStates::new(&host.idle_ns),
            no_migration: host.keeps_cpus,
        }
    }

    /// Exit latency of a CPU that wakes now.
    #[inline]
    fn exit_latency(&mut self, now: Instant, cpu: CpuId) -> Nanos {
        let state = &self.cpus[cpu.index()];
        let idle = if state.incoming_tasks == 0 { now.since(state.free_at) } else { Nanos::ZERO };
        if idle == Nanos::ZERO {
            Nanos::ZERO
        } else {
            self.randomness[cpu.index()].exit_latency(&self.idle_states, idle)
        }
    }

    /// Wake-up latency of a process that starts on a CPU that has long been idle.
    pub(crate) fn first_wake_latency(&self, random: &mut Xoshiro256PlusPlus) -> Nanos {
        self.wake.draw(random) + part_of(self.idle_states.deepest(), random)
    }

    /// Latest time at which a worker that was scheduled earlier has issued its command, if its CPU was awake.
    pub(crate) fn called_worker_ready_by(&self, now: Instant) -> Instant {
        now.max(self.interrupts_until) + self.worker.max() + self.submit + self.dispatch
    }

    /// When a worker that is scheduled now on this CPU has issued its first command.
    #[inline]
    pub(crate) fn worker_runs(&mut self, now: Instant, cpu: CpuId, random: &mut Xoshiro256PlusPlus) -> Instant {
        let exit_latency = self.exit_latency(now, cpu);
        let state = &self.cpus[cpu.index()];
        let wakes = now.max(state.interrupts_until) + self.worker.draw(random) + exit_latency;
        let begins = if state.in_turn { wakes.max(state.task_until) } else { wakes };
        begins + self.dispatch
    }

    /// Charges a CPU for a worker that has run until now.
    #[inline]
    pub(crate) fn charge_worker_until(&mut self, now: Instant, cpu: CpuId) {
        let began = Instant(now.0.saturating_sub(self.dispatch.0));
        let dispatch = self.dispatch;
        self.cpu_mut(cpu).interrupt(began, dispatch);
    }

    #[inline]
    fn cpu_mut(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    /// Whether any CPU is handling an interrupt.
    #[inline]
    pub(crate) fn any_takes_interrupt(&self, now: Instant) -> bool {
        now < self.interrupts_until
    }

    /// Reserves a turn for a completion interrupt if its CPU still handles earlier ones. Returns the start of that turn, or `None` if the
    /// CPU is free.
    #[inline]
    pub(crate) fn interrupt_waits(
        &mut self,
        now: Instant,
        interrupted: CpuId,
        place: CompletionPlace,
    ) -> Option<Instant> {
        let turn = self.cpus[interrupted.index()].interrupts_until;
        if turn <= now {
            return None;
        }
        let until = turn + self.interrupt_time(place);
        self.cpu_mut(interrupted).interrupts_until = until;
        // An interrupt that arrives exactly at the start of the turn must not take it.
        self.interrupts_until = self.interrupts_until.max(until);
        Some(turn)
    }

    /// Redirects the work of a completion interrupt to another CPU if that one is busy with interrupts. Returns the start of the turn
    /// reserved there, with the redirection charged to this CPU, or `None` if the other CPU is free.
    #[inline]
    pub(crate) fn redirect_to_busy_cpu(&mut self, now: Instant, interrupted: CpuId, to: CpuId) -> Option<Instant> {
        let turn = self.interrupt_waits(now, to, CompletionPlace::Interrupt)?;
        self.take_interrupt(now, interrupted, self.redirect);
        Some(turn)
    }

    /// Time of a completion interrupt on the interrupted CPU.
    #[inline]
    fn interrupt_time(&self, place: CompletionPlace) -> Nanos {
        if let CompletionPlace::Redirected(_) = place { self.redirect } else { self.complete }
    }

    /// Handles a completion interrupt. Returns the CPU that does the completion work.
    #[inline]
    pub(crate) fn complete(&mut self, now: Instant, interrupted: CpuId, place: CompletionPlace) -> CpuId {
        let exit_latency = self.exit_latency(now, interrupted);
        if exit_latency > Nanos::ZERO {
            // The wake-up of the interrupted CPU also delays its own tasks.
            let state = self.cpu_mut(interrupted);
            state.slept_until = now + exit_latency;
            state.free_at = state.slept_until;
        }
        self.take_interrupt(now, interrupted, self.interrupt_time(place));
        let CompletionPlace::Redirected(cpu) = place else { return interrupted };
        // The other CPU may have to leave an idle state.
        let exit_latency = self.exit_latency(now, cpu);
        self.take_interrupt(now, cpu, exit_latency + self.complete);
        cpu
    }

    /// Does the work of a completion that was redirected to a busy CPU and has its turn now.
    pub(crate) fn complete_redirected(&mut self, now: Instant, cpu: CpuId) {
        self.take_interrupt(now, cpu, self.complete);
    }

    /// Charges interrupt work of this length to a CPU.
    #[inline]
    fn take_interrupt(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        let state = self.cpu_mut(cpu);
        state.interrupt(now, time);
        state.interrupts_until = state.interrupts_until.max(now + time);
        state.serves_until = state.serves_until.max(now + time);
        self.interrupts_until = self.interrupts_until.max(now + time);
    }

    /// Extends the current interrupt of a CPU by lock waits: interrupts that wait behind it come later.
    #[inline]
    pub(crate) fn charge_interrupt(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        let state = self.cpu_mut(cpu);
        state.interrupt(now, time);
        state.interrupts_until = state.interrupts_until.max(now) + time;
        state.serves_until = state.serves_until.max(now) + time;
        let (until, served) = (state.interrupts_until, state.serves_until);
        self.interrupts_until = self.interrupts_until.max(until);
        self.late_until = self.late_until.max(served);
    }

    /// Whether lock waits may have delayed the scheduled turn of an interrupt, on any CPU.
    #[inline]
    pub(crate) fn may_delay_interrupts(&self, now: Instant) -> bool {
        now < self.late_until
    }

    /// The actual start of an interrupt whose turn is due, if earlier ones took longer; `None` if it can start now.
    pub(crate) fn delayed_start(&self, now: Instant, cpu: CpuId) -> Option<Instant> {
        let served = self.cpus[cpu.index()].serves_until;
        (served > now).then_some(served)
    }

    /// Extends the current work of a CPU by this time.
    #[inline]
    pub(crate) fn spend(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        self.cpu_mut(cpu).interrupt(now, time);
    }

    /// Whether two CPUs share a cache.
    #[inline]
    pub(crate) fn share_cache(&self, first: CpuId, second: CpuId) -> bool {
        self.cpus[first.index()].cache == self.cpus[second.index()].cache
    }

    /// Records that a task has arrived on its CPU.
    #[inline]
    pub(crate) fn record_arrival(&mut self, task: &Task) {
        self.cpu_mut(task.cpu).incoming_tasks -= 1;
    }

    /// Whether a task already waits in the run queue because it was delayed after its wake-up.
    #[inline]
    pub(crate) fn has_waiting(&self, task: &Task) -> bool {
        let waiting = &self.cpus[task.cpu.index()].waiting;
        !waiting.is_empty() && waiting.has_waiting(task.number)
    }

    /// Whether submissions take time, so those of one turn are separate events.
    #[inline]
    pub(crate) fn has_submission_cost(&self) -> bool {
        self.submit > Nanos::ZERO
    }

    /// Whether the CPU was free for the first step of a task, which ends now.
    #[inline]
    pub(crate) fn is_free(&mut self, now: Instant, task: &Task) -> bool {
        let state = self.cpu_mut(task.cpu);
        state.waiting.is_empty() && state.next_task.is_none() && state.free_at + task.entry <= now && !state.in_turn
    }

    /// The event at which a CPU switches to its chosen task.
    #[inline]
    pub(crate) fn task_switch_event(&self, cpu: CpuId) -> Event {
        Event::new(Kind::Cpu, cpu.0).with_setting(self.cpus[cpu.index()].setting)
    }

    /// The task whose turn begins now, if the event of this setting is still valid.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, cpu: CpuId, setting: u32) -> NextTurn {
        let state = self.cpu_mut(cpu);
        let Some(NextTask { task, is_outside_run_queue, began, latest_start, .. }) =
            state.next_task.filter(|_| state.setting == setting)
        else {
            return NextTurn::NoTask;
        };
        let at = state.free_at.min(latest_start);
        if at > now {
            return NextTurn::Later(at);
        }
        state.next_task = None;
        if !is_outside_run_queue {
            state.waiting.start_running(began, task);
        }
        NextTurn::Run(task)
    }

    /// Starts the turn of a task, which has just completed its first step.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, task: &mut Task) {
        let precharged = std::mem::take(&mut task.precharged);
        task.charge(now, Nanos((task.switch + task.entry).0.saturating_sub(precharged.0)));
        task.is_on_cpu = true;
        let state = self.cpu_mut(task.cpu);
        state.in_turn = true;
        state.turn_began = now;
    }

    /// CPU time to submit the current I/O of a task, or its next one, which is assumed to be as large as the last.
    #[inline]
    pub(crate) fn submission(&self, task: &Task) -> Nanos {
        Nanos(self.submit.0 + self.extra_page_pin_time(task).0)
    }

    /// How long a task that sleeps for `pause` takes from its alarm to its submission, in the mean and on an idle CPU. A recorded pause
    /// contains it.
    pub(crate) fn sleep_lead(&self, task: &Task, pause: Nanos) -> Nanos {
        let exit = Nanos(self.idle_states.exit_max(pause).0 / 2);
        self.complete + exit + self.wake.mean() + self.submission(task)
    }

    /// CPU time to pin its pages beyond the first.
    #[inline]
    fn extra_page_pin_time(&self, task: &Task) -> Nanos {
        Nanos(self.page.0 * u64::from(task.extra_pages))
    }

    /// Continues the turn of a task by a step of this length, up to its next submission or the end of its call. Returns the end of the
    /// step if no interrupts come. The error means that the task was preempted; it is the time of the switch to the next task.
    #[inline]
    pub(crate) fn continue_turn(
        &mut self,
        now: Instant,
        task: &mut Task,
        time: Nanos,
    ) -> Result<Instant, Option<Instant>> {
        task.entry = self.submission(task);
        if self.is_to_be_preempted(now, task) {
            return Err(self.preempt_task(now, task));
        }
        // A step without CPU time is the rest of a system call.
        let in_call = if time > Nanos::ZERO { self.in_call(task) } else { Nanos(u64::MAX) };
        let state = self.cpu_mut(task.cpu);
        task.charge(now, time);
        state.in_turn = true;
        state.step_began = now;
        state.in_call = in_call;
        state.free_at = state.free_at.max(now) + time;
        state.task = task.number;
        state.task_until = state.free_at;
        Ok(state.free_at)
    }

    /// Ends a step of a task, or returns its later end if interrupts delayed it.
    #[inline]
    pub(crate) fn end_of_task_step(&self, now: Instant, task: &Task) -> StepEnd {
        let state = &self.cpus[task.cpu.index()];
        let until = state.task_until.min(state.step_began + INTERRUPT_TIME_MAX);
        if until > now { StepEnd::Later(until) } else { StepEnd::Submits }
    }

    /// Ends the turn of a task. Returns the time of the switch to the next task, if any waits.
    #[inline]
    pub(crate) fn yield_cpu(&mut self, now: Instant, task: &mut Task) -> Option<Instant> {
        let slice = self.slice;
        let state = self.cpu_mut(task.cpu);
        if !state.waiting.is_empty() {
            // Lock waits may have extended the turn.
            state.waiting.charge_running(state.free_at.max(now) + task.spin, state.turn_began, slice);
        }
        task.lag_ns = state.waiting.put_to_sleep(task.number).min(2 * slice.0 as i64);
        state.end_turn(now, task);
        task.spins_since = task.is_polling().then_some(state.free_at);
        state.incoming_tasks += u32::from(task.spins_since.is_some());
        if state.waiting.is_empty() { None } else { self.choose_next(now, task.cpu) }
    }

    /// Keeps the CPU of a running task busy with copying for this time. Returns when the task continues, unless it is preempted.
    pub(crate) fn occupy_for_copy(&mut self, now: Instant, task: &mut Task, time: Nanos) -> Instant {
        task.charge(now, time);
        (task.entry, task.switch) = (self.submit, Nanos::ZERO);
        let submit = self.submit;
        let state = self.cpu_mut(task.cpu);
        task.interrupted = state.interrupted;
        state.incoming_tasks += 1;
        state.free_at = state.free_at.max(now) + time;
        state.free_at + submit
    }

    /// Chooses the next waiting task and returns the end of its first step, unless a task is in the middle of its turn, whose end is
    /// unknown.
    fn choose_next(&mut self, now: Instant, cpu: CpuId) -> Option<Instant> {
        let state = self.cpu_mut(cpu);
        if state.in_turn || state.next_task.is_some() {
            return None;
        }
        let (task, wait) = state.waiting.next()?;
        let began = state.turn_ended.max(wait.since);
        Some(state.switch_to_task(task, false, (began, now), [wait.entry + wait.switch, wait.in_call]))
    }

    /// Cost of a completion for the interrupted CPU if another CPU does the work.
    pub(crate) fn redirection(&self) -> Nanos {
        self.redirect
    }

    /// Cost of each process that one interrupt wakes beyond the first.
    pub(crate) fn extra_waking_cost(&self) -> Nanos {
        self.waking
    }

    /// Cost of a completion.
    #[inline]
    pub(crate) fn completion(&self) -> Nanos {
        self.complete
    }
}

#[cfg(test)]
mod tests;
