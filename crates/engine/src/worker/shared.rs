//! State that all workers and clients of an engine share.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use hoistway_blk::ground::{CgroupId, CpuId, Hz, Instant, Now, Threads, Waiter};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::Queue;

use super::disk_counters::DiskCounters;
use super::message::Message;
use super::ranges::RangeLocks;
use crate::clock::Clock;
use crate::mailbox::Mailbox;
use crate::slots::Slots;

/// Bits of a [`Waiter`] for the number of a client on its worker; the other bits are the worker.
const CLIENT_BITS: u32 = 24;

/// The shared state.
pub struct Shared {
    pub queue: Queue<Threads>,
    pub slots: Slots,
    pub mailboxes: Vec<Mailbox<Message>>,
    pub clock: Arc<dyn Clock>,
    pub hz: Hz,
    pub statistics: Option<Arc<DiskCounters>>,
    /// When the scheduler's timer is due, ns, as it was last set. The worker that set it checks here when it is due, because
    /// another one may have changed it. `Relaxed`: a timer may be late by the time until the store becomes visible.
    pub timer_ns: AtomicU64,
    /// Number of stopping workers without requests in flight.
    pub drained_workers: AtomicUsize,
    /// For each worker, the numbers of its clients.
    pub client_numbers: Vec<Mutex<ClientNumbers>>,
    /// Locks of writes that change blocks in part.
    pub unaligned: Mutex<RangeLocks>,
    /// Number of I/O contexts so far.
    pub io_contexts: AtomicU32,
    /// Number of groups ever made: numbers are not reused.
    pub groups_made: AtomicU32,
    /// Groups and their weights, for a new scheduler.
    pub groups: Mutex<Vec<(CgroupId, u16)>>,
}

/// The client numbers of a worker: the free ones, and how many were allocated.
#[derive(Default)]
pub struct ClientNumbers {
    free: Vec<u32>,
    made: u32,
}

impl ClientNumbers {
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }

    pub fn give_back(&mut self, client: u32) {
        self.free.push(client);
    }
}

impl Shared {
    pub fn now(&self) -> Now {
        self.hz.now(self.clock.now())
    }

    /// Whether the scheduler's timer is due. It is not if another worker has changed it or was faster.
    pub fn take_timer(&self, now: Instant) -> bool {
        let set = self.timer_ns.load(Relaxed);
        set <= now.0 && self.timer_ns.compare_exchange(set, Instant::NEVER.0, Relaxed, Relaxed).is_ok()
    }

    /// Events that announce all groups to a new scheduler.
    pub fn events_of_groups(&self) -> Vec<SchedulerEvent> {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().flat_map(|&(cgroup, weight)| events_of_group(cgroup, weight)).collect()
    }
}

/// Events that announce a group to a scheduler.
pub fn events_of_group(cgroup: CgroupId, weight: u16) -> [SchedulerEvent; 2] {
    [SchedulerEvent::CgroupAdded { cgroup, parent: CgroupId::ROOT }, SchedulerEvent::Weight { cgroup, weight }]
}

/// The waiter of a client in the queue.
pub fn waiter(worker: usize, client: u32) -> Waiter {
    Waiter((worker as u32) << CLIENT_BITS | client)
}

/// The worker of a waiter, and the client's number there.
pub fn worker_and_client(Waiter(waiter): Waiter) -> (usize, u32) {
    ((waiter >> CLIENT_BITS) as usize, waiter & ((1 << CLIENT_BITS) - 1))
}

/// The CPU of a worker.
pub fn cpu(worker: usize) -> CpuId {
    CpuId(worker as u32)
}
