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
//! A task acts at one moment, the end of its first submission: it reaps, and puts its whole batch forward. Its CPU is then
//! busy for the rest of the batch. To let the I/Os of a batch arrive `submit_ns` apart would take an event for each;
//! so it is one event a wake-up, and the first I/O of a batch, the only one of a shallow closed loop, is exactly in
//! time. A completion while its task runs wakes nobody, and the task goes on when it has done what it does. One that
//! comes while the task is on its way is taken along.
//!
//! Interrupts come one after the other, before tasks: a device that completes faster than its CPU takes interrupts is held up by
//! that, and a task that they keep for too long has its turn all the same.
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
//! What workers of hardware queues do is part of `submit_ns`; they come after `worker_ns` and wait for no CPU.

use std::collections::VecDeque;

use hoistway_blk::{CompletionPlace, CpuId, Instant, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::host::{Host, IDLE_STATES_MAX};
use crate::span::Span;
use crate::task::Task;

/// Interrupts go before tasks, but keep one no longer than this: then Linux makes the work of interrupts wait as well. The
/// length is assumed.
const PATIENCE: Nanos = Nanos::from_millis(2);

/// Whose turn it is on a CPU that tasks wait for.
pub(crate) enum Turn {
    /// This task's.
    Run(u32),
    /// Nobody's before this moment.
    Later(Instant),
}

/// The CPUs of the host.
pub(crate) struct Cpus {
    cpus: Vec<Cpu>,
    /// The last of all `interrupts_until`.
    interrupts_until: Instant,
    submit: Nanos,
    complete: Nanos,
    redirect: Nanos,
    wake: Span,
    worker: Span,
    idle: [IdleState; IDLE_STATES_MAX],
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
    /// The task that ran last, and until when it runs.
    task: u32,
    task_until: Instant,
    /// Tasks whose wake-up is over, in the order in which they came, and since when they wait.
    waiting: VecDeque<(u32, Instant)>,
    /// An event is set that gives it to the first of them.
    is_set: bool,
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

impl Cpus {
    pub(crate) fn new(host: &Host, cpus: u16) -> Self {
        let cache_cpus = host.cache_cpus.unwrap_or(cpus).max(1);
        Cpus {
            cpus: (0..cpus).map(|cpu| Cpu { cache: cpu / cache_cpus, ..Cpu::default() }).collect(),
            interrupts_until: Instant::ZERO,
            submit: Nanos(host.submit_ns),
            complete: Nanos(host.complete_ns),
            redirect: Nanos(host.redirect_ns),
            wake: Span::new(host.wake_ns),
            worker: Span::new(host.worker_ns),
            idle: idle_states(&host.idle_ns),
        }
    }

    /// What a CPU that wakes now pays for having slept.
    #[inline]
    fn exit(&self, now: Instant, cpu: CpuId) -> Nanos {
        let idle = now.since(self.cpus[cpu.index()].free_at);
        // Nobody can guess how deep a CPU sleeps, and a processor that tries loses more than these sums cost.
        Nanos(self.idle.iter().map(|state| if idle >= state.after { state.more.0 } else { 0 }).sum())
    }

    /// The longest that a worker takes on a CPU that is awake.
    pub(crate) fn worker_max(&self) -> Nanos {
        self.worker.max()
    }

    /// When a worker runs that is woken now, on this CPU.
    #[inline]
    pub(crate) fn worker_runs(&self, now: Instant, cpu: CpuId, random: &mut Xoshiro256PlusPlus) -> Instant {
        now + self.worker.draw(random) + self.exit(now, cpu)
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
        self.interrupt(now, cpu, time);
        let on = self.on(cpu);
        on.interrupts_until = on.interrupts_until.max(now + time);
        self.interrupts_until = self.interrupts_until.max(now + time);
    }

    /// An interrupt takes so much of a CPU's time.
    #[inline]
    fn interrupt(&mut self, now: Instant, cpu: CpuId, time: Nanos) {
        let on = self.on(cpu);
        on.free_at = on.free_at.max(now) + time;
        if on.task_until > now {
            on.task_until += time;
        }
    }

    /// Whether two CPUs share a cache.
    #[inline]
    pub(crate) fn share_cache(&self, one: CpuId, other: CpuId) -> bool {
        self.cpus[one.index()].cache == self.cpus[other.index()].cache
    }

    /// When a task that is woken now has its first submission done, if its CPU is free then.
    #[inline]
    pub(crate) fn wake(&self, now: Instant, task: &mut Task) -> Instant {
        let on = &self.cpus[task.cpu.index()];
        if on.task_until > now && on.task == task.number {
            return on.task_until + self.submit;
        }
        if let Some(since) = task.spins_since.take() {
            task.charge(now, now.since(since));
            return on.free_at.max(now) + self.submit;
        }
        now + self.complete + self.exit(now, task.cpu) + self.wake.draw(&mut task.wake_random) + self.submit
    }

    /// Whether a CPU had the time for a task that submits now.
    #[inline]
    pub(crate) fn is_free(&mut self, now: Instant, cpu: CpuId) -> bool {
        let submit = self.submit;
        let on = self.on(cpu);
        on.waiting.is_empty() && on.free_at + submit <= now
    }

    /// A task waits for its CPU. Answers when to give it to the next one, if that is not set yet.
    pub(crate) fn enqueue(&mut self, now: Instant, cpu: CpuId, task: u32) -> Option<Instant> {
        self.on(cpu).waiting.push_back((task, now));
        self.set(cpu)
    }

    /// Whose turn it is now.
    pub(crate) fn next(&mut self, now: Instant, cpu: CpuId) -> Turn {
        let free_at = self.on(cpu).free_at + self.submit;
        let on = self.on(cpu);
        let patient_until = on.waiting.front().map_or(now, |&(_, since)| since + PATIENCE);
        let at = free_at.min(patient_until);
        if at <= now
            && let Some((task, _)) = on.waiting.pop_front()
        {
            on.is_set = false;
            return Turn::Run(task);
        }
        Turn::Later(at)
    }

    /// A task has run and put so many I/Os forward. Answers when to give the CPU to the next one, if anybody waits.
    #[inline]
    pub(crate) fn ran(&mut self, now: Instant, task: &mut Task, submissions: u32) -> Option<Instant> {
        let rest = Nanos(self.submit.0 * u64::from(submissions.saturating_sub(1)));
        task.charge(now, self.submit + rest);
        let on = self.on(task.cpu);
        on.free_at = on.free_at.max(now) + rest + std::mem::take(&mut task.spin);
        on.task = task.number;
        on.task_until = on.free_at;
        task.spins_since = task.is_polling().then_some(on.free_at);
        if on.waiting.is_empty() { None } else { self.set(task.cpu) }
    }

    /// A task that runs copies for so long. Answers when it goes on, if nobody else has its CPU then.
    pub(crate) fn copies(&mut self, now: Instant, task: &mut Task, time: Nanos) -> Instant {
        task.charge(now, time);
        let submit = self.submit;
        let on = self.on(task.cpu);
        on.free_at = on.free_at.max(now) + time;
        on.free_at + submit
    }

    fn set(&mut self, cpu: CpuId) -> Option<Instant> {
        let submit = self.submit;
        let on = self.on(cpu);
        (!std::mem::replace(&mut on.is_set, true)).then_some(on.free_at + submit)
    }

    /// What a completion costs the interrupted CPU if its work is done elsewhere.
    pub(crate) fn redirection(&self) -> Nanos {
        self.redirect
    }

    /// What a completion costs.
    #[inline]
    pub(crate) fn completion(&self) -> Nanos {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn interrupts_keep_a_task_waiting_but_not_for_ever() {
        let (mut cpus, cpu) = (cpus(), CpuId(0));
        let mut interrupts = |at| cpus.complete(Instant(at), cpu, CompletionPlace::Interrupt);
        interrupts(1000);
        interrupts(1000);
        assert_eq!(cpus.enqueue(Instant(1000), cpu, 7), Some(Instant(1600)));
        cpus.complete(Instant(1500), cpu, CompletionPlace::Interrupt);
        assert!(matches!(cpus.next(Instant(1600), cpu), Turn::Later(Instant(1900))));
        let end = 1000 + PATIENCE.0;
        (0..PATIENCE.0 / 300 + 1).for_each(|_| _ = cpus.complete(Instant(1900), cpu, CompletionPlace::Interrupt));
        assert!(matches!(cpus.next(Instant(1900), cpu), Turn::Later(at) if at.0 == end));
        assert!(matches!(cpus.next(Instant(end), cpu), Turn::Run(7)));
    }
}
