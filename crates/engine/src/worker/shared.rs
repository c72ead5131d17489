//! What all workers and clients of an engine have in common.

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

/// Bits of a [`Waiter`] that are the number of a client at its worker; the others are the worker.
const CLIENT_BITS: u32 = 24;

/// The common things.
pub struct Shared {
    pub queue: Queue<Threads>,
    pub slots: Slots,
    pub mailboxes: Vec<Mailbox<Message>>,
    pub clock: Box<dyn Clock>,
    pub hz: Hz,
    pub statistics: Option<Arc<DiskCounters>>,
    /// When the scheduler's timer is due, ns, as it was set last. The worker that set it checks here when the time has come,
    /// because another one may have replaced it. `Relaxed`: a timer may be late by the time that the store takes to be seen.
    pub timer_ns: AtomicU64,
    /// Stopping workers without in-flight requests.
    pub quiet: AtomicUsize,
    /// Of each worker, the numbers of its clients.
    pub client_numbers: Vec<Mutex<ClientNumbers>>,
    /// Writes that change blocks in part.
    pub unaligned: Mutex<RangeLocks>,
    /// I/O contexts so far.
    pub io_contexts: AtomicU32,
    /// Groups that were ever made: a number is not used twice.
    pub groups_made: AtomicU32,
    /// Groups and their weights, for a new scheduler.
    pub groups: Mutex<Vec<(CgroupId, u16)>>,
}

/// The numbers of a worker's clients: those that are free, and how many there are.
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

    /// Whether the scheduler's timer is due. Not if another worker has set it anew or has come first.
    pub fn take_timer(&self, now: Instant) -> bool {
        let set = self.timer_ns.load(Relaxed);
        set <= now.0 && self.timer_ns.compare_exchange(set, Instant::NEVER.0, Relaxed, Relaxed).is_ok()
    }

    /// Events that introduce all groups to a new scheduler.
    pub fn events_of_groups(&self) -> Vec<SchedulerEvent> {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().flat_map(|&(cgroup, weight)| events_of_group(cgroup, weight)).collect()
    }
}

/// Events that introduce a group to a scheduler.
pub fn events_of_group(cgroup: CgroupId, weight: u16) -> [SchedulerEvent; 2] {
    [SchedulerEvent::CgroupAdded { cgroup, parent: CgroupId::ROOT }, SchedulerEvent::Weight { cgroup, weight }]
}

/// What the queue calls a client.
pub fn waiter(worker: usize, client: u32) -> Waiter {
    Waiter((worker as u32) << CLIENT_BITS | client)
}

/// The worker of a waiter, and its number there.
pub fn place(Waiter(waiter): Waiter) -> (usize, u32) {
    ((waiter >> CLIENT_BITS) as usize, waiter & ((1 << CLIENT_BITS) - 1))
}

/// The CPU of a worker.
pub fn cpu(worker: usize) -> CpuId {
    CpuId(worker as u32)
}
