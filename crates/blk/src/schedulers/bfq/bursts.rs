//! Large bursts: many queues created at nearly the same time want throughput, not latency. Rules: BFQ-100 to BFQ-103.

use super::Bfq;
use super::config::{BURST_FORGOTTEN_MS, BURST_INTERVAL_MS, LARGE_BURST, LONG_AGO_TICK};
use super::entity::{GroupId, QueueId};

/// A queue that was split off less than this ago does not count as new, ms.
const SPLIT_MS: u64 = 10;

/// The burst that is going on, if any.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    /// Its queues, until it is large.
    list: Vec<QueueId>,
    /// Number of its queues.
    pub size: u32,
    /// It has become large.
    pub large: bool,
    /// The group in which it happens.
    group: GroupId,
    /// Tick at which its last queue was created.
    last: i64,
}

impl Default for Burst {
    fn default() -> Self {
        Burst { list: Vec::new(), size: 0, large: false, group: GroupId::ROOT, last: LONG_AGO_TICK }
    }
}

impl Burst {
    /// Whether a queue is in the list.
    pub fn contains(&self, q: QueueId) -> bool {
        self.list.contains(&q)
    }

    /// Puts back a queue that had been in the list.
    pub fn readmit(&mut self, q: QueueId) {
        self.list.push(q);
    }

    /// A queue is freed; `with_process`: because the process that alone used it has ended.
    pub fn leave(&mut self, q: QueueId, shrink: bool) {
        if let Some(at) = self.list.iter().position(|&other| other == q) {
            self.list.remove(at);
            if shrink && self.size > 0 {
                self.size -= 1;
            }
        }
    }
}

impl Bfq {
    /// A request is set up for a queue that was just created (BFQ-100, BFQ-101, BFQ-103).
    pub(super) fn note_newcomer(&mut self, q: QueueId) {
        let careful = self.config.variant.careful_bursts;
        let idle = self.busy_queues() == 0;
        if careful && self.burst.size == 0 && !idle {
            return;
        }
        let queue = &self.queues[q];
        if queue.in_large_burst || self.burst.contains(q) || queue.split + self.config.ticks(SPLIT_MS) >= self.now.tick
        {
            return;
        }
        let group = queue.group;
        if self.burst.last + self.config.ticks(BURST_INTERVAL_MS) < self.now.tick || self.burst.group != group {
            self.burst.large = false;
            self.burst.list.clear();
            self.burst.size = 0;
            if idle || !careful {
                self.burst.list.push(q);
                self.burst.size = 1;
            }
            self.burst.group = group;
        } else if self.burst.large {
            self.queues[q].in_large_burst = true;
        } else {
            self.burst.size += 1;
            self.burst.list.push(q);
            if self.burst.size == LARGE_BURST {
                self.burst.large = true;
                for q in std::mem::take(&mut self.burst.list) {
                    self.queues[q].in_large_burst = true;
                }
            }
        }
        self.burst.last = self.now.tick;
    }

    /// A queue gets work after a long time: it no longer counts as created in a burst (BFQ-102).
    pub(super) fn maybe_forget_burst(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let forgotten = self.config.ticks(BURST_FORGOTTEN_MS);
        if !queue.just_created && self.is_idle_for_long(q) && queue.budget_timeout + forgotten < self.now.tick {
            self.queues[q].in_large_burst = false;
        }
    }
}
