//! Waiting for a tag: eight wait queues, served in batches (BL-62, BL-63).
//!
//! A freed tag is not handed to a certain sleeper. Freed tags are counted, and when there is a batch of them, a batch
//! of sleepers is woken from the next queue in rotation. They compete with new allocations.
//!
//! Which queue a sleeper joins is decided outside, because each hardware queue deals its sleepers to them in a rotation of its own.

use std::collections::VecDeque;

use crate::ground::ids::{HctxId, QueueId, Waiter};

/// Who waits for a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleeper {
    /// A submitter that sleeps in allocation.
    Submitter(Waiter),
    /// A hardware queue that wants to dispatch and waits for a token of its scheduler.
    Hctx(HctxId),
    /// A hardware queue of one of the queues that share driver tags.
    HctxOf(QueueId, HctxId),
}

/// Number of wait queues.
const QUEUES: usize = 8;

/// The sleepers of one tag space.
pub struct WaitQueues {
    /// The sleepers, each with its place; the places ascend in a queue.
    queues: [VecDeque<(u64, Sleeper)>; QUEUES],
    /// Sleepers that have joined so far.
    joined: u64,
    /// Which queue is woken next.
    wake_next: usize,
    /// Tags freed since the last wake-up.
    freed: u32,
    batch: u32,
}

impl WaitQueues {
    /// Empty wait queues, from which sleepers will be woken `batch` at a time.
    #[must_use]
    pub fn new(batch: u32) -> Self {
        WaitQueues { queues: Default::default(), joined: 0, wake_next: 0, freed: 0, batch }
    }

    /// Sleepers will be woken `batch` at a time.
    pub fn set_batch(&mut self, batch: u32) {
        self.batch = batch;
    }

    /// How many sleepers are woken at a time.
    #[must_use]
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// A sleeper joins this queue, modulo their number, at its tail. Returns its place, of which no other sleeper has the same.
    pub fn join(&mut self, queue: u64, sleeper: Sleeper) -> u64 {
        let position = self.joined * QUEUES as u64 + queue % QUEUES as u64;
        self.queue_of(position).push_back((position, sleeper));
        self.joined += 1;
        position
    }

    fn queue_of(&mut self, position: u64) -> &mut VecDeque<(u64, Sleeper)> {
        &mut self.queues[(position % QUEUES as u64) as usize]
    }

    /// Whether a sleeper is in line.
    #[must_use]
    pub fn contains(&self, sleeper: Sleeper) -> bool {
        self.queues.iter().flatten().any(|&(_, other)| other == sleeper)
    }

    /// A sleeper leaves without being woken; `false` if it was not there.
    pub fn leave(&mut self, sleeper: Sleeper) -> bool {
        let entry = self.queues.iter().flatten().find(|&&(_, other)| other == sleeper).copied();
        entry.is_some_and(|(position, _)| self.remove_sleeper_at(position))
    }

    /// The sleeper at this place leaves without being woken; `false` if it is no longer there. Does not search through the
    /// others, of which there may be thousands.
    pub fn remove_sleeper_at(&mut self, position: u64) -> bool {
        let queue = self.queue_of(position);
        // If a sleeper was woken, all sleepers before it in its queue have left as well.
        if queue.front().is_none_or(|&(first, _)| first > position) {
            return false;
        }
        let index = queue.binary_search_by_key(&position, |&(position, _)| position);
        index.is_ok_and(|index| queue.remove(index).is_some())
    }

    /// A tag was freed while there were sleepers: calls `wake` for those to be woken.
    #[inline]
    pub fn freed(&mut self, mut wake: impl FnMut(Sleeper)) {
        self.freed += 1;
        if self.freed < self.batch {
            return;
        }
        self.freed = 0;
        let mut remaining = self.batch;
        for _ in 0..QUEUES {
            let queue = &mut self.queues[self.wake_next];
            let mut woke_hctx = false;
            while remaining > 0 {
                let Some((_, sleeper)) = queue.pop_front() else { break };
                // A hardware queue only checks whether there is a tag, and does not sleep in place of another.
                woke_hctx |= matches!(sleeper, Sleeper::Hctx(_));
                if matches!(sleeper, Sleeper::Submitter(_)) {
                    remaining -= 1;
                }
                wake(sleeper);
            }
            self.wake_next = (self.wake_next + 1) % QUEUES;
            if remaining == 0 || woke_hctx {
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
            wait.join(n.into(), Sleeper::Submitter(Waiter(n)));
        }
        assert_eq!(woken(&mut wait), []);
        // Queue 0 holds 0, 8 and 16; queue 1 holds 1, 9 and 17; ...
        assert_eq!(woken(&mut wait), [0, 8]);
        assert_eq!(woken(&mut wait), []);
        assert_eq!(woken(&mut wait), [1, 9]);
    }

    #[test]
    fn a_wake_batch_continues_with_the_next_wait_queues_when_one_has_fewer() {
        let mut wait = WaitQueues::new(4);
        for n in 0..3 {
            wait.join(n.into(), Sleeper::Submitter(Waiter(n)));
        }
        let all: Vec<u32> = (0..4).flat_map(|_| woken(&mut wait)).collect();
        assert_eq!(all, [0, 1, 2]);
    }

    #[test]
    fn leaving_a_wait_queue_by_place_removes_no_other_sleeper() {
        let mut wait = WaitQueues::new(1);
        let positions: Vec<u64> = (0..24).map(|n| wait.join(n.into(), Sleeper::Submitter(Waiter(n)))).collect();
        assert!(
            wait.remove_sleeper_at(positions[8]) && !wait.remove_sleeper_at(positions[8]),
            "queue 0 holds 0 and 16 now"
        );
        assert_eq!(woken(&mut wait), [0]);
        assert!(!wait.remove_sleeper_at(positions[0]), "it was woken");
        let last = wait.join(24, Sleeper::Submitter(Waiter(24)));
        assert!(!positions.contains(&last));
        assert!(wait.remove_sleeper_at(last) && wait.contains(Sleeper::Submitter(Waiter(16))));
        let rest: Vec<u32> = (0..30).flat_map(|_| woken(&mut wait)).collect();
        assert_eq!((rest.len(), rest.contains(&8), rest.contains(&24)), (22, false, false));
    }

    #[test]
    fn hardware_queues_that_wait_for_tokens_are_woken_a_whole_wait_queue_at_a_time() {
        let mut wait = WaitQueues::new(1);
        for (queue, hctx) in [(0, 0), (0, 1), (9, 2), (1, 3), (0, 4)] {
            wait.join(queue, Sleeper::Hctx(HctxId(hctx)));
        }
        let mut woken = || {
            let mut out = Vec::new();
            wait.freed(|sleeper| out.push(sleeper));
            out
        };
        assert_eq!(woken(), [0, 1, 4].map(|n| Sleeper::Hctx(HctxId(n))));
        assert_eq!(woken(), [2, 3].map(|n| Sleeper::Hctx(HctxId(n))));
        assert_eq!(woken(), []);
    }

    #[test]
    fn a_sleeper_that_left_is_not_woken() {
        let mut wait = WaitQueues::new(1);
        wait.join(0, Sleeper::Submitter(Waiter(7)));
        assert!(wait.leave(Sleeper::Submitter(Waiter(7))));
        assert!(!wait.leave(Sleeper::Submitter(Waiter(7))));
        assert_eq!(woken(&mut wait), []);
    }
}
