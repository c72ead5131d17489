//! The local queues of one hardware queue: those of each flow on it, in the order of their first requests' start tags.

use std::collections::VecDeque;
use std::sync::Arc;

#[cfg(test)]
use crate::ground::ids::RqId;
use crate::ground::sharing::Sharing;
use crate::policy::key_order::KeyOrder;
use crate::request::Rq;

use super::NEVER;
use super::flows::{ByFlow, Flow};
use crate::schedulers::fair_queue::FlowKey;

/// The requests of one flow on one hardware queue, first in, first out.
struct LocalQueue<Sh: Sharing> {
    requests: VecDeque<Rq>,
    /// Their start tags, in the same order.
    start_tags: VecDeque<u64>,
    flow: Arc<Flow<Sh>>,
    /// Its flow has ended: once nothing waits, the entry is reused.
    has_ended: bool,
}

/// All local queues, behind the hardware queue's lock.
pub(super) struct LocalQueues<Sh: Sharing> {
    queues: Vec<LocalQueue<Sh>>,
    free: Vec<u32>,
    by_flow: ByFlow<u32>,
    /// Those in which something waits, by the start tag of its first request.
    heads: KeyOrder,
    /// The least of these.
    min_start: u64,
}

impl<Sh: Sharing> Default for LocalQueues<Sh> {
    fn default() -> Self {
        LocalQueues {
            queues: Vec::new(),
            free: Vec::new(),
            by_flow: ByFlow::default(),
            heads: KeyOrder::default(),
            min_start: NEVER,
        }
    }
}

impl<Sh: Sharing> LocalQueues<Sh> {
    /// The least start tag; [`NEVER`] if nothing waits.
    #[inline]
    pub(super) fn min_start(&self) -> u64 {
        self.min_start
    }

    #[inline]
    pub(super) fn find(&self, key: FlowKey) -> Option<u32> {
        self.by_flow.get(&key).copied()
    }

    /// The local queue of a flow.
    #[inline]
    pub(super) fn find_or_create(&mut self, key: FlowKey, flow: impl FnOnce() -> Arc<Flow<Sh>>) -> u32 {
        match self.find(key) {
            Some(queue) => queue,
            None => self.create(key, flow()),
        }
    }

    #[cold]
    fn create(&mut self, key: FlowKey, flow: Arc<Flow<Sh>>) -> u32 {
        let queue = match self.free.pop() {
            Some(queue) => {
                let record = &mut self.queues[queue as usize];
                (record.flow, record.has_ended) = (flow, false);
                queue
            }
            None => {
                let (requests, start_tags) = (VecDeque::new(), VecDeque::new());
                self.queues.push(LocalQueue { requests, start_tags, flow, has_ended: false });
                self.queues.len() as u32 - 1
            }
        };
        self.by_flow.insert(key, queue);
        queue
    }

    #[inline]
    pub(super) fn flow(&self, queue: u32) -> &Flow<Sh> {
        &self.queues[queue as usize].flow
    }

    /// The requests of a local queue. They may grow, but not be added or removed.
    #[inline]
    pub(super) fn requests_mut(&mut self, queue: u32) -> &mut VecDeque<Rq> {
        &mut self.queues[queue as usize].requests
    }

    /// Appends a request.
    #[inline]
    pub(super) fn push(&mut self, queue: u32, rq: Rq, start: u64) {
        let LocalQueue { requests, start_tags, .. } = &mut self.queues[queue as usize];
        requests.push_back(rq);
        start_tags.push_back(start);
        if start_tags.len() == 1 {
            self.heads.insert(queue, start);
            self.min_start = self.min_start.min(start);
        }
    }

    /// Removes the request with the least start tag.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Rq> {
        let queue = self.heads.at_or_after(0)?;
        let LocalQueue { requests, start_tags, has_ended, .. } = &mut self.queues[queue as usize];
        let (rq, start) = (requests.pop_front()?, start_tags.pop_front()?);
        self.heads.remove(queue, start);
        match start_tags.front() {
            Some(&next) => self.heads.insert(queue, next),
            None if *has_ended => self.free.push(queue),
            None => {}
        }
        self.min_start = self.heads.at_or_after(0).map_or(NEVER, |queue| self.queues[queue as usize].start_tags[0]);
        Some(rq)
    }

    /// The flow of a local queue has ended.
    pub(super) fn end(&mut self, key: FlowKey) {
        let Some(queue) = self.by_flow.remove(&key) else { return };
        let record = &mut self.queues[queue as usize];
        record.has_ended = true;
        if record.start_tags.is_empty() {
            self.free.push(queue);
        }
    }
}

#[cfg(test)]
impl<Sh: Sharing> LocalQueues<Sh> {
    /// The start tag of a request that waits here.
    pub(super) fn start_of(&self, id: RqId) -> Option<u64> {
        self.queues.iter().find_map(|queue| {
            let index = queue.requests.iter().position(|rq| rq.id() == id)?;
            queue.start_tags.get(index).copied()
        })
    }

    /// What must be true between calls. Returns how many wait.
    pub(super) fn check(&self) -> usize {
        let mut min_start = NEVER;
        for queue in &self.queues {
            assert_eq!(queue.requests.len(), queue.start_tags.len());
            assert!(queue.start_tags.iter().is_sorted(), "first in, first out is by start tags");
            min_start = min_start.min(queue.start_tags.front().copied().unwrap_or(NEVER));
        }
        assert_eq!(self.min_start, min_start);
        self.queues.iter().map(|queue| queue.requests.len()).sum()
    }

    pub(super) fn places(&self) -> usize {
        self.queues.len()
    }

    /// Has the first request of its queue come late, with a start tag that is past.
    pub(super) fn set_start(&mut self, id: RqId, start: u64) {
        let found = self.queues.iter().position(|queue| queue.requests.front().is_some_and(|rq| rq.id() == id));
        let queue = found.expect("it is the first of its queue");
        let before = std::mem::replace(&mut self.queues[queue].start_tags[0], start);
        self.heads.remove(queue as u32, before);
        self.heads.insert(queue as u32, start);
        self.min_start = self.min_start.min(start);
    }
}
