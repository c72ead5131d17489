//! Writes to files of the queue while it is in use. Some take effect at once; the scheduler and the number of requests
//! are changed while the queue is frozen and empty.

use std::collections::VecDeque;

use hoistway_blk::ground::{Instant, Nanos};

use super::message::Change;
use super::queue_calls::QueueCalls;
use super::shared::Shared;

/// How often to check whether a frozen queue is empty: other workers complete requests, too.
const DRAIN_CHECK_INTERVAL: Nanos = Nanos::from_micros(20);

/// The pending changes, which are made one after the other.
#[derive(Default)]
pub struct Changes {
    pending: VecDeque<Change>,
    /// Whether the queue is frozen for the first change.
    is_frozen: bool,
}

impl Changes {
    pub fn add(&mut self, change: Change) {
        self.pending.push_back(change);
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// When to check again.
    pub fn next_check_at(&self, now: Instant) -> Instant {
        if self.is_frozen { now + DRAIN_CHECK_INTERVAL } else { Instant::NEVER }
    }

    /// Advances as far as possible. Returns whether anything was done.
    pub fn step(&mut self, shared: &Shared, calls: &mut QueueCalls) -> bool {
        let mut made_progress = false;
        while let Some(change) = self.pending.front() {
            let result = if self.is_frozen {
                if !shared.queue.is_drained() {
                    return made_progress;
                }
                let result = calls.set_attribute(shared, &change.file, &change.text);
                if change.file == "scheduler" {
                    shared.events_of_groups().into_iter().for_each(|event| calls.notify_scheduler(shared, event));
                }
                calls.unfreeze(shared);
                self.is_frozen = false;
                result
            } else if matches!(change.file.as_str(), "scheduler" | "nr_requests" | "async_depth") {
                match shared.queue.would_change(&change.file, &change.text) {
                    Ok(true) => {
                        calls.freeze(shared);
                        self.is_frozen = true;
                        // The calls above may have made work due, which comes before the next check.
                        return true;
                    }
                    Ok(false) => Ok(()),
                    Err(error) => Err(error),
                }
            } else {
                calls.set_attribute(shared, &change.file, &change.text)
            };
            if let Some(change) = self.pending.pop_front() {
                change.reply.give(result);
            }
            made_progress = true;
        }
        made_progress
    }
}
