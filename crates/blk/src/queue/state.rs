//! The two parts of a queue: the constant [`Device`], and the [`QueueState`], which can change. The scheduler and everything
//! created for it are replaced as a whole while the queue is frozen and empty; limits can be written at any time.
//!
//! Every public call reads the state once and keeps it until the call is over. A change waits for running calls, and new calls
//! wait for the change, so the state never changes during a call, including runs of hardware queues, timers and completions.
//! Requests and parked submissions exist beyond a call, but prevent the state from being replaced, because the queue is not
//! empty then. Nothing else may be kept between calls.

use std::ops::Deref;

use super::{Device, NR_REQUESTS_MIN, Queue, QueueConfig};
use crate::drive::flights::Flights;
use crate::elevator::Elevator;
use crate::ground::ids::{CpuId, HctxId, RqId};
use crate::ground::sharing::{Lock, Padded, ReadMostly, Sharing};
use crate::queue::flush_queue::FlushQueue;
use crate::request::merge::MergeRules;
use crate::request::{RequestPool, Rq};
use crate::tags::{Depth, Tags};

/// The changeable part of a queue.
pub(super) struct QueueState<Sh: Sharing> {
    /// The home of all requests, which must be dropped first.
    pub(super) pool: RequestPool<Sh>,
    /// Limits and merge rules, as set in `queue/`.
    pub(super) rules: MergeRules,
    pub(super) elevator: Elevator<Sh>,
    /// Whether plain bios may take the [fast path](super::fast_path): nothing decides about them.
    pub(super) has_fast_path: bool,
    /// Scheduler tags of each hardware queue; without a scheduler, the driver tags that it may use.
    pub(super) nr_requests: u32,
    /// Value of `queue/async_depth`: the scheduler tags for everything except sync reads.
    pub(super) async_depth: u32,
    /// The driver tags that allocation may use without a scheduler.
    pub(super) driver_depth: Depth,
    /// Distance between the slots of one hardware queue and the next; 0 if all share one tag space.
    slots_per_hctx: u32,
    pub(super) flights: Flights<Sh>,
    /// Scheduler tags: empty without a scheduler, one map for all hardware queues, or one for each.
    pub(super) scheduler_tags: Vec<Padded<Tags<Sh>>>,
    /// The flush sequencer of each hardware queue.
    pub(super) flush_queues: Vec<Padded<Sh::Lock<FlushQueue>>>,
}

impl<Sh: Sharing> QueueState<Sh> {
    /// The state for an elevator. `requested` is the requested number of requests, which the elevator was created for; without a
    /// scheduler it is the number of the device's tags.
    pub(super) fn new(device: &Device<Sh>, rules: MergeRules, elevator: Elevator<Sh>, requested: Option<u32>) -> Self {
        let config = QueueConfig { nr_requests: requested, ..device.config.clone() };
        let depth = config.queue_depth;
        let nr_requests = match requested {
            _ if !elevator.is_none() => config.scheduler_depth(),
            None => depth,
            Some(nr) => nr.max(NR_REQUESTS_MIN),
        };
        let hctxs = device.hctxs.len() as u32;
        // Request slots: one for each tag of the tag spaces that requests are allocated from.
        let tag_spaces = match (elevator.is_none(), config.host_wide_tags) {
            (true, true) => 1,
            (true, false) => hctxs,
            (false, _) => config.scheduler_maps(),
        };
        let slots_per_space = if elevator.is_none() { depth } else { nr_requests };
        let scheduler_maps = if elevator.is_none() { 0 } else { tag_spaces };
        let (cpus, shallow) = (usize::from(config.cpus), device.generation.shallow);
        let scheduler_map = |map| {
            let mut tags = Tags::new(nr_requests, cpus, shallow, elevator.min_shallow());
            // Different hints than those of the driver tags.
            tags.randomize_hints(config.hint_seed.map(|seed| !seed), map);
            Padded(tags)
        };
        // After the ids that correspond to tags.
        let flush_queue = |index: u32| Padded(Sh::Lock::new(FlushQueue::new(RqId(u32::MAX - index))));
        QueueState {
            rules,
            pool: RequestPool::of_queue(slots_per_space * tag_spaces),
            nr_requests,
            async_depth: config.async_depth(elevator.async_percent(), elevator.is_none()),
            driver_depth: device.driver_tags.limit_tags_in_use(if elevator.is_none() { nr_requests } else { depth }),
            slots_per_hctx: if tag_spaces == 1 { 0 } else { slots_per_space },
            flights: Flights::new(slots_per_space * tag_spaces, hctxs),
            scheduler_tags: (0..scheduler_maps).map(scheduler_map).collect(),
            flush_queues: (0..hctxs).map(flush_queue).collect(),
            has_fast_path: elevator.is_none() && elevator.steering().is_none(),
            elevator,
        }
    }

    /// The scheduler tags of a hardware queue, if there is a scheduler.
    #[inline]
    pub(super) fn scheduler_tags_of(&self, hctx: HctxId) -> Option<&Tags<Sh>> {
        let tags = self.scheduler_tags.get(if self.slots_per_hctx == 0 { 0 } else { hctx.index() });
        tags.map(|tags| &tags.0)
    }

    /// Announces the smallest shallow depth that the scheduler will ask for, which may have changed.
    pub(super) fn announce_min_shallow(&self) {
        let min_shallow = self.elevator.min_shallow();
        self.scheduler_tags.iter().for_each(|tags| tags.set_min_shallow(min_shallow));
    }

    #[inline]
    pub(super) fn slot(&self, hctx: HctxId, tag: u32) -> RqId {
        RqId(u32::from(hctx.0) * self.slots_per_hctx + tag)
    }

    /// The tag, within its hardware queue, that a slot belongs to.
    #[inline]
    pub(super) fn tag_of_slot(&self, rq: &Rq) -> u32 {
        rq.id().0 - u32::from(rq.hctx.0) * self.slots_per_hctx
    }
}

/// A queue during one call.
pub(super) struct Current<'a, Sh: Sharing> {
    pub(super) device: &'a Device<Sh>,
    /// The state, unchanged until the call is over.
    pub(super) state: &'a QueueState<Sh>,
}

impl<Sh: Sharing> Clone for Current<'_, Sh> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<Sh: Sharing> Copy for Current<'_, Sh> {}

impl<Sh: Sharing> Deref for Current<'_, Sh> {
    type Target = Device<Sh>;
    #[inline]
    fn deref(&self) -> &Device<Sh> {
        self.device
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Makes a call: the queue's state does not change until `body` ends. `body` has no access to the queue itself, so calls
    /// cannot nest.
    #[inline]
    pub(super) fn during<R>(&self, cpu: CpuId, body: impl FnOnce(Current<'_, Sh>) -> R) -> R {
        let device = &self.device;
        self.state.read(cpu, |state| body(Current { device, state }))
    }
}
