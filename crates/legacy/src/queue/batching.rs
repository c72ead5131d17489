//! Batching: a task that had to wait for a request may allocate a burst of them, so that it does not sleep for each
//! (LQ-8 to LQ-13).

use hoistway_blk::ground::{Hz, IoContextId, Now, Tick};

/// Requests per burst.
const CREDIT: u32 = 32;
/// A burst expires after one divided by this, in seconds.
const BURSTS_A_SECOND: u64 = 50;

/// The tasks with a credit.
pub(super) struct Batchers {
    /// How long a credit lasts, ticks.
    lifetime: u64,
    /// By I/O context, which identifies the task.
    credits: Vec<Credit>,
}

#[derive(Clone, Copy)]
struct Credit {
    io_context: IoContextId,
    /// Requests left.
    left: u32,
    granted: Tick,
}

impl Credit {
    /// A credit without use does not expire, so a wake-up is never in vain.
    fn is_valid(&self, now: Now, lifetime: u64) -> bool {
        self.left == CREDIT || (self.left > 0 && now.tick.0 < self.granted.0 + lifetime)
    }
}

impl Batchers {
    pub(super) fn new(hz: Hz) -> Self {
        Batchers { lifetime: u64::from(hz.0) / BURSTS_A_SECOND, credits: Vec::new() }
    }

    fn find(&self, io_context: IoContextId) -> Result<usize, usize> {
        self.credits.binary_search_by_key(&io_context, |credit| credit.io_context)
    }

    /// Whether the task may exceed the limit.
    #[inline]
    pub(super) fn contains(&self, now: Now, io_context: IoContextId) -> bool {
        !self.credits.is_empty()
            && self.find(io_context).is_ok_and(|index| self.credits[index].is_valid(now, self.lifetime))
    }

    /// Gives the task a credit, unless it has one.
    pub(super) fn grant(&mut self, now: Now, io_context: IoContextId) {
        if self.contains(now, io_context) {
            return;
        }
        let lifetime = self.lifetime;
        self.credits.retain(|credit| credit.is_valid(now, lifetime));
        if let Err(index) = self.find(io_context) {
            self.credits.insert(index, Credit { io_context, left: CREDIT, granted: now.tick });
        }
    }

    /// The task got a request, which uses one of its credit, if it has any.
    #[inline]
    pub(super) fn take_one(&mut self, now: Now, io_context: IoContextId) {
        if self.credits.is_empty() {
            return;
        }
        if let Ok(index) = self.find(io_context)
            && self.credits[index].is_valid(now, self.lifetime)
        {
            self.credits[index].left -= 1;
        }
    }

    /// The task has ended.
    pub(super) fn forget(&mut self, io_context: IoContextId) {
        if let Ok(index) = self.find(io_context) {
            self.credits.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::ground::{Instant, Nanos};

    const TASK: IoContextId = IoContextId(7);

    fn at(ms: u64) -> Now {
        Hz(1000).now(Instant::ZERO + Nanos::from_millis(ms))
    }

    #[test]
    fn a_credit_is_32_requests_within_20_ms_and_its_first_has_no_time_limit() {
        let mut batchers = Batchers::new(Hz(1000));
        batchers.grant(at(0), TASK);
        assert!(batchers.contains(at(1000), TASK), "untouched");
        batchers.take_one(at(0), TASK);
        assert!(batchers.contains(at(19), TASK) && !batchers.contains(at(20), TASK));
        (1..32).for_each(|_| batchers.take_one(at(1), TASK));
        assert!(!batchers.contains(at(1), TASK), "used up");
    }

    #[test]
    fn a_batching_process_gets_no_further_batch() {
        let mut batchers = Batchers::new(Hz(1000));
        batchers.grant(at(0), TASK);
        batchers.take_one(at(0), TASK);
        batchers.grant(at(19), TASK);
        assert!(!batchers.contains(at(20), TASK));
        batchers.grant(at(20), TASK);
        batchers.take_one(at(20), TASK);
        assert!(batchers.contains(at(39), TASK) && !batchers.contains(at(39), IoContextId(8)));
    }
}
