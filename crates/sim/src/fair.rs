//! Whose turn it is on a CPU that several tasks want: EEVDF in outline, all tasks weighing the same.
//!
//! A task's virtual time is the CPU time that it has had while others wanted some. Those that are not beyond the average of all
//! that are here are eligible, and of these the one with the earliest deadline runs; a deadline lies a slice beyond the virtual time
//! at which it was set. A task that wakes comes in at the average less its lag, which is what it was owed when it fell asleep. One
//! that falls asleep and has had too much stays in the average until its turn would have come, and then owes nothing.
//!
//! A task that runs alone is not counted: there is no lag without others.

use hoistway_blk::ground::{Instant, Nanos};

/// The tasks that want a CPU, beside the one that has it.
#[derive(Clone, Default)]
pub(crate) struct FairQueue {
    /// In the order of their deadlines.
    tasks: Vec<Entity>,
    /// How many of them wait; the others sleep, and have had too much.
    waiting: usize,
    /// The sum of their virtual times, ns.
    sum: i64,
    /// The task that runs, if it is counted, and since when it has not been.
    running: Option<(Times, Instant)>,
    /// When a task woke that goes before the task that runs.
    preempted: Option<Instant>,
}

/// Times of a task, ns.
#[derive(Clone, Copy)]
struct Times {
    virtual_time: i64,
    deadline: i64,
}

#[derive(Clone, Copy)]
struct Entity {
    task: u32,
    times: Times,
    /// None: it sleeps.
    waits: Option<Wait>,
}

/// How a task waits for its CPU.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) since: Instant,
    /// What it does first, when it has the CPU.
    pub(crate) entry: Nanos,
    /// What it takes to switch to it before that.
    pub(crate) switch: Nanos,
    /// The last part of `entry`, in which it is in a system call.
    pub(crate) in_call: Nanos,
}

impl FairQueue {
    /// Whether none waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Since when the task that runs should give way to one that woke; none if it need not.
    #[inline]
    pub(crate) fn preempted(&self) -> Option<Instant> {
        self.preempted
    }

    /// Whether the task that runs has had its slice.
    pub(crate) fn slice_is_over(&self) -> bool {
        self.running.is_some_and(|(times, _)| times.virtual_time >= times.deadline)
    }

    /// The time of the task that runs is counted up to now. If it was alone so far, its turn began at `began`.
    pub(crate) fn count(&mut self, now: Instant, began: Instant, slice: Nanos) {
        let average = self.sum.checked_div(self.tasks.len() as i64).unwrap_or(0);
        let alone = || {
            let left = slice.0.saturating_sub(now.since(began).0);
            (Times { virtual_time: average, deadline: average + left as i64 }, now)
        };
        let (times, until) = self.running.get_or_insert_with(alone);
        times.virtual_time += now.since(*until).0 as i64;
        *until = now;
    }

    /// A task has woken, and waits. The time of the one that runs has been counted, if there is one.
    pub(crate) fn wakes(&mut self, task: u32, lag_ns: i64, slice: Nanos, wait: Wait) {
        let virtual_time = self.take_sleeping(task).unwrap_or_else(|| {
            let count = self.entity_count();
            // It pulls the average towards itself.
            let of_others = self.total().checked_div(count);
            of_others.map_or(0, |average| average - lag_ns * (count + 1) / count)
        });
        let times = Times { virtual_time, deadline: virtual_time + slice.0 as i64 };
        self.add(Entity { task, times, waits: Some(wait) });
        let is_over = self.running.is_some_and(|(running, _)| !self.is_eligible(running));
        if is_over && self.best().is_some_and(|at| self.tasks[at].task == task) {
            self.preempted.get_or_insert(wait.since);
        }
    }

    /// The task that runs, and whose time has been counted, waits for another turn.
    pub(crate) fn preempt_task(&mut self, task: u32, slice: Nanos, wait: Wait) {
        self.preempted = None;
        let Some((mut times, _)) = self.running.take() else { return };
        if times.virtual_time >= times.deadline {
            times.deadline = times.virtual_time + slice.0 as i64;
        }
        self.add(Entity { task, times, waits: Some(wait) });
    }

    /// The task that runs, and whose time has been counted if others wait, falls asleep. Returns its lag.
    #[inline]
    pub(crate) fn sleeps(&mut self, task: u32) -> i64 {
        if self.running.is_some() { self.sleep_and_return_lag(task) } else { 0 }
    }

    fn sleep_and_return_lag(&mut self, task: u32) -> i64 {
        self.preempted = None;
        let average = self.total() / self.entity_count();
        let Some((times, _)) = self.running.take() else { return 0 };
        let lag = average - times.virtual_time;
        if self.waiting == 0 {
            self.tasks.clear();
            self.sum = 0;
        } else if lag < 0 {
            self.add(Entity { task, times, waits: None });
        }
        lag.max(0)
    }

    /// The task whose turn is next.
    pub(crate) fn next(&mut self) -> Option<(u32, Wait)> {
        while self.waiting > 0 {
            let at = self.best()?;
            match self.tasks[at] {
                Entity { task, waits: Some(wait), .. } => return Some((task, wait)),
                _ => _ = self.remove(at),
            }
        }
        None
    }

    /// A task that waits has the CPU; its turn began then.
    pub(crate) fn runs(&mut self, began: Instant, task: u32) {
        if let Some(at) = self.tasks.iter().position(|entity| entity.task == task) {
            self.running = Some((self.remove(at).times, began));
        }
    }

    fn entity_count(&self) -> i64 {
        self.tasks.len() as i64 + i64::from(self.running.is_some())
    }

    fn total(&self) -> i64 {
        self.sum + self.running.map_or(0, |(times, _)| times.virtual_time)
    }

    /// Whether a virtual time is not beyond the average.
    fn is_eligible(&self, times: Times) -> bool {
        times.virtual_time * self.entity_count() <= self.total()
    }

    /// Of those that are eligible the one with the earliest deadline.
    fn best(&self) -> Option<usize> {
        self.tasks.iter().position(|entity| self.is_eligible(entity.times))
    }

    /// A task that sleeps here leaves. Returns its virtual time.
    fn take_sleeping(&mut self, task: u32) -> Option<i64> {
        if self.waiting == self.tasks.len() {
            return None;
        }
        let at = self.tasks.iter().position(|entity| entity.task == task)?;
        Some(self.remove(at).times.virtual_time)
    }

    /// Whether a task waits for a turn.
    pub(crate) fn has_waiting(&self, task: u32) -> bool {
        self.tasks.iter().any(|entity| entity.task == task && entity.waits.is_some())
    }

    /// A task that sleeps has gone to another CPU: it counts here no more.
    pub(crate) fn leaves(&mut self, task: u32) {
        let _ = self.take_sleeping(task);
    }

    fn add(&mut self, entity: Entity) {
        self.sum += entity.times.virtual_time;
        self.waiting += usize::from(entity.waits.is_some());
        let at = self.tasks.partition_point(|other| other.times.deadline <= entity.times.deadline);
        self.tasks.insert(at, entity);
    }

    fn remove(&mut self, at: usize) -> Entity {
        let entity = self.tasks.remove(at);
        self.sum -= entity.times.virtual_time;
        self.waiting -= usize::from(entity.waits.is_some());
        entity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Nanos = Nanos(1000);

    fn at(since: u64) -> Wait {
        Wait { since: Instant(since), entry: Nanos::ZERO, switch: Nanos::ZERO, in_call: Nanos::ZERO }
    }

    fn next(queue: &mut FairQueue, now: u64) -> Option<u32> {
        let (task, _) = queue.next()?;
        queue.runs(Instant(now), task);
        Some(task)
    }

    /// Task 1 has run alone for 100 ns when task 2 wakes.
    fn one_runs_and_another_waits() -> FairQueue {
        let mut queue = FairQueue::default();
        queue.count(Instant(100), Instant::ZERO, SLICE);
        queue.wakes(2, 0, SLICE, at(100));
        queue
    }

    #[test]
    fn a_woken_task_owed_nothing_waits_for_the_sleep_or_slice_end_of_the_other() {
        let mut queue = one_runs_and_another_waits();
        assert_eq!(queue.preempted(), None);
        queue.count(Instant(999), Instant::ZERO, SLICE);
        assert!(!queue.slice_is_over());
        queue.count(Instant(1000), Instant::ZERO, SLICE);
        assert!(queue.slice_is_over());
        queue.preempt_task(1, SLICE, at(1000));
        assert_eq!(next(&mut queue, 1000), Some(2));
    }

    #[test]
    fn a_waiting_task_is_owed_half_its_wait_and_runs_first_next_time() {
        let mut queue = one_runs_and_another_waits();
        queue.count(Instant(500), Instant::ZERO, SLICE);
        assert_eq!(queue.sleeps(1), 0, "it has had 400 ns, and the other one nothing");
        assert_eq!(next(&mut queue, 500), Some(2));
        queue.count(Instant(600), Instant(500), SLICE);
        let lag = queue.sleeps(2);
        assert_eq!(lag, (400 - 100) / 2);
        assert!(queue.is_empty());

        queue.count(Instant(2000), Instant(1000), SLICE);
        queue.wakes(2, lag, SLICE, at(2000));
        assert_eq!(queue.preempted(), Some(Instant(2000)));
    }

    #[test]
    fn a_task_that_overran_its_share_returns_from_sleep_where_it_was() {
        let mut queue = one_runs_and_another_waits();
        queue.wakes(3, 0, SLICE, at(110));
        queue.count(Instant(400), Instant::ZERO, SLICE);
        queue.sleeps(1);
        assert_eq!(next(&mut queue, 400), Some(2));
        queue.count(Instant(410), Instant(400), SLICE);
        queue.wakes(1, 0, SLICE, at(410));
        queue.sleeps(2);
        assert_eq!(next(&mut queue, 410), Some(3), "task 1 is 300 ns ahead of it");
        queue.sleeps(3);
        assert_eq!(next(&mut queue, 420), Some(1));
    }

    #[test]
    fn a_task_that_had_exactly_its_share_returns_from_sleep_at_the_average() {
        let mut queue = FairQueue::default();
        queue.count(Instant::ZERO, Instant::ZERO, SLICE);
        queue.wakes(2, 0, SLICE, at(0));
        assert_eq!(queue.sleeps(1), 0);
        assert_eq!(next(&mut queue, 0), Some(2));
        queue.count(Instant(500), Instant::ZERO, SLICE);
        queue.wakes(1, 0, SLICE, at(500));
        assert_eq!(queue.preempted(), None, "it was owed nothing, and what has been since is not its affair");
    }

    #[test]
    fn a_task_that_ran_alone_is_owed_nothing() {
        let mut queue = FairQueue::default();
        assert_eq!(queue.sleeps(1), 0);
        assert_eq!(next(&mut queue, 0), None);
    }

    #[test]
    fn a_woken_task_keeps_its_lag_among_any_number_of_others() {
        for others in 1..6 {
            let mut queue = FairQueue::default();
            queue.count(Instant(600), Instant::ZERO, SLICE);
            (0..others).for_each(|task| queue.wakes(task, 0, SLICE, at(600)));
            queue.count(Instant(900), Instant::ZERO, SLICE);
            queue.wakes(9, 120, SLICE, at(900));
            let woken = queue.tasks.iter().find(|entity| entity.task == 9).unwrap().times;
            let owed = queue.total() / queue.entity_count() - woken.virtual_time;
            assert!((owed - 120).abs() <= 1, "{owed} beside {others}");
        }
    }
}
