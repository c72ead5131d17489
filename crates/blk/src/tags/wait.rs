//! Waiting for a tag: eight wait queues, served in batches (BL-62, BL-63).
//!
//! A freed tag is not handed over: it is counted, and when a batch has come together a batch of sleepers is woken
//! from the next queue in rotation. The woken compete with newcomers.

use std::collections::VecDeque;

use crate::ground::ids::{HctxId, QueueId, Waiter};

/// Who waits for a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleeper {
    /// A submitter that sleeps in allocation.
    Submitter(Waiter),
    /// A hardware queue that wants to dispatch, for a token of its scheduler.
    Hctx(HctxId),
    /// A hardware queue of one of the queues that share driver tags.
    HctxOf(QueueId, HctxId),
}

/// Number of wait queues.
const QUEUES: usize = 8;

/// The sleepers of one tag space.
pub struct WaitQueues {
    queues: [VecDeque<Sleeper>; QUEUES],
    /// Where the next sleeper joins.
    join_next: usize,
    /// Which queue is woken next.
    wake_next: usize,
    /// Tags freed since the last wake-up.
    freed: u32,
    batch: u32,
}

impl WaitQueues {
    /// Nobody waits; sleepers will be woken `batch` at a time.
    #[must_use]
    pub fn new(batch: u32) -> Self {
        WaitQueues { queues: Default::default(), join_next: 0, wake_next: 0, freed: 0, batch }
    }

    /// Sleepers will be woken `batch` at a time.
    pub fn set_batch(&mut self, batch: u32) {
        self.batch = batch;
    }

    /// A sleeper joins at the tail of the next queue in rotation, whose number is answered.
    pub fn join(&mut self, sleeper: Sleeper) -> u8 {
        let joined = self.join_next;
        self.queues[joined].push_back(sleeper);
        self.join_next = (joined + 1) % QUEUES;
        joined as u8
    }

    /// Whether a sleeper is in line.
    #[must_use]
    pub fn contains(&self, sleeper: Sleeper) -> bool {
        self.queues.iter().any(|queue| queue.contains(&sleeper))
    }

    /// A sleeper leaves without being woken; `false` if it was not there.
    pub fn leave(&mut self, sleeper: Sleeper) -> bool {
        (0..QUEUES as u8).any(|queue| self.leave_queue(queue, sleeper))
    }

    /// A sleeper that joined this queue leaves without being woken; `false` if it was not there.
    pub fn leave_queue(&mut self, queue: u8, sleeper: Sleeper) -> bool {
        let queue = &mut self.queues[usize::from(queue)];
        let at = queue.iter().position(|&other| other == sleeper);
        at.is_some_and(|at| queue.remove(at).is_some())
    }

    /// A tag was freed while somebody waited: calls `wake` for those whose turn has come.
    pub fn freed(&mut self, mut wake: impl FnMut(Sleeper)) {
        self.freed += 1;
        if self.freed < self.batch {
            return;
        }
        self.freed = 0;
        let mut left = self.batch;
        for _ in 0..QUEUES {
            let queue = &mut self.queues[self.wake_next];
            while left > 0 {
                let Some(sleeper) = queue.pop_front() else { break };
                // It only looks whether there is a tag, and does not sleep instead of another.
                if !matches!(sleeper, Sleeper::HctxOf(..)) {
                    left -= 1;
                }
                wake(sleeper);
            }
            self.wake_next = (self.wake_next + 1) % QUEUES;
            if left == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(wait: &mut WaitQueues) -> Vec<u32> {
        let mut out = Vec::new();
        wait.freed(|sleeper| match sleeper {
            Sleeper::Submitter(Waiter(n)) => out.push(n),
            other => unreachable!("{other:?}"),
        });
        out
    }

    #[test]
    fn sleeping_allocators_are_released_a_wake_batch_at_a_time_one_wait_queue_after_the_other() {
        let mut wait = WaitQueues::new(2);
        for n in 0..18 {
            wait.join(Sleeper::Submitter(Waiter(n)));
        }
        assert_eq!(woken(&mut wait), []);
        // Queue 0 holds 0, 8 and 16; queue 1 holds 1, 9 and 17; ...
        assert_eq!(woken(&mut wait), [0, 8]);
        assert_eq!(woken(&mut wait), []);
        assert_eq!(woken(&mut wait), [1, 9]);
    }

    #[test]
    fn a_batch_goes_on_with_the_following_queues_when_one_holds_fewer() {
        let mut wait = WaitQueues::new(4);
        for n in 0..3 {
            wait.join(Sleeper::Submitter(Waiter(n)));
        }
        let all: Vec<u32> = (0..4).flat_map(|_| woken(&mut wait)).collect();
        assert_eq!(all, [0, 1, 2]);
    }

    #[test]
    fn a_sleeper_that_left_is_not_woken() {
        let mut wait = WaitQueues::new(1);
        wait.join(Sleeper::Submitter(Waiter(7)));
        assert!(wait.leave(Sleeper::Submitter(Waiter(7))));
        assert!(!wait.leave(Sleeper::Submitter(Waiter(7))));
        assert_eq!(woken(&mut wait), []);
    }
}
