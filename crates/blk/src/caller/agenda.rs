//! The agenda of a queue: a table of pending work that calls have requested, such as runs of hardware queues and timers.
//!
//! ```text
//! a call into the queue -> Effects -> Agenda::take -> in the table:       Agenda::carry_out, or Due::carry_out
//!                                                  -> for the caller:     an Action
//! ```
//!
//! A new request may replace an earlier one (BL-75 to BL-77, BL-90):
//!
//! - A run of a hardware queue whose worker is already scheduled is not set again; a longer delay replaces an earlier one,
//!   which may postpone the run.
//! - A run of all hardware queues is such a run of each; a delayed one skips hardware queues that already have a run set.
//! - The scheduler's timer and the timeout scan are replaced, and the timer can be cancelled.
//! - The end of a write-back-throttling window never changes.
//! - Each kick of the requeue list schedules a worker; a late one finds nothing to do.
//!
//! A caller with its own event queue, such as a simulator, is notified of what is [set](Workers::set), and checks at that
//! time whether it is [still due](Agenda::is_due). Other callers use [`next_at`](Agenda::next_at).

use crate::bio::{Bio, Status};
use crate::caller::block_queue::BlockQueue;
use crate::caller::env::{Cx, Env};
use crate::drive::driver::Driver;
use crate::drive::effects::{Effect, Effects};
use crate::ground::ids::{CpuId, HctxId, IoContextId, QueueId, RqId, Waiter};
use crate::ground::time::{Instant, Nanos};

/// A kind of pending work of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// The scheduler's timer.
    Timer,
    /// The scan for timeouts.
    Timeouts,
    /// The end of a window of write-back throttling.
    Window,
    /// Reinsertion of requeued requests.
    Requeue,
    /// A run of a hardware queue.
    Run(HctxId),
}

/// An action that only the caller can carry out.
#[derive(Debug)]
pub enum Action {
    /// Notify the submitter that a bio has ended, or a part of one.
    End {
        /// The bio.
        bio: Bio,
        /// How it ended.
        status: Status,
    },
    /// Wake a submitter that sleeps: it continues its submission.
    Wake(Waiter),
    /// A request has been at the device for too long: on this CPU, which started it, call
    /// [`timed_out`](BlockQueue::timed_out).
    TimedOut {
        /// The CPU.
        cpu: CpuId,
        /// The request.
        id: RqId,
    },
    /// Run a hardware queue of another queue on a worker, as [`Agenda::run`] of its agenda does.
    RunOther {
        /// The other queue.
        queue: QueueId,
        /// The hardware queue.
        hctx: HctxId,
    },
    /// Call [`Driver::arbitrate`] with these weights.
    Arbitrate(Option<[u16; 3]>),
    /// Have a process run on another CPU from its next wake-up on, if it is allowed to run there.
    MoveSubmitter {
        /// The I/O context of the process.
        io_context: IoContextId,
        /// The CPU.
        cpu: CpuId,
    },
}

/// The clock and the workers of a caller. An [`Instant`] is the simplest implementation: the current time, with workers
/// that run at once.
pub trait Workers {
    /// When a worker that is scheduled now runs on this CPU.
    fn start_worker(&mut self, cpu: CpuId) -> Instant;

    /// Latest time at which a worker that was scheduled earlier runs.
    fn called_worker_starts_by(&self) -> Instant;

    /// Sets the time of an entry, which replaces its earlier setting; the number distinguishes settings.
    fn set(&mut self, _at: Instant, _due: Due, _setting: u32) {}
}

impl Workers for Instant {
    fn start_worker(&mut self, _: CpuId) -> Instant {
        *self
    }

    fn called_worker_starts_by(&self) -> Instant {
        *self
    }
}

/// The pending work of one queue.
#[derive(Debug)]
pub struct Agenda {
    /// Indexed by [`Due::index`].
    slots: Vec<Slot>,
    /// One bit for each hardware queue without a pending run: a delayed "run all" applies to those.
    without_run: Vec<u64>,
    /// Number of times that a worker was scheduled for each hardware queue.
    calls: Vec<u32>,
    /// Number of settings so far: of two entries due at the same time, the one set first comes first.
    settings: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// [`Instant::NEVER`] if not set.
    at: Instant,
    setting: u32,
}

impl Due {
    const RUNS: usize = 4;

    /// Its index in an agenda.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Due::Timer => 0,
            Due::Timeouts => 1,
            Due::Window => 2,
            Due::Requeue => 3,
            Due::Run(hctx) => Due::RUNS + hctx.index(),
        }
    }

    /// The entry with this index.
    #[inline]
    #[must_use]
    pub fn due_from_index(index: usize) -> Due {
        match index {
            0 => Due::Timer,
            1 => Due::Timeouts,
            2 => Due::Window,
            3 => Due::Requeue,
            hctx => Due::Run(HctxId((hctx - Due::RUNS) as u16)),
        }
    }

    /// Carries it out, on the CPU of the call.
    #[inline]
    pub fn carry_out<E: Env>(self, queue: &impl BlockQueue, cx: &mut Cx<'_, E>) {
        match self {
            Due::Run(hctx) => queue.run_hctx(cx, hctx),
            Due::Timer => queue.timer(cx),
            Due::Timeouts => queue.scan_timeouts(cx),
            Due::Window => queue.wbt_window_expired(cx),
            Due::Requeue => queue.kick_requeue(cx),
        }
    }
}

impl Agenda {
    /// An empty agenda of a queue with `hw_queues` hardware queues.
    #[must_use]
    pub fn new(hw_queues: u16) -> Self {
        let mut agenda = Agenda {
            slots: vec![Slot { at: Instant::NEVER, setting: 0 }; Due::RUNS + usize::from(hw_queues)],
            without_run: vec![0; usize::from(hw_queues).div_ceil(64)],
            calls: vec![0; usize::from(hw_queues)],
            settings: 0,
        };
        (0..usize::from(hw_queues)).for_each(|hctx| agenda.mark_run(Due::RUNS + hctx, false));
        agenda
    }

    /// Takes effects of calls on `cpu`, oldest first, and returns the first action for the caller.
    #[inline]
    pub fn take(
        &mut self,
        queue: &impl BlockQueue,
        cpu: CpuId,
        effects: &mut Effects,
        workers: &mut impl Workers,
    ) -> Option<Action> {
        while let Some(effect) = effects.pop() {
            let action = self.handle_effect(queue, cpu, effect, workers);
            if action.is_some() {
                return action;
            }
        }
        None
    }

    #[inline]
    fn handle_effect(
        &mut self,
        queue: &impl BlockQueue,
        cpu: CpuId,
        effect: Effect,
        workers: &mut impl Workers,
    ) -> Option<Action> {
        match effect {
            Effect::EndBio { bio, status } => return Some(Action::End { bio, status }),
            Effect::Wake(waiter) => return Some(Action::Wake(waiter)),
            Effect::TimedOut { cpu, id } => return Some(Action::TimedOut { cpu, id }),
            Effect::RunOther { queue, hctx } => return Some(Action::RunOther { queue, hctx }),
            Effect::Arbitrate(weights) => return Some(Action::Arbitrate(weights)),
            Effect::MoveSubmitter { io_context, cpu } => return Some(Action::MoveSubmitter { io_context, cpu }),
            Effect::RunHctx { hctx, delay } => self.run(queue, hctx, delay, workers),
            Effect::RunAll { delay } => self.run_all(queue, cpu, delay, workers),
            Effect::KickRequeue => {
                let at = workers.start_worker(queue.worker_cpu(HctxId(0), 0));
                let earliest = self.slots[Due::Requeue.index()].at;
                self.set(at, Due::Requeue, workers);
                let slot = &mut self.slots[Due::Requeue.index()];
                slot.at = slot.at.min(earliest);
            }
            Effect::SetTimer(at) => self.set(at, Due::Timer, workers),
            Effect::CancelTimer => drop(self.cancel(Due::Timer)),
            Effect::SetTimeout(at) => self.set(at, Due::Timeouts, workers),
            Effect::SetWindow(at) => {
                debug_assert!(self.at(Due::Window) == Instant::NEVER, "there is one window at a time");
                self.set(at, Due::Window, workers);
            }
        }
        None
    }

    /// Sets a run of a hardware queue on a worker.
    #[inline]
    pub fn run(&mut self, queue: &impl BlockQueue, hctx: HctxId, delay: Nanos, workers: &mut impl Workers) {
        let calls = &mut self.calls[hctx.index()];
        let call = *calls;
        *calls = call.wrapping_add(1);
        if self.at(Due::Run(hctx)) > workers.called_worker_starts_by() {
            let at = workers.start_worker(queue.worker_cpu(hctx, call)) + delay;
            self.set(at, Due::Run(hctx), workers);
        }
    }

    /// Sets runs of all hardware queues on workers.
    pub fn run_all(&mut self, queue: &impl BlockQueue, cpu: CpuId, delay: Nanos, workers: &mut impl Workers) {
        if queue.hw_queues() == 1 {
            if delay == Nanos::ZERO || self.at(Due::Run(HctxId(0))) == Instant::NEVER {
                self.run(queue, HctxId(0), delay, workers);
            }
            return;
        }
        if delay == Nanos::ZERO {
            for hctx in (0..queue.hw_queues()).map(HctxId).filter(|&hctx| queue.is_run_by_run_all(cpu, hctx)) {
                self.run(queue, hctx, delay, workers);
            }
            return;
        }
        for word in 0..self.without_run.len() {
            let mut remaining = self.without_run[word];
            while remaining != 0 {
                let hctx = HctxId((word * 64) as u16 + remaining.trailing_zeros() as u16);
                remaining &= remaining - 1;
                if queue.is_run_by_run_all(cpu, hctx) {
                    self.run(queue, hctx, delay, workers);
                }
            }
        }
    }

    /// Records in `without_run` whether a run is set at this place.
    #[inline]
    fn mark_run(&mut self, index: usize, is_set: bool) {
        let Some(hctx) = index.checked_sub(Due::RUNS) else { return };
        let bit = 1 << (hctx % 64);
        let word = &mut self.without_run[hctx / 64];
        *word = if is_set { *word & !bit } else { *word | bit };
    }

    /// Cancels an entry. Returns when it was due.
    pub fn cancel(&mut self, due: Due) -> Option<Instant> {
        let at = std::mem::replace(&mut self.slots[due.index()].at, Instant::NEVER);
        self.mark_run(due.index(), false);
        (at != Instant::NEVER).then_some(at)
    }

    #[inline]
    fn at(&self, due: Due) -> Instant {
        self.slots[due.index()].at
    }

    #[inline]
    fn set(&mut self, at: Instant, due: Due, workers: &mut impl Workers) {
        self.settings = self.settings.wrapping_add(1);
        self.slots[due.index()] = Slot { at, setting: self.settings };
        self.mark_run(due.index(), true);
        workers.set(at, due, self.settings);
    }

    // --- for callers with an event queue ---

    /// Whether a setting that is due now is still valid. If so it is removed, and the caller carries it out.
    #[inline]
    pub fn is_due(&mut self, due: Due, setting: u32) -> bool {
        let slot = &mut self.slots[due.index()];
        if slot.setting == setting && slot.at != Instant::NEVER {
            slot.at = Instant::NEVER;
            self.mark_run(due.index(), false);
            return true;
        }
        due == Due::Requeue
    }

    // --- for callers without ---

    /// When the next entry is due, if any.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.slots.iter().map(|slot| slot.at).min().filter(|&at| at != Instant::NEVER)
    }

    /// Takes effects, and carries out everything that is due and all that results from it, in the order of the requests.
    /// `action` carries out actions that only the caller can.
    pub fn carry_out<E: Env>(
        &mut self,
        queue: &impl BlockQueue,
        cx: &mut Cx<'_, E>,
        mut action: impl FnMut(&mut Cx<'_, E>, Action),
    ) {
        loop {
            while let Some(due) = self.take_due(cx.now.at) {
                due.carry_out(queue, cx);
            }
            let Some(effect) = cx.effects.pop() else { return };
            match self.handle_effect(queue, cx.cpu, effect, &mut cx.now.at) {
                Some(Action::Arbitrate(weights)) => cx.driver.arbitrate(weights),
                Some(todo) => action(cx, todo),
                None => {}
            }
        }
    }

    /// Takes the entry that is due earliest, to be [carried out](Due::carry_out).
    pub fn take_due(&mut self, now: Instant) -> Option<Due> {
        let age = |slot: &Slot| self.settings.wrapping_sub(slot.setting);
        let is_due = |(_, slot): &(usize, &Slot)| slot.at <= now && slot.at != Instant::NEVER;
        let due = self.slots.iter().enumerate().filter(is_due);
        let (index, _) = due.min_by_key(|(_, slot)| (slot.at, std::cmp::Reverse(age(slot))))?;
        let due = Due::due_from_index(index);
        self.cancel(due).map(|_| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::kernel::Kernel;
    use crate::ground::sharing::Local;
    use crate::queue::{Queue, QueueConfig};

    const HCTX: HctxId = HctxId(1);
    const RUN: Due = Due::Run(HCTX);
    const DELAY: Nanos = Nanos::from_millis(3);

    /// Workers that come after 10 us, and what was set last.
    struct Slow {
        now: Instant,
        set: Vec<(Instant, Due, u32)>,
        came_to: Vec<u32>,
    }

    impl Workers for Slow {
        fn start_worker(&mut self, cpu: CpuId) -> Instant {
            self.came_to.push(cpu.0);
            self.called_worker_starts_by()
        }

        fn called_worker_starts_by(&self) -> Instant {
            self.now + Nanos::from_micros(10)
        }

        fn set(&mut self, at: Instant, due: Due, setting: u32) {
            self.set.push((at, due, setting));
        }
    }

    struct Bench {
        queue: Queue<Local>,
        agenda: Agenda,
        workers: Slow,
    }

    impl Bench {
        fn new() -> Self {
            let config = QueueConfig { cpus: 2, hw_queues: 2, ..QueueConfig::new(Kernel::V6_18) };
            Bench {
                queue: Queue::new(&config, "none").unwrap(),
                agenda: Agenda::new(2),
                workers: Slow { now: Instant::ZERO, set: Vec::new(), came_to: Vec::new() },
            }
        }

        /// Notes an effect at this time, ns. Returns what it has set.
        fn note(&mut self, at_ns: u64, effect: Effect) -> Vec<(u64, Due, u32)> {
            self.workers.now = Instant(at_ns);
            assert!(self.agenda.handle_effect(&self.queue, CpuId(0), effect, &mut self.workers).is_none());
            self.workers.set.drain(..).map(|(at, due, setting)| (at.0, due, setting)).collect()
        }
    }

    #[test]
    fn a_delayed_run_is_postponed_by_a_later_queueing_of_its_queue() {
        let mut bench = Bench::new();
        let later = |delay| Effect::RunHctx { hctx: HCTX, delay };
        assert_eq!(bench.note(0, later(DELAY)), [(3_010_000, RUN, 1)]);
        assert_eq!(bench.note(1_000_000, later(DELAY)), [(4_010_000, RUN, 2)]);
        assert!(!bench.agenda.is_due(RUN, 1), "the first is void");
        assert!(bench.agenda.is_due(RUN, 2) && !bench.agenda.is_due(RUN, 2), "the second takes place once");
    }

    #[test]
    fn a_delayed_run_is_not_postponed_by_a_delayed_run_of_all_queues() {
        let mut bench = Bench::new();
        bench.note(0, Effect::RunHctx { hctx: HCTX, delay: DELAY });
        let other = Due::Run(HctxId(0));
        assert_eq!(bench.note(1000, Effect::RunAll { delay: DELAY }), [(3_011_000, other, 2)]);
        let both = [(12_000, other, 3), (12_000, RUN, 4)];
        assert_eq!(bench.note(2000, Effect::RunAll { delay: Nanos::ZERO }), both, "a run of all at once does not wait");
    }

    #[test]
    fn a_delayed_run_of_all_queues_skips_those_that_already_have_one() {
        let config = QueueConfig { cpus: 70, hw_queues: 70, ..QueueConfig::new(Kernel::V6_18) };
        let mut bench = Bench {
            queue: Queue::new(&config, "none").unwrap(),
            agenda: Agenda::new(70),
            workers: Slow { now: Instant::ZERO, set: Vec::new(), came_to: Vec::new() },
        };
        let all = || Effect::RunAll { delay: DELAY };
        assert_eq!(bench.note(0, all()).len(), 70);
        assert_eq!(bench.note(1000, all()), [], "all are set");
        assert!(bench.agenda.is_due(Due::Run(HctxId(68)), 69));
        assert_eq!(bench.agenda.cancel(Due::Run(HctxId(3))), Some(Instant(3_010_000)));
        let both = [(3_012_000, Due::Run(HctxId(3)), 71), (3_012_000, Due::Run(HctxId(68)), 72)];
        assert_eq!(bench.note(2000, all()), both);
    }

    #[test]
    fn a_worker_that_is_on_its_way_is_not_called_twice() {
        let mut bench = Bench::new();
        let run = || Effect::RunHctx { hctx: HCTX, delay: Nanos::ZERO };
        assert_eq!(bench.note(0, run()), [(10_000, RUN, 1)]);
        assert_eq!(bench.note(5000, run()), []);
        assert!(bench.agenda.is_due(RUN, 1));
        assert_eq!(bench.note(10_000, run()), [(20_000, RUN, 2)]);
    }

    #[test]
    fn a_run_that_is_due_when_a_worker_would_come_needs_no_other() {
        let mut bench = Bench::new();
        bench.note(0, Effect::RunHctx { hctx: HCTX, delay: Nanos(5000) });
        assert_eq!(bench.note(5000, Effect::RunHctx { hctx: HCTX, delay: Nanos::ZERO }), []);
        assert_eq!(bench.note(4999, Effect::RunHctx { hctx: HCTX, delay: Nanos::ZERO }), [(14_999, RUN, 2)]);
    }

    #[test]
    fn workers_of_a_hardware_queue_rotate_over_its_cpus_every_eight_calls() {
        let config = QueueConfig { cpus: 4, hw_queues: 2, ..QueueConfig::new(Kernel::V6_18) };
        let mut bench = Bench { queue: Queue::new(&config, "none").unwrap(), ..Bench::new() };
        let cpus: Vec<u32> = bench.queue.hctx(HCTX).cpus().iter().map(|cpu| cpu.0).collect();
        assert_eq!(cpus.len(), 2);
        for call in 0..24 {
            bench.note(call * 20_000, Effect::RunHctx { hctx: HCTX, delay: Nanos::ZERO });
            assert!(bench.agenda.cancel(RUN).is_some());
        }
        let turns: Vec<Vec<u32>> = bench.workers.came_to.chunks(8).map(<[u32]>::to_vec).collect();
        assert_eq!(turns, [[cpus[0]; 8], [cpus[1]; 8], [cpus[0]; 8]]);
    }

    #[test]
    fn a_timer_is_replaced_and_taken_back_and_each_kick_counts() {
        let mut bench = Bench::new();
        bench.note(0, Effect::SetTimer(Instant(500)));
        assert_eq!(bench.note(0, Effect::SetTimer(Instant(800))), [(800, Due::Timer, 2)]);
        assert!(!bench.agenda.is_due(Due::Timer, 1));
        bench.note(0, Effect::CancelTimer);
        assert!(!bench.agenda.is_due(Due::Timer, 2));
        assert_eq!(bench.note(0, Effect::KickRequeue), [(10_000, Due::Requeue, 3)]);
        assert_eq!(bench.note(0, Effect::KickRequeue), [(10_000, Due::Requeue, 4)]);
        assert!(bench.agenda.is_due(Due::Requeue, 3) && bench.agenda.is_due(Due::Requeue, 4));
    }

    #[test]
    fn a_caller_without_event_queue_gets_the_next_due_time_and_action() {
        let mut bench = Bench::new();
        assert_eq!(bench.agenda.next_at(), None);
        bench.note(0, Effect::SetTimer(Instant(90_000)));
        bench.note(0, Effect::SetWindow(Instant(50_000)));
        bench.note(0, Effect::RunHctx { hctx: HCTX, delay: Nanos(40_000) });
        assert_eq!(bench.agenda.next_at(), Some(Instant(50_000)));
        assert_eq!(bench.agenda.take_due(Instant(49_999)), None);
        let mut order = Vec::new();
        while let Some(due) = bench.agenda.take_due(Instant(90_000)) {
            order.push(due);
        }
        assert_eq!(order, [Due::Window, RUN, Due::Timer], "what was asked for first, of two at the same moment");
        assert_eq!(bench.agenda.next_at(), None);
    }

    #[test]
    fn every_due_action_maps_to_a_number_and_back() {
        for due in [Due::Timer, Due::Timeouts, Due::Window, Due::Requeue, Due::Run(HctxId(0)), Due::Run(HctxId(2047))] {
            assert_eq!(Due::due_from_index(due.index()), due);
        }
    }
}
