//! The CPU scheduler: a simplified EEVDF in which all tasks have the same weight.
//!
//! Used by: `cpu`.
//! Tests: below.
//!
//! A task's virtual time is the CPU time that it has used while other tasks wanted the CPU. Tasks whose virtual time is not beyond
//! the average are eligible; of these, the one with the earliest deadline runs. A deadline is one slice after the virtual time at
//! which it was set. A woken task starts at the average minus its lag, the CPU time that it was owed when it fell asleep. A task
//! that falls asleep after more than its share stays in the average until its turn would have come, and then its lag is 0.
//!
//! The time of a task that runs alone is not counted: there is no lag without competitors.

use hoistway_blk::ground::{Instant, Nanos};

/// The run queue of a CPU, without the running task.
#[derive(Clone, Default)]
pub(crate) struct FairQueue {
    /// In the order of their deadlines.
    tasks: Vec<Entity>,
    /// Number of waiting tasks; the others sleep after more than their share.
    waiting: usize,
    /// Sum of the tasks' virtual times, ns.
    sum: i64,
    /// Times of the running task, counted up to the given instant; `None` while it is not counted.
    running: Option<(Times, Instant)>,
    /// When a task woke that should preempt the running one.
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
    /// `None` if the task sleeps.
    waits: Option<Wait>,
}

/// How a task waits for its CPU.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) since: Instant,
    /// CPU time of its first step.
    pub(crate) entry: Nanos,
    /// CPU time of the switch before that step.
    pub(crate) switch: Nanos,
    /// Final part of `entry` that runs inside a system call.
    pub(crate) in_call: Nanos,
}

impl FairQueue {
    /// Whether no task waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Since when the running task should be preempted by a woken one; `None` if it should not.
    #[inline]
    pub(crate) fn preempted(&self) -> Option<Instant> {
        self.preempted
    }

    /// Whether the running task has used up its slice.
    pub(crate) fn slice_is_over(&self) -> bool {
        self.running.is_some_and(|(times, _)| times.virtual_time >= times.deadline)
    }

    /// Counts the time of the running task up to now. `began` is the start of its turn, used if it was alone so far.
    pub(crate) fn charge_running(&mut self, now: Instant, began: Instant, slice: Nanos) {
        let average = self.sum.checked_div(self.tasks.len() as i64).unwrap_or(0);
        let alone = || {
            let left = slice.0.saturating_sub(now.since(began).0);
            (Times { virtual_time: average, deadline: average + left as i64 }, now)
        };
        let (times, until) = self.running.get_or_insert_with(alone);
        times.virtual_time += now.since(*until).0 as i64;
        *until = now;
    }

    /// Adds a woken task. The time of the running task, if any, must have been counted.
    pub(crate) fn add_woken(&mut self, task: u32, lag_ns: i64, slice: Nanos, wait: Wait) {
        let virtual_time = self.take_sleeping(task).unwrap_or_else(|| {
            let entities = self.entity_count();
            // The lag is scaled because the new task itself shifts the average.
            let others_average = self.total().checked_div(entities);
            others_average.map_or(0, |average| average - lag_ns * (entities + 1) / entities)
        });
        let times = Times { virtual_time, deadline: virtual_time + slice.0 as i64 };
        self.add(Entity { task, times, waits: Some(wait) });
        let is_over = self.running.is_some_and(|(running, _)| !self.is_eligible(running));
        if is_over && self.best().is_some_and(|index| self.tasks[index].task == task) {
            self.preempted.get_or_insert(wait.since);
        }
    }

    /// Requeues the running task, whose time must have been counted.
    pub(crate) fn preempt_task(&mut self, task: u32, slice: Nanos, wait: Wait) {
        self.preempted = None;
        let Some((mut times, _)) = self.running.take() else { return };
        if times.virtual_time >= times.deadline {
            times.deadline = times.virtual_time + slice.0 as i64;
        }
        self.add(Entity { task, times, waits: Some(wait) });
    }

    /// Removes the running task, which falls asleep; its time must have been counted if others wait. Returns its lag, ns.
    #[inline]
    pub(crate) fn put_to_sleep(&mut self, task: u32) -> i64 {
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

    /// The task that runs next.
    pub(crate) fn next(&mut self) -> Option<(u32, Wait)> {
        while self.waiting > 0 {
            let index = self.best()?;
            match self.tasks[index] {
                Entity { task, waits: Some(wait), .. } => return Some((task, wait)),
                _ => _ = self.remove(index),
            }
        }
        None
    }

    /// Makes a waiting task the running one; its turn began at `began`.
    pub(crate) fn start_running(&mut self, began: Instant, task: u32) {
        if let Some(index) = self.tasks.iter().position(|entity| entity.task == task) {
            self.running = Some((self.remove(index).times, began));
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

    /// The eligible task with the earliest deadline.
    fn best(&self) -> Option<usize> {
        self.tasks.iter().position(|entity| self.is_eligible(entity.times))
    }

    /// Removes a sleeping task. Returns its virtual time, ns, if it was in the queue.
    fn take_sleeping(&mut self, task: u32) -> Option<i64> {
        if self.waiting == self.tasks.len() {
            return None;
        }
        let index = self.tasks.iter().position(|entity| entity.task == task)?;
        Some(self.remove(index).times.virtual_time)
    }

    /// Whether a task waits for a turn.
    pub(crate) fn has_waiting(&self, task: u32) -> bool {
        self.tasks.iter().any(|entity| entity.task == task && entity.waits.is_some())
    }

    /// Removes a sleeping task that has migrated to another CPU.
    pub(crate) fn remove_migrated(&mut self, task: u32) {
        let _ = self.take_sleeping(task);
    }

    fn add(&mut self, entity: Entity) {
        self.sum += entity.times.virtual_time;
        self.waiting += usize::from(entity.waits.is_some());
        let index = self.tasks.partition_point(|other| other.times.deadline <= entity.times.deadline);
        self.tasks.insert(index, entity);
    }

    fn remove(&mut self, index: usize) -> Entity {
        let entity = self.tasks.remove(index);
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
        queue.start_running(Instant(now), task);
        Some(task)
    }

    /// Task 1 has run alone for 100 ns when task 2 wakes.
    fn one_runs_and_another_waits() -> FairQueue {
        let mut queue = FairQueue::default();
        queue.charge_running(Instant(100), Instant::ZERO, SLICE);
        queue.add_woken(2, 0, SLICE, at(100));
        queue
    }

    #[test]
    fn a_woken_task_owed_nothing_waits_for_the_sleep_or_slice_end_of_the_other() {
        let mut queue = one_runs_and_another_waits();
        assert_eq!(queue.preempted(), None);
        queue.charge_running(Instant(999), Instant::ZERO, SLICE);
        assert!(!queue.slice_is_over());
        queue.charge_running(Instant(1000), Instant::ZERO, SLICE);
        assert!(queue.slice_is_over());
        queue.preempt_task(1, SLICE, at(1000));
        assert_eq!(next(&mut queue, 1000), Some(2));
    }

    #[test]
    fn a_waiting_task_is_owed_half_its_wait_and_runs_first_next_time() {
        let mut queue = one_runs_and_another_waits();
        queue.charge_running(Instant(500), Instant::ZERO, SLICE);
        assert_eq!(queue.put_to_sleep(1), 0, "it has had 400 ns, and the other one nothing");
        assert_eq!(next(&mut queue, 500), Some(2));
        queue.charge_running(Instant(600), Instant(500), SLICE);
        let lag = queue.put_to_sleep(2);
        assert_eq!(lag, (400 - 100) / 2);
        assert!(queue.is_empty());

        queue.charge_running(Instant(2000), Instant(1000), SLICE);
        queue.add_woken(2, lag, SLICE, at(2000));
        assert_eq!(queue.preempted(), Some(Instant(2000)));
    }

    #[test]
    fn a_task_that_overran_its_share_returns_from_sleep_where_it_was() {
        let mut queue = one_runs_and_another_waits();
        queue.add_woken(3, 0, SLICE, at(110));
        queue.charge_running(Instant(400), Instant::ZERO, SLICE);
        queue.put_to_sleep(1);
        assert_eq!(next(&mut queue, 400), Some(2));
        queue.charge_running(Instant(410), Instant(400), SLICE);
        queue.add_woken(1, 0, SLICE, at(410));
        queue.put_to_sleep(2);
        assert_eq!(next(&mut queue, 410), Some(3), "task 1 is 300 ns ahead of it");
        queue.put_to_sleep(3);
        assert_eq!(next(&mut queue, 420), Some(1));
    }

    #[test]
    fn a_task_that_had_exactly_its_share_returns_from_sleep_at_the_average() {
        let mut queue = FairQueue::default();
        queue.charge_running(Instant::ZERO, Instant::ZERO, SLICE);
        queue.add_woken(2, 0, SLICE, at(0));
        assert_eq!(queue.put_to_sleep(1), 0);
        assert_eq!(next(&mut queue, 0), Some(2));
        queue.charge_running(Instant(500), Instant::ZERO, SLICE);
        queue.add_woken(1, 0, SLICE, at(500));
        assert_eq!(queue.preempted(), None, "it was owed nothing, and what has been since is not its affair");
    }

    #[test]
    fn a_task_that_ran_alone_is_owed_nothing() {
        let mut queue = FairQueue::default();
        assert_eq!(queue.put_to_sleep(1), 0);
        assert_eq!(next(&mut queue, 0), None);
    }

    #[test]
    fn a_woken_task_keeps_its_lag_among_any_number_of_others() {
        for others in 1..6 {
            let mut queue = FairQueue::default();
            queue.charge_running(Instant(600), Instant::ZERO, SLICE);
            (0..others).for_each(|task| queue.add_woken(task, 0, SLICE, at(600)));
            queue.charge_running(Instant(900), Instant::ZERO, SLICE);
            queue.add_woken(9, 120, SLICE, at(900));
            let woken = queue.tasks.iter().find(|entity| entity.task == 9).unwrap().times;
            let owed = queue.total() / queue.entity_count() - woken.virtual_time;
            assert!((owed - 120).abs() <= 1, "{owed} beside {others}");
        }
    }
}
