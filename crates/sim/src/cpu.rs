//! CPUs in virtual time: who runs when, and what it costs.
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
//! event. Each further I/O of the same turn has a moment of its own, `submit_ns` later, and interrupts come between. A
//! Pages of a direct I/O beyond the first make it take longer (`page_ns`). A
//! completion while its task runs wakes nobody, and the task goes on when it has done what it does. One that comes while
//! the task is on its way is taken along. A process that slept for a tag takes it `resume_ns` after it runs again: it has paid
//! for the submission before.
//!
//! A task has its CPU until it sleeps, has had its slice, or somebody wakes whose turn it is (`fair`, `preemption`). Interrupts stop it, and it goes on where it was; their time counts as its own, as on kernels that do not
//! account for it (`CONFIG_IRQ_TIME_ACCOUNTING`). So who is interrupted more often waits longer for its next turn.
//!
//! Interrupts come one after the other, before tasks: a device that completes faster than its CPU takes interrupts is held up by
//! that, and a task that they keep for too long has its turn all the same.
//!
//! `wakes` says what happens when a process is woken, `moves` to which CPU it goes.
//!
//! A CPU that has been idle for a while sleeps, and wakes later (`idle_ns`): it has slept as deep as would have paid, as if
//! whoever sends it to sleep had guessed right. The block layer is told of a completion at once all the same.
//!
//! A hardware queue interrupts the first of its CPUs. `queue/rq_affinity` says where the work of the completion is done: if on
//! another CPU, the interrupted one pays `redirect_ns`, and the other one `complete_ns` as if the device had interrupted it: there it
//! has its turn among the interrupts of that CPU.
//!
//! A process that polls keeps its CPU until its I/O ends, gives it to whoever else wants it meanwhile, and goes on without a
//! wake-up; the completion costs what it costs after an interrupt.
//!
//! Where there are guests, these are the CPUs of the guests: interrupts of the host's device are not theirs.
//!
//! The worker of a hardware queue begins `worker_ns` after the interrupt that called it, goes before tasks, but not into the
//! middle of a submission, and has sent a command `dispatch_ns` later. What a submitter sends itself is part of `submit_ns`.

mod moves;
mod preemption;
mod wakes;

use hoistway_blk::{CompletionPlace, CpuId, Instant, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::events::{Event, Kind};
use crate::fair::FairQueue;
use crate::host::{Host, IDLE_STATES_MAX};
use crate::span::Span;
use crate::task::Task;
pub(crate) use preemption::Enqueued;
pub(crate) use wakes::Woken;

/// Interrupts go before tasks, but keep one no longer than this: then Linux makes the work of interrupts wait as well. The
/// length is assumed.
const PATIENCE: Nanos = Nanos::from_millis(2);

/// The slice of a task on a host of one CPU, and how much longer it is for each doubling up to eight: EEVDF's base slice
/// (`/sys/kernel/debug/sched/base_slice_ns`).
const SLICE: Nanos = Nanos(700_000);

/// Whose turn it is on a CPU that tasks wait for.
pub(crate) enum Turn {
    /// This task's.
    Run(u32),
    /// Nobody's before this moment.
    Later(Instant),
    /// Nobody waits.
    Nobodys,
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
    idle: [IdleState; IDLE_STATES_MAX],
    /// Tasks stay where they are.
    keeps: bool,
}

/// A CPU that has been idle for so long takes so much longer to wake than after a shorter time.
#[derive(Clone, Copy)]
struct IdleState {
    after: Nanos,
    more: Nanos,
}

#[derive(Clone, Default)]
struct Cpu {
    /// Its last-level cache: so many neighbours share one.
    cache: u16,
    /// It is busy until then.
    free_at: Instant,
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
    /// So many tasks are on their way to it, or poll there.
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
    is_apart: bool,
    /// Its turn began, or begins.
    began: Instant,
    /// What it does first, and the last part of that, in which it is in a system call.
    entry: Nanos,
    in_call: Nanos,
    /// It has it then, whatever interrupts come.
    at_last: Instant,
}

fn idle_states(idle_ns: &[[u64; 2]]) -> [IdleState; IDLE_STATES_MAX] {
    let mut states = [IdleState { after: Nanos(u64::MAX), more: Nanos::ZERO }; IDLE_STATES_MAX];
    let mut before = 0;
    for (state, &[after, exit]) in states.iter_mut().zip(idle_ns) {
        *state = IdleState { after: Nanos(after), more: Nanos(exit.saturating_sub(before)) };
        before = exit;
    }
    states
}

impl Cpu {
    /// It turns to a task, from then on, whose turn began or begins: answers when that has done what it does first.
    #[inline]
    fn turns_to(
        &mut self,
        task: u32,
        is_apart: bool,
        (began, from): (Instant, Instant),
        [entry, in_call]: [Nanos; 2],
    ) -> Instant {
        self.coming = Some(Coming { task, is_apart, began, entry, in_call, at_last: began + PATIENCE.max(entry) });
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
        task.has_its_turn = false;
        self.is_taken = false;
        self.free_at = self.free_at.max(now) + std::mem::take(&mut task.spin);
        self.task = task.number;
        self.task_until = self.free_at;
        self.turn_ended = self.free_at;
    }
}

impl Cpus {
    pub(crate) fn new(host: &Host, cpus: u16) -> Self {
        let cache_cpus = host.cache_cpus.unwrap_or(cpus).max(1);
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
            idle: idle_states(&host.idle_ns),
            keeps: host.keeps_cpus,
        }
    }

    /// What a CPU that wakes now pays for having slept.
    #[inline]
    fn exit(&self, now: Instant, cpu: CpuId) -> Nanos {
        let idle = now.since(self.cpus[cpu.index()].free_at);
        // Nobody can guess how deep a CPU sleeps, and a processor that tries loses more than these sums cost.
        Nanos(self.idle.iter().map(|state| if idle >= state.after { state.more.0 } else { 0 }).sum())
    }

    /// By when a worker has come that was called before, if its CPU was awake.
    pub(crate) fn worker_comes_by(&self, now: Instant) -> Instant {
        now.max(self.interrupts_until) + self.worker.max() + self.submit + self.dispatch
    }

    /// When a worker has sent its first command that is called now, on this CPU.
    #[inline]
    pub(crate) fn worker_runs(&self, now: Instant, cpu: CpuId, random: &mut Xoshiro256PlusPlus) -> Instant {
        let on = &self.cpus[cpu.index()];
        let wakes = now.max(on.interrupts_until) + self.worker.draw(random) + self.exit(now, cpu);
        let begins = if on.is_taken { wakes.max(on.task_until) } else { wakes };
        begins + self.dispatch
    }

    /// A worker has run on this CPU until now.
    #[inline]
    pub(crate) fn worker_ran(&mut self, now: Instant, cpu: CpuId) {
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

    /// The interrupt of a completion has its turn, and passes the work on to another CPU. Answers when it comes to its turn there,
    /// if that CPU still works on earlier ones: the turn is its own then, and what is done here has been paid.
    #[inline]
    pub(crate) fn passes_on_to_busy(&mut self, now: Instant, interrupted: CpuId, to: CpuId) -> Option<Instant> {
        let turn = self.interrupt_waits(now, to, CompletionPlace::Interrupt)?;
        self.take_interrupt(now, interrupted, self.redirect);
        Some(turn)
    }

    /// How long the interrupt of a completion takes on the CPU that it comes to.
    #[inline]
    fn interrupt_time(&self, place: CompletionPlace) -> Nanos {
        if let CompletionPlace::Redirected(_) = place { self.redirect } else { self.complete }
    }

    /// A completion interrupts a CPU, and its work is done there or elsewhere. Answers where.
    #[inline]
    pub(crate) fn complete(&mut self, now: Instant, interrupted: CpuId, place: CompletionPlace) -> CpuId {
        self.take_interrupt(now, interrupted, self.interrupt_time(place));
        let CompletionPlace::Redirected(cpu) = place else { return interrupted };
        // That CPU may have to wake up for it.
        self.take_interrupt(now, cpu, self.exit(now, cpu) + self.complete);
        cpu
    }

    /// A completion that was passed on to a busy CPU has its turn there.
    pub(crate) fn complete_passed_on(&mut self, now: Instant, cpu: CpuId) {
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
    pub(crate) fn interrupt_spends(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
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
    pub(crate) fn any_is_late(&self, now: Instant) -> bool {
        now < self.late_until
    }

    /// The turn of an interrupt has come on a CPU. Answers when it really does, if earlier ones have taken longer.
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
    pub(crate) fn submissions_take_time(&self) -> bool {
        self.submit > Nanos::ZERO
    }

    /// Whether its CPU had the time for what a task has done by now.
    #[inline]
    pub(crate) fn is_free(&mut self, now: Instant, task: &Task) -> bool {
        let on = self.on(task.cpu);
        on.waiting.is_empty() && on.coming.is_none() && on.free_at + task.entry <= now && !on.is_taken
    }

    /// The event in which a CPU turns to whom it has chosen.
    #[inline]
    pub(crate) fn turn_of(&self, cpu: CpuId) -> Event {
        Event::of(Kind::Cpu, cpu.0).with_setting(self.cpus[cpu.index()].setting)
    }

    /// Whose turn it is now, if the event of this setting still counts.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, cpu: CpuId, setting: u32) -> Turn {
        let on = self.on(cpu);
        let Some(Coming { task, is_apart, began, at_last, .. }) = on.coming.filter(|_| on.setting == setting) else {
            return Turn::Nobodys;
        };
        let at = on.free_at.min(at_last);
        if at > now {
            return Turn::Later(at);
        }
        on.coming = None;
        if !is_apart {
            on.waiting.runs(began, task);
        }
        Turn::Run(task)
    }

    /// A task has the CPU, and has done what it does first.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, task: &mut Task) {
        let prepaid = std::mem::take(&mut task.prepaid);
        task.charge(now, Nanos((task.switch + task.entry).0.saturating_sub(prepaid.0)));
        task.has_its_turn = true;
        let on = self.on(task.cpu);
        on.is_taken = true;
        on.turn_began = now;
    }

    /// CPU time of the submission of the I/O that a task has in hand, or of its next one, as large as its last one.
    #[inline]
    pub(crate) fn submission(&self, task: &Task) -> Nanos {
        Nanos(self.submit.0 + self.pinning(task).0)
    }

    /// The part of it that its pages take beyond the first.
    #[inline]
    fn pinning(&self, task: &Task) -> Nanos {
        Nanos(self.page.0 * u64::from(task.more_pages))
    }

    /// A task goes on with its turn, which takes so long until it submits another I/O or ends its call. Answers when that is, unless
    /// interrupts come between; if not, its slice is over and it waits behind others, and the answer is when to give the CPU to the
    /// first of them.
    #[inline]
    pub(crate) fn goes_on(&mut self, now: Instant, task: &mut Task, time: Nanos) -> Result<Instant, Option<Instant>> {
        task.entry = self.submission(task);
        if self.gives_way(now, task) {
            return Err(self.put_off(now, task));
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

    /// The time of a task that goes on is over: whether it submits, or interrupts have come before.
    #[inline]
    pub(crate) fn step_ends(&self, now: Instant, task: &Task) -> StepEnd {
        let on = &self.cpus[task.cpu.index()];
        let until = on.task_until.min(on.step_began + PATIENCE);
        if until > now { StepEnd::Later(until) } else { StepEnd::Submits }
    }

    /// The turn of a task is over. Answers when to give the CPU to the next one, if anybody waits.
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

    /// A task that runs copies for so long. Answers when it goes on, if nobody else has its CPU then.
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

    /// Turns to the first task that waits, unless another one is in the middle of its turn: then nobody knows when that is.
    fn set(&mut self, now: Instant, cpu: CpuId) -> Option<Instant> {
        let on = self.on(cpu);
        if on.is_taken || on.coming.is_some() {
            return None;
        }
        let (task, wait) = on.waiting.next()?;
        let began = on.turn_ended.max(wait.since);
        Some(on.turns_to(task, false, (began, now), [wait.entry + wait.switch, wait.in_call]))
    }

    /// What a completion costs the interrupted CPU if its work is done elsewhere.
    pub(crate) fn redirection(&self) -> Nanos {
        self.redirect
    }

    /// What each process costs that one interrupt wakes beyond the first.
    pub(crate) fn one_more_waking(&self) -> Nanos {
        self.waking
    }

    /// What a completion costs.
    #[inline]
    pub(crate) fn completion(&self) -> Nanos {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::fair::Wait;

    fn cpus() -> Cpus {
        let text = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 300\nredirect_ns = 20\nwake_ns = [0, 0]\n\
                    worker_ns = [0, 0]\nidle_ns = [[100, 7]]\n";
        Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 2)
    }

    #[test]
    fn a_completion_takes_the_time_of_the_cpu_that_does_its_work_and_little_of_the_one_that_passes_it_on() {
        let free_at = |cpus: &Cpus| cpus.cpus.iter().map(|cpu| cpu.free_at.0).collect::<Vec<_>>();
        for place in [CompletionPlace::Interrupt, CompletionPlace::Softirq] {
            let mut cpus = cpus();
            assert_eq!(cpus.complete(Instant(1000), CpuId(0), place), CpuId(0));
            assert_eq!(free_at(&cpus), [1300, 0]);
        }
        let mut cpus = cpus();
        let passed_on = CompletionPlace::Redirected(CpuId(1));
        assert_eq!(cpus.complete(Instant(1000), CpuId(0), passed_on), CpuId(1));
        assert_eq!(free_at(&cpus), [1020, 1307], "CPU 1 had slept");
        cpus.complete(Instant(1000), CpuId(0), passed_on);
        assert_eq!(free_at(&cpus), [1040, 1607]);
    }

    #[test]
    fn a_turn_that_is_given_away_keeps_others_waiting() {
        let (mut cpus, cpu, place) = (cpus(), CpuId(0), CompletionPlace::Interrupt);
        assert_eq!(cpus.interrupt_waits(Instant(1000), cpu, place), None);
        cpus.complete(Instant(1000), cpu, place);
        assert_eq!(cpus.interrupt_waits(Instant(1100), cpu, place), Some(Instant(1300)));
        assert!(cpus.any_takes_interrupt(Instant(1300)), "one that comes just then would take it as well");
        assert_eq!(cpus.interrupt_waits(Instant(1300), cpu, place), Some(Instant(1600)));
        cpus.complete(Instant(1300), cpu, place);
        cpus.complete(Instant(1600), cpu, place);
        assert_eq!(cpus.interrupt_waits(Instant(1899), cpu, place), Some(Instant(1900)), "each has its 300 ns");
        assert_eq!(cpus.interrupt_waits(Instant(1100), CpuId(1), place), None, "another CPU has nothing to do");
    }

    #[test]
    fn an_interrupt_has_its_turn_at_once_when_those_before_it_are_over() {
        let (mut cpus, cpu, place) = (cpus(), CpuId(0), CompletionPlace::Interrupt);
        cpus.complete(Instant(1000), cpu, place);
        assert_eq!(cpus.interrupt_waits(Instant(1300), cpu, place), None);
    }

    #[test]
    fn an_interrupt_that_locks_keep_makes_those_of_its_cpu_late_that_wait_for_it() {
        let (mut cpus, cpu, place) = (cpus(), CpuId(0), CompletionPlace::Interrupt);
        cpus.complete(Instant(1000), cpu, place);
        assert_eq!(cpus.interrupt_waits(Instant(1100), cpu, place), Some(Instant(1300)));
        assert!(!cpus.any_is_late(Instant(1100)));
        cpus.interrupt_spends(Instant(1000), cpu, Nanos(50));
        assert!(cpus.any_is_late(Instant(1300)));
        assert_eq!(cpus.is_late(Instant(1300), cpu), Some(Instant(1350)));
        assert_eq!([(1350, cpu), (1300, CpuId(1))].map(|(at, cpu)| cpus.is_late(Instant(at), cpu)), [None; 2]);
        assert_eq!(cpus.interrupt_waits(Instant(1349), cpu, place), Some(Instant(1650)), "behind both");
        assert_eq!(cpus.cpus[0].free_at, Instant(1350));
    }

    #[test]
    fn a_worker_comes_behind_interrupts_and_the_step_that_is_under_way_and_takes_time_of_its_cpu() {
        let text = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 300\ndispatch_ns = 40\n\
                    wake_ns = [0, 0]\nworker_ns = [5000, 5000]\nidle_ns = []\n";
        let (mut cpus, cpu) = (Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 2), CpuId(0));
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(6040));
        cpus.complete(Instant(1000), cpu, CompletionPlace::Interrupt);
        assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(6340));
        assert_eq!(cpus.worker_comes_by(Instant(1000)), Instant(6340));
        cpus.on(cpu).task_until = Instant(9000);
        assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(6340), "that was its last step");
        cpus.on(cpu).is_taken = true;
        assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(9040));
        cpus.worker_ran(Instant(9040), cpu);
        assert_eq!((cpus.cpus[0].free_at, cpus.cpus[1].free_at), (Instant(9040), Instant::ZERO));
    }

    #[test]
    fn a_short_interrupt_does_not_hide_a_longer_one_on_another_cpu() {
        let mut cpus = cpus();
        cpus.complete(Instant(1000), CpuId(0), CompletionPlace::Interrupt);
        assert_eq!(cpus.passes_on_to_busy(Instant(1100), CpuId(1), CpuId(0)), Some(Instant(1300)));
        assert!(cpus.any_takes_interrupt(Instant(1599)), "both turns");
        assert!(!cpus.any_takes_interrupt(Instant(1600)));
    }

    #[test]
    fn what_is_passed_on_has_its_turn_among_the_interrupts_of_the_other_cpu() {
        let (mut cpus, to) = (cpus(), CpuId(1));
        assert_eq!(cpus.passes_on_to_busy(Instant(1000), CpuId(0), to), None);
        // It sleeps: 7 ns more.
        cpus.complete(Instant(1000), CpuId(0), CompletionPlace::Redirected(to));
        assert_eq!(cpus.passes_on_to_busy(Instant(1100), CpuId(0), to), Some(Instant(1307)));
        assert_eq!(cpus.cpus[0].free_at, Instant(1120), "passing on takes its time at once");
        assert_eq!(cpus.cpus[1].free_at, Instant(1307), "the work does not");
        assert_eq!(
            cpus.interrupt_waits(Instant(1200), to, CompletionPlace::Interrupt),
            Some(Instant(1607)),
            "behind both"
        );
        cpus.complete_passed_on(Instant(1307), to);
        assert_eq!(cpus.cpus[1].free_at, Instant(1607));
    }

    fn wait(entry: u64) -> Wait {
        Wait { since: Instant(1000), entry: Nanos(entry), switch: Nanos::ZERO, in_call: Nanos::ZERO }
    }

    #[test]
    fn an_interrupt_stops_a_task_that_goes_on_where_it_was() {
        let (mut cpus, cpu) = (cpus(), CpuId(0));
        cpus.on(cpu).waiting.wakes(7, 0, SLICE, wait(1000));
        assert_eq!(cpus.set(Instant(1000), cpu), Some(Instant(2000)));
        for at in [1100, 1900] {
            cpus.complete(Instant(at), cpu, CompletionPlace::Interrupt);
        }
        assert!(matches!(cpus.next(Instant(2000), cpu, 0), Turn::Later(Instant(2600))), "2 times 300 ns later");
        assert!(matches!(cpus.next(Instant(2600), cpu, 0), Turn::Run(7)));
    }

    #[test]
    fn whose_turn_was_interrupted_has_its_next_one_after_who_was_not() {
        let (mut cpus, cpu) = (cpus(), CpuId(0));
        for task in [1, 2, 3] {
            cpus.on(cpu).waiting.wakes(task, 0, SLICE, wait(1000));
        }
        let mut at = cpus.set(Instant(1000), cpu);
        let mut order = Vec::new();
        while let Some(now) = at {
            match cpus.next(now, cpu, 0) {
                Turn::Later(later) => at = Some(later),
                Turn::Run(task) => {
                    order.push(task);
                    let on = cpus.on(cpu);
                    on.waiting.count(on.free_at, now, SLICE);
                    let lag = on.waiting.sleeps(task);
                    on.waiting.wakes(task, lag, SLICE, Wait { since: on.free_at, ..wait(1000) });
                    on.turn_ended = on.free_at;
                    at = if order.len() < 6 { cpus.set(now, cpu) } else { None };
                    if order == [1] {
                        cpus.complete(now, cpu, CompletionPlace::Interrupt);
                    }
                }
                Turn::Nobodys => at = None,
            }
        }
        assert_eq!(order, [1, 2, 3, 1, 3, 2], "task 2 was interrupted");
    }

    #[test]
    fn interrupts_keep_a_task_waiting_but_not_for_ever() {
        let (mut cpus, cpu) = (cpus(), CpuId(0));
        let mut interrupts = |at| cpus.complete(Instant(at), cpu, CompletionPlace::Interrupt);
        interrupts(1000);
        interrupts(1000);
        cpus.on(cpu).waiting.wakes(7, 0, SLICE, wait(0));
        assert_eq!(cpus.set(Instant(1000), cpu), Some(Instant(1600)));
        cpus.complete(Instant(1500), cpu, CompletionPlace::Interrupt);
        assert!(matches!(cpus.next(Instant(1600), cpu, 0), Turn::Later(Instant(1900))));
        let end = 1000 + PATIENCE.0;
        (0..PATIENCE.0 / 300 + 1).for_each(|_| _ = cpus.complete(Instant(1900), cpu, CompletionPlace::Interrupt));
        assert!(matches!(cpus.next(Instant(1900), cpu, 0), Turn::Later(at) if at.0 == end));
        assert!(matches!(cpus.next(Instant(end), cpu, 0), Turn::Run(7)));
    }
}
