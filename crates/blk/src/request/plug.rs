//! Plugs: a task announces that more I/O will follow. Plugged requests are allocated, but invisible to the scheduler,
//! other tasks and the driver until the plug is flushed (BL-21 to BL-29, BL-32).

use std::collections::VecDeque;

use crate::bio::Bio;
use crate::ground::kernel::Generation;
use crate::ground::time::{Instant, Now};
use crate::request::Rq;
use crate::request::merge::{Edge, Merge, MergeRules};

/// If the newest request has this many sectors (128 KiB), the plug is flushed before the next one, since 4.10.
const FLUSH_SECTORS: u32 = 256;

/// A task's plug for one queue.
#[derive(Debug, Default)]
pub struct Plug {
    /// Its requests, oldest first; added and removed by its queue.
    pub list: VecDeque<Rq>,
    /// Time of the first allocation under the plug, for kernels on which a plug stops the clock.
    clock: Option<Instant>,
}

impl Plug {
    /// An empty plug.
    #[must_use]
    pub fn new() -> Self {
        Plug::default()
    }

    /// Number of requests in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The time for calls under this plug.
    pub fn now(&mut self, generation: &Generation, now: Now) -> Now {
        if !generation.plug_stops_clock {
            return now;
        }
        Now { at: *self.clock.get_or_insert(now.at), ..now }
    }

    /// The plug has been flushed, or the task slept: the clock continues.
    pub fn resume_clock(&mut self) {
        self.clock = None;
    }

    /// Tries to merge a bio into a plugged request, newest first.
    pub fn merge(&mut self, generation: &Generation, rules: &MergeRules, bio: &mut Option<Bio>) -> Option<Edge> {
        let depth = if generation.plug_merges_newest_only { 1 } else { usize::MAX };
        for rq in self.list.iter_mut().rev().take(depth) {
            if let Merge::Merged(edge) = rules.merge(rq, bio) {
                return Some(edge);
            }
        }
        None
    }

    /// Whether the plug must be flushed before another request is added.
    pub fn is_full(&self, generation: &Generation, merging: bool) -> bool {
        self.list.len() >= usize::from(generation.plug_limit)
            || (generation.plug_flushes_large
                && merging
                && self.list.back().is_some_and(|newest| newest.sectors >= FLUSH_SECTORS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Op;
    use crate::ground::ids::{RqId, Sector};
    use crate::ground::sharing::Local;
    use crate::request::RequestPool;

    /// A plug with the only request of a pool in it.
    fn plugged(pool: &RequestPool<Local>) -> Plug {
        let mut rq = pool.take(RqId(0));
        rq.found(Bio::new(Op::Read, Sector(0), 8), Instant::ZERO);
        let mut plug = Plug::new();
        plug.list.push_back(rq);
        plug
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "request 0 is dropped")]
    fn a_plug_that_is_dropped_with_a_request_in_it_is_reported() {
        let pool = RequestPool::of_queue(1);
        drop(plugged(&pool));
    }

    #[test]
    fn a_plug_that_outlives_its_queue_is_not_reported_as_lost() {
        let pool = RequestPool::of_queue(1);
        let plug = plugged(&pool);
        drop(pool);
        drop(plug);
    }
}
