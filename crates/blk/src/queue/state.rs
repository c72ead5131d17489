//! The two parts of a queue. The [`Device`] stays for life. The [`QueueState`] is what can be changed: the scheduler with
//! all that is made for it, which is replaced whole while the queue is frozen and empty, and the limits, which are written
//! at any time.
//!
//! Every public call reads this state once, and has it as it is until the call is over; a change waits for the calls that
//! are running, and those that begin meanwhile wait for the change. So nothing has to expect a change in the middle of a
//! call, runs of hardware queues, timers and completions included. What is kept from call to call, a request, a parked
//! submission, keeps the state from being replaced, because the queue is not empty then. Nothing else may be kept.

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

/// What can be changed.
pub(super) struct QueueState<Sh: Sharing> {
    /// The home of all requests: it goes first.
    pub(super) pool: RequestPool<Sh>,
    /// Limits and rules of merging, as they are written to `queue/`.
    pub(super) rules: MergeRules,
    pub(super) elevator: Elevator<Sh>,
    /// Scheduler tags of each hardware queue, or without a scheduler the driver tags that it may use.
    pub(super) nr_requests: u32,
    /// What `queue/async_depth` shows: the scheduler tags that all but sync reads may use.
    pub(super) async_depth: u32,
    /// Which driver tags are taken for allocation without a scheduler.
    pub(super) driver_depth: Depth,
    /// From the slots of one hardware queue to those of the next; 0 if all have one tag space.
    slots_per_hctx: u32,
    pub(super) flights: Flights<Sh>,
    /// Empty without a scheduler, a single map for all hardware queues, or one for each.
    pub(super) scheduler_tags: Vec<Padded<Tags<Sh>>>,
    /// For each hardware queue.
    pub(super) flush_queues: Vec<Padded<Sh::Lock<FlushQueue>>>,
}

impl<Sh: Sharing> QueueState<Sh> {
    /// All that goes with an elevator. `asked` is the number of requests that was asked for; the elevator was made
    /// for them, and without one it is the number of the device's tags.
    pub(super) fn new(device: &Device<Sh>, rules: MergeRules, elevator: Elevator<Sh>, asked: Option<u32>) -> Self {
        let config = QueueConfig { nr_requests: asked, ..device.config.clone() };
        let depth = config.queue_depth;
        let nr_requests = match asked {
            _ if !elevator.is_none() => config.scheduler_depth(),
            None => depth,
            Some(nr) => nr.max(NR_REQUESTS_MIN),
        };
        let hctxs = device.hctxs.len() as u32;
        // The slots of all requests: those of each space of the tags that they are allocated with.
        let spaces = match (elevator.is_none(), config.host_wide_tags) {
            (true, true) => 1,
            (true, false) => hctxs,
            (false, _) => config.scheduler_maps(),
        };
        let of_space = if elevator.is_none() { depth } else { nr_requests };
        let scheduler_maps = if elevator.is_none() { 0 } else { spaces };
        let (cpus, shallow) = (usize::from(config.cpus), device.generation.shallow);
        let scheduler_map = |map| {
            let tags = Tags::new(nr_requests, cpus, shallow, elevator.min_shallow());
            // Other hints than those of the driver's tags.
            tags.randomize_hints(config.hint_seed.map(|seed| !seed), map);
            Padded(tags)
        };
        // Behind the ids that tags name.
        let flush_queue = |index: u32| Padded(Sh::Lock::new(FlushQueue::new(RqId(u32::MAX - index))));
        QueueState {
            rules,
            pool: RequestPool::of_queue(of_space * spaces),
            nr_requests,
            async_depth: config.async_depth(elevator.async_percent(), elevator.is_none()),
            driver_depth: device.driver_tags.limit_tags_in_use(if elevator.is_none() { nr_requests } else { depth }),
            slots_per_hctx: if spaces == 1 { 0 } else { of_space },
            flights: Flights::new(of_space * spaces, hctxs),
            scheduler_tags: (0..scheduler_maps).map(scheduler_map).collect(),
            flush_queues: (0..hctxs).map(flush_queue).collect(),
            elevator,
        }
    }

    /// The scheduler tags of a hardware queue, if there is a scheduler.
    #[inline]
    pub(super) fn scheduler_tags_of(&self, hctx: HctxId) -> Option<&Tags<Sh>> {
        let tags = self.scheduler_tags.get(if self.slots_per_hctx == 0 { 0 } else { hctx.index() });
        tags.map(|tags| &tags.0)
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
    /// What holds until the call is over.
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
    /// A call: the queue's state stays as it is until `body` ends. `body` cannot reach the queue itself, so calls do not nest.
    #[inline]
    pub(super) fn during<R>(&self, cpu: CpuId, body: impl FnOnce(Current<'_, Sh>) -> R) -> R {
        let device = &self.device;
        self.state.read(cpu, |state| body(Current { device, state }))
    }
}
