//! What all workers and clients of an engine have in common.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use hoistway_blk::ground::{CgroupId, CpuId, Hz, Instant, Now, Threads, Waiter};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::Queue;

use super::disk_counters::DiskCounters;
use super::message::Message;
use crate::clock::Clock;
use crate::mailbox::Mailbox;
use crate::slots::Slots;

/// Workers that a [`Waiter`] can name, and seats of each.
const SEAT_BITS: u32 = 24;

/// The common things.
pub struct Shared {
    pub queue: Queue<Threads>,
    pub slots: Slots,
    pub mailboxes: Vec<Mailbox<Message>>,
    pub clock: Box<dyn Clock>,
    pub hz: Hz,
    pub statistics: Option<Arc<DiskCounters>>,
    /// When the scheduler's timer is due, as whoever asked last for it said, ns. Whoever's setting it was looks there when
    /// the moment has come; a later setting elsewhere has replaced it. `Relaxed`: too early or too late by the time that
    /// another thread needs to see it, a timer is as good.
    pub timer_ns: AtomicU64,
    /// Workers that were stopped and have nothing under way.
    pub quiet: AtomicUsize,
    /// Seats of each worker that nobody sits on, and how many there are in all.
    pub seats: Vec<Mutex<Seats>>,
    /// I/O contexts so far.
    pub io_contexts: AtomicU32,
    /// Groups that were ever made: a number is not used twice.
    pub groups_made: AtomicU32,
    /// Groups and their weights: a scheduler that is new is told of them.
    pub groups: Mutex<Vec<(CgroupId, u16)>>,
}

/// The seats of a worker's clients.
#[derive(Default)]
pub struct Seats {
    free: Vec<u32>,
    made: u32,
}

impl Seats {
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }

    pub fn give_back(&mut self, seat: u32) {
        self.free.push(seat);
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

    /// What a new scheduler has to be told.
    pub fn news_of_groups(&self) -> Vec<SchedulerEvent> {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.iter().flat_map(|&(cgroup, weight)| news_of_group(cgroup, weight)).collect()
    }
}

/// A group that schedulers do not know.
pub fn news_of_group(cgroup: CgroupId, weight: u16) -> [SchedulerEvent; 2] {
    [SchedulerEvent::CgroupAdded { cgroup, parent: CgroupId::ROOT }, SchedulerEvent::Weight { cgroup, weight }]
}

/// The name of whoever sits there to the queue.
pub fn waiter(worker: usize, seat: u32) -> Waiter {
    Waiter((worker as u32) << SEAT_BITS | seat)
}

/// Where a waiter sits.
pub fn place(Waiter(waiter): Waiter) -> (usize, u32) {
    ((waiter >> SEAT_BITS) as usize, waiter & ((1 << SEAT_BITS) - 1))
}

/// The CPU of a worker.
pub fn cpu(worker: usize) -> CpuId {
    CpuId(worker as u32)
}
