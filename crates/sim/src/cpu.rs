//! CPUs in virtual time: what runs when, and what it costs.
//!
//! A CPU does one thing at a time: the interrupt of a completion, or one task. From a completion until its process has
//! put the next I/O forward it takes
//!
//! ```text
//! interrupt | wake-up, drawn for each   | waiting for the CPU | submission
//! complete_ns  wake_ns                    if it is busy         submit_ns
//! ```
//!
//! A task reaps and submits one I/O at one moment, the end of that submission, so that a wake-up of a shallow closed loop is one
//! event. Each further I/O of the same turn has a moment of its own, `submit_ns` later, and interrupts come between.
//! Pages of a direct I/O beyond the first make it take longer (`page_ns`).
//! A completion while its task runs wakes no task, and the task continues when it has done what it does. One that comes while
//! the task is on its way is taken along. A process that slept for a tag takes it `resume_ns` after it runs again: it has paid
//! for the submission before.
//!
//! A task has its CPU until it sleeps, has had its slice, or a task wakes whose turn it is (`fair`, `preemption`). Interrupts stop it, and
//! it continues where it was; their time counts as its own, as on kernels that do not account for it (`CONFIG_IRQ_TIME_ACCOUNTING`). So a
//! task that is interrupted more often waits longer for its next turn.
//!
//! Interrupts come one after the other, before tasks: a device that completes faster than its CPU takes interrupts is held up by
//! that, and a task that they keep for too long has its turn nevertheless.
//!
//! `wakes` says what happens when a process is woken, `moves` to which CPU it goes.
//!
//! An idle CPU sleeps, and wakes later (`idle_ns`, `sleep`). The block layer is notified of a completion at once nevertheless.
//!
//! A hardware queue interrupts the first of its CPUs. `queue/rq_affinity` says where the work of the completion is done: if on
//! another CPU, the interrupted one pays `redirect_ns`, and the other one `complete_ns` as if the device had interrupted it: there it
//! has its turn among the interrupts of that CPU.
//!
//! A process that polls keeps its CPU until its I/O ends, but yields it to another process that wants to run. It continues
//! without a wake-up; the completion costs as much as after an interrupt.
//!
//! Where there are guests, these are the CPUs of the guests: interrupts of the host's device are not theirs.
//!
//! The worker of a hardware queue begins `worker_ns` after the interrupt that called it, goes before tasks, but not into the
//! middle of a submission, and has sent a command `dispatch_ns` later. What a submitter sends itself is part of `submit_ns`.

mod moves;
mod preemption;
mod sleep;
mod wakes;

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

/// Interrupts go before tasks, but keep one no longer than this: then Linux makes the work of interrupts wait as well. The
/// length is assumed.
const INTERRUPT_TIME_MAX: Nanos = Nanos::from_millis(2);

/// The slice of a task on a host of one CPU, and how much longer it is for each doubling up to eight: EEVDF's base slice
/// (`/sys/kernel/debug/sched/base_slice_ns`).
const SLICE: Nanos = Nanos(700_000);

/// Whose turn it is on a CPU that tasks wait for.
pub(crate) enum NextTurn {
    /// This task's.
    Run(u32),
    /// No task's before this moment.
    Later(Instant),
    /// No task waits.
    NoTask,
}

/// What comes of a task's time in the middle of its turn.
pub(crate) enum StepEnd {
    /// It submits.
    Submits,
    /// Interrupts have kept the CPU: not before this moment.
    Later(Instant),
}

/// The CPUs of the host.
pub(crate) struct Cpus {
    cpus: Vec<Cpu>,
    /// The last of all `interrupts_until`.
    interrupts_until: Instant,
    /// The last of all `serves_until` that are later than their turns said, because of locks.
    late_until: Instant,
    submit: Nanos,
    page: Nanos,
    switch: Nanos,
    /// The same where a task waits for its CPU: then it is no part of `wake`, and scatters as that does.
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
    /// What chance decides on each CPU.
    chances: Box<[CpuRandomness]>,
    /// Tasks stay where they are.
    keeps: bool,
}

/// Keeps the random streams of CPUs apart from all others of the seed.
const CPU_STREAM: u64 = 0x6368_616e_6365_0000;

#[derive(Clone, Default)]
struct Cpu {
    /// Its last-level cache: this many neighbours share one.
    cache: u16,
    /// It is busy until then.
    free_at: Instant,
    /// It has left its sleep then.
    slept_until: Instant,
    /// It works on interrupts until then, those that wait for their turns included.
    interrupts_until: Instant,
    /// It works until then on those that have had their turns.
    serves_until: Instant,
    /// The task that ran last, and until when it runs.
    task: u32,
    task_until: Instant,
    /// That task is in the middle of its turn. It has had the CPU since `turn_began`, and does what it does now since
    /// `step_began`.
    is_taken: bool,
    turn_began: Instant,
    step_began: Instant,
    /// The last part of what it does now, in which it is in a system call.
    in_call: Nanos,
    /// When the last turn ended.
    turn_ended: Instant,
    /// It wakes up, or did last, and is awake then.
    awake_at: Instant,
    /// All interrupts so far took so long.
    interrupted: Nanos,
    /// This many tasks are on their way to it, or poll there.
    claims: u32,
    /// Tasks whose wake-up is over.
    waiting: FairQueue,
    /// The one of them that has it next, or one that woke alone: an event is set, and it is busy until then.
    coming: Option<Coming>,
    /// The setting of the event that counts: one for a task that was chosen at first does not.
    setting: u32,
}

/// A task that a CPU turns to.
#[derive(Clone, Copy)]
struct Coming {
    task: u32,
    /// It is not among those who wait: it woke alone, or its time is counted, because others have woken meanwhile.
    is_outside_run_queue: bool,
    /// Its turn began, or begins.
    began: Instant,
    /// What it does first, and the last part of that, in which it is in a system call.
    entry: Nanos,
    in_call: Nanos,
    /// It has it then, whatever interrupts come.
    latest_start: Instant,
}

impl Cpu {
    /// It turns to a task, from then on, whose turn began or begins: returns when that has done what it does first.
    #[inline]
    fn switch_to_task(
        &mut self,
        task: u32,
        is_outside_run_queue: bool,
        (began, from): (Instant, Instant),
        [entry, in_call]: [Nanos; 2],
    ) -> Instant {
        self.coming = Some(Coming {
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

    /// An interrupt takes so much of its time.
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

    /// The turn of a task is over.
    #[inline]
    fn end_turn(&mut self, now: Instant, task: &mut Task) {
        task.is_in_turn = false;
        self.is_taken = false;
        self.free_at = self.free_at.max(now) + std::mem::take(&mut task.spin);
        self.task = task.number;
        self.task_until = self.free_at;
        self.turn_ended = self.free_at;
    }
}

impl Cpus {
    /// What chance decides about CPUs is drawn from `seed`.
    pub(crate) fn new(host: &Host, cpus: u16, seed: u64) -> Self {
        let cache_cpus = host.cache_cpus.unwrap_or(cpus).max(1);
        let chance = |cpu| CpuRandomness::new(seed ^ CPU_STREAM ^ u64::from(cpu) << 32);
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
            chances: (0..cpus).map(chance).collect(),
            idle_states: IdleStates::new(&host.idle_ns),
            keeps: host.keeps_cpus,
        }
    }

    /// What a CPU that wakes now pays for having slept.
    #[inline]
    fn exit(&mut self, now: Instant, cpu: CpuId) -> Nanos {
        let on = &self.cpus[cpu.index()];
        let idle = if on.claims == 0 { now.since(on.free_at) } else { Nanos::ZERO };
        if idle == Nanos::ZERO { Nanos::ZERO } else { self.chances[cpu.index()].exit(&self.idle_states, idle) }
    }

    /// How long a process takes to wake up that begins on a CPU that has long been idle.
    pub(crate) fn first_wake_latency(&self, random: &mut Xoshiro256PlusPlus) -> Nanos {
        self.wake.draw(random) + part_of(self.idle_states.deepest(), random)
    }

    /// By when a worker has come that was called before, if its CPU was awake.
    pub(crate) fn called_worker_ready_by(&self, now: Instant) -> Instant {
        now.max(self.interrupts_until) + self.worker.max() + self.submit + self.dispatch
    }

    /// When a worker has sent its first command that is called now, on this CPU.
    #[inline]
    pub(crate) fn worker_runs(&mut self, now: Instant, cpu: CpuId, random: &mut Xoshiro256PlusPlus) -> Instant {
        let exit = self.exit(now, cpu);
        let on = &self.cpus[cpu.index()];
        let wakes = now.max(on.interrupts_until) + self.worker.draw(random) + exit;
        let begins = if on.is_taken { wakes.max(on.task_until) } else { wakes };
        begins + self.dispatch
    }

    /// A worker has run on this CPU until now.
    #[inline]
    pub(crate) fn charge_worker_until(&mut self, now: Instant, cpu: CpuId) {
        let began = Instant(now.0.saturating_sub(self.dispatch.0));
        let dispatch = self.dispatch;
        self.on(cpu).interrupt(began, dispatch);
    }

    #[inline]
    fn on(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    /// Whether any CPU works on an interrupt.
    #[inline]
    pub(crate) fn any_takes_interrupt(&self, now: Instant) -> bool {
        now < self.interrupts_until
    }

    /// When the interrupt of a completion comes to its turn, if its CPU still works on earlier ones: the turn is its own
    /// then.
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
        self.on(interrupted).interrupts_until = until;
        // One that comes at the very moment of the turn must not take it.
        self.interrupts_until = self.interrupts_until.max(until);
        Some(turn)
    }

    /// The interrupt of a completion has its turn, and passes the work on to another CPU. Returns when it comes to its turn there,
    /// if that CPU still works on earlier ones: the turn is its own then, and what is done here has been paid.
    #[inline]
    pub(crate) fn redirect_to_busy_cpu(&mut self, now: Instant, interrupted: CpuId, to: CpuId) -> Option<Instant> {
        let turn = self.interrupt_waits(now, to, CompletionPlace::Interrupt)?;
        self.take_interrupt(now, interrupted, self.redirect);
        Some(turn)
    }

    /// How long the interrupt of a completion takes on the CPU that it comes to.
    #[inline]
    fn interrupt_time(&self, place: CompletionPlace) -> Nanos {
        if let CompletionPlace::Redirected(_) = place { self.redirect } else { self.complete }
    }

    /// A completion interrupts a CPU, and its work is done there or elsewhere. Returns where.
    #[inline]
    pub(crate) fn complete(&mut self, now: Instant, interrupted: CpuId, place: CompletionPlace) -> CpuId {
        let exit = self.exit(now, interrupted);
        if exit > Nanos::ZERO {
            // Its own processes wait for that, as those of other CPUs do for theirs.
            let on = self.on(interrupted);
            on.slept_until = now + exit;
            on.free_at = on.slept_until;
        }
        self.take_interrupt(now, interrupted, self.interrupt_time(place));
        let CompletionPlace::Redirected(cpu) = place else { return interrupted };
        // That CPU may have to wake up for it.
        let exit = self.exit(now, cpu);
        self.take_interrupt(now, cpu, exit + self.complete);
        cpu
    }

    /// A completion that was passed on to a busy CPU has its turn there.
    pub(crate) fn complete_redirected(&mut self, now: Instant, cpu: CpuId) {
        self.take_interrupt(now, cpu, self.complete);
    }

    /// A CPU works on an interrupt for so long.
    #[inline]
    fn take_interrupt(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        let on = self.on(cpu);
        on.interrupt(now, time);
        on.interrupts_until = on.interrupts_until.max(now + time);
        on.serves_until = on.serves_until.max(now + time);
        self.interrupts_until = self.interrupts_until.max(now + time);
    }

    /// The interrupt that has its turn on a CPU takes so much longer, for locks: all that wait for theirs come later.
    #[inline]
    pub(crate) fn charge_interrupt(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        let on = self.on(cpu);
        on.interrupt(now, time);
        on.interrupts_until = on.interrupts_until.max(now) + time;
        on.serves_until = on.serves_until.max(now) + time;
        let (until, served) = (on.interrupts_until, on.serves_until);
        self.interrupts_until = self.interrupts_until.max(until);
        self.late_until = self.late_until.max(served);
    }

    /// Whether the turn of an interrupt may be later than was said, on any CPU.
    #[inline]
    pub(crate) fn may_delay_interrupts(&self, now: Instant) -> bool {
        now < self.late_until
    }

    /// The turn of an interrupt has come on a CPU. Returns when it really does, if earlier ones have taken longer.
    pub(crate) fn is_late(&self, now: Instant, cpu: CpuId) -> Option<Instant> {
        let served = self.cpus[cpu.index()].serves_until;
        (served > now).then_some(served)
    }

    /// Whatever runs on a CPU takes so much longer.
    #[inline]
    pub(crate) fn spend(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        self.on(cpu).interrupt(now, time);
    }

    /// Whether two CPUs share a cache.
    #[inline]
    pub(crate) fn share_cache(&self, one: CpuId, other: CpuId) -> bool {
        self.cpus[one.index()].cache == self.cpus[other.index()].cache
    }

    /// A task that was on its way to its CPU is there.
    #[inline]
    pub(crate) fn arrives(&mut self, task: &Task) {
        self.on(task.cpu).claims -= 1;
    }

    /// Whether a task waits for its CPU already: it was put off after it had been woken.
    #[inline]
    pub(crate) fn has_waiting(&self, task: &Task) -> bool {
        let waiting = &self.cpus[task.cpu.index()].waiting;
        !waiting.is_empty() && waiting.has_waiting(task.number)
    }

    /// Whether submissions take time, so that those of a turn are apart.
    #[inline]
    pub(crate) fn has_submission_cost(&self) -> bool {
        self.submit > Nanos::ZERO
    }

    /// Whether its CPU had the time for what a task has done by now.
    #[inline]
    pub(crate) fn is_free(&mut self, now: Instant, task: &Task) -> bool {
        let on = self.on(task.cpu);
        on.waiting.is_empty() && on.coming.is_none() && on.free_at + task.entry <= now && !on.is_taken
    }

    /// The event in which a CPU turns to the task that it has chosen.
    #[inline]
    pub(crate) fn task_switch_event(&self, cpu: CpuId) -> Event {
        Event::of(Kind::Cpu, cpu.0).with_setting(self.cpus[cpu.index()].setting)
    }

    /// Whose turn it is now, if the event of this setting still counts.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, cpu: CpuId, setting: u32) -> NextTurn {
        let on = self.on(cpu);
        let Some(Coming { task, is_outside_run_queue, began, latest_start, .. }) =
            on.coming.filter(|_| on.setting == setting)
        else {
            return NextTurn::NoTask;
        };
        let at = on.free_at.min(latest_start);
        if at > now {
            return NextTurn::Later(at);
        }
        on.coming = None;
        if !is_outside_run_queue {
            on.waiting.runs(began, task);
        }
        NextTurn::Run(task)
    }

    /// A task has the CPU, and has done what it does first.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, task: &mut Task) {
        let precharged = std::mem::take(&mut task.precharged);
        task.charge(now, Nanos((task.switch + task.entry).0.saturating_sub(precharged.0)));
        task.is_in_turn = true;
        let on = self.on(task.cpu);
        on.is_taken = true;
        on.turn_began = now;
    }

    /// CPU time of the submission of the I/O that a task has in hand, or of its next one, as large as its last one.
    #[inline]
    pub(crate) fn submission(&self, task: &Task) -> Nanos {
        Nanos(self.submit.0 + self.extra_page_pin_time(task).0)
    }

    /// The part of it that its pages take beyond the first.
    #[inline]
    fn extra_page_pin_time(&self, task: &Task) -> Nanos {
        Nanos(self.page.0 * u64::from(task.extra_pages))
    }

    /// A task continues its turn, which takes `time` until it submits another I/O or ends its call. Returns when that is, unless
    /// interrupts come between; if not, its slice is over and it waits behind others, and the error is when to give the CPU to the
    /// first of them.
    #[inline]
    pub(crate) fn goes_on(&mut self, now: Instant, task: &mut Task, time: Nanos) -> Result<Instant, Option<Instant>> {
        task.entry = self.submission(task);
        if self.is_to_be_preempted(now, task) {
            return Err(self.preempt_task(now, task));
        }
        // Without time of its own it is what is left of a call.
        let in_call = if time > Nanos::ZERO { self.in_call(task) } else { Nanos(u64::MAX) };
        let on = self.on(task.cpu);
        task.charge(now, time);
        on.is_taken = true;
        on.step_began = now;
        on.in_call = in_call;
        on.free_at = on.free_at.max(now) + time;
        on.task = task.number;
        on.task_until = on.free_at;
        Ok(on.free_at)
    }

    /// The time of a step of a task is over: whether it submits, or interrupts have come before.
    #[inline]
    pub(crate) fn end_of_task_step(&self, now: Instant, task: &Task) -> StepEnd {
        let on = &self.cpus[task.cpu.index()];
        let until = on.task_until.min(on.step_began + INTERRUPT_TIME_MAX);
        if until > now { StepEnd::Later(until) } else { StepEnd::Submits }
    }

    /// The turn of a task is over. Returns when to give the CPU to the next one, if any waits.
    #[inline]
    pub(crate) fn ran(&mut self, now: Instant, task: &mut Task) -> Option<Instant> {
        let slice = self.slice;
        let on = self.on(task.cpu);
        if !on.waiting.is_empty() {
            // Locks may have kept it for longer.
            on.waiting.count(on.free_at.max(now) + task.spin, on.turn_began, slice);
        }
        task.lag_ns = on.waiting.sleeps(task.number).min(2 * slice.0 as i64);
        on.end_turn(now, task);
        task.spins_since = task.is_polling().then_some(on.free_at);
        on.claims += u32::from(task.spins_since.is_some());
        if on.waiting.is_empty() { None } else { self.set(now, task.cpu) }
    }

    /// A task that runs copies for this time. Returns when it continues, if no other task has its CPU then.
    pub(crate) fn copies(&mut self, now: Instant, task: &mut Task, time: Nanos) -> Instant {
        task.charge(now, time);
        (task.entry, task.switch) = (self.submit, Nanos::ZERO);
        let submit = self.submit;
        let on = self.on(task.cpu);
        task.interrupted = on.interrupted;
        on.claims += 1;
        on.free_at = on.free_at.max(now) + time;
        on.free_at + submit
    }

    /// Turns to the first task that waits, unless another one is in the middle of its turn: then it is not known when that is.
    fn set(&mut self, now: Instant, cpu: CpuId) -> Option<Instant> {
        let on = self.on(cpu);
        if on.is_taken || on.coming.is_some() {
            return None;
        }
        let (task, wait) = on.waiting.next()?;
        let began = on.turn_ended.max(wait.since);
        Some(on.switch_to_task(task, false, (began, now), [wait.entry + wait.switch, wait.in_call]))
    }

    /// What a completion costs the interrupted CPU if its work is done elsewhere.
    pub(crate) fn redirection(&self) -> Nanos {
        self.redirect
    }

    /// What each process costs that one interrupt wakes beyond the first.
    pub(crate) fn extra_waking_cost(&self) -> Nanos {
        self.waking
    }

    /// What a completion costs.
    #[inline]
    pub(crate) fn completion(&self) -> Nanos {
        self.complete
    }
}

#[cfg(test)]
mod tests;
