//! Request allocation: counts, marks and waiting tasks of each class (LQ-8 to LQ-13).
//!
//! Each cgroup that uses a queue has a list, with as many requests as the root's.

use std::collections::VecDeque;

use hoistway_blk::ground::{CgroupId, IoContextId, Now, Waiter};
use hoistway_blk::policy::MayQueue;
use hoistway_blk::queue::NR_REQUESTS_MIN;

use super::batching::Batchers;

/// The two classes of I/O, which have separate numbers of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncClass {
    /// No task waits for it.
    Async = 0,
    /// A task waits for it: reads, and writes with the sync flag.
    Sync = 1,
}

impl SyncClass {
    /// The class of sync or async I/O.
    #[inline]
    #[must_use]
    pub const fn of(sync: bool) -> SyncClass {
        if sync { SyncClass::Sync } else { SyncClass::Async }
    }

    const fn other(self) -> SyncClass {
        match self {
            SyncClass::Async => SyncClass::Sync,
            SyncClass::Sync => SyncClass::Async,
        }
    }
}

/// Limits derived from `nr_requests`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Thresholds {
    /// Requests per class; only batchers may exceed it.
    pub(super) nr_requests: u32,
    /// The class is congested from this number of requests on.
    congestion_on: u32,
    /// The congestion ends below this number.
    congestion_off: u32,
    /// The absolute maximum.
    pub(super) max: u32,
}

impl Thresholds {
    pub(super) fn new(nr_requests: u32) -> Self {
        let n = nr_requests.max(NR_REQUESTS_MIN);
        Thresholds {
            nr_requests: n,
            congestion_on: n.min(n - n / 8 + 1),
            congestion_off: (n - n / 8 - n / 16 - 1).max(1),
            max: 3 * n / 2,
        }
    }
}

/// The lists of all cgroups.
#[derive(Default)]
pub(super) struct RequestLists {
    /// By cgroup; created at first use.
    lists: Vec<RequestList>,
}

impl RequestLists {
    /// The list of a cgroup.
    #[inline]
    pub(super) fn for_cgroup(&mut self, cgroup: CgroupId) -> &mut RequestList {
        let index = cgroup.index();
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, RequestList::default);
        }
        &mut self.lists[index]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut RequestList> {
        self.lists.iter_mut()
    }
}

/// The requests of one cgroup.
#[derive(Default)]
pub(super) struct RequestList {
    classes: [Class; 2],
}

#[derive(Default)]
struct Class {
    /// Allocated requests.
    allocated: u32,
    congested: bool,
    /// Whether the limit was reached: only batchers may allocate.
    full: bool,
    /// Whether a task was refused while there was no request to wait for.
    starved: bool,
    /// Tasks that sleep for a request, in order.
    wait_queue: VecDeque<Waiter>,
}

impl RequestList {
    /// Counts a request of `class` for a task, if one may be allocated; `may` is the scheduler's decision.
    #[inline]
    pub(super) fn try_get(
        &mut self,
        now: Now,
        thresholds: &Thresholds,
        batchers: &mut Batchers,
        (class, io_context): (SyncClass, IoContextId),
        may: MayQueue,
    ) -> bool {
        let class = &mut self.classes[class as usize];
        if !class.try_admit(now, thresholds, batchers, io_context, may) {
            class.starved |= class.allocated == 0;
            return false;
        }
        class.allocated += 1;
        class.starved = false;
        batchers.take_one(now, io_context);
        true
    }

    /// Adds a waiting task.
    pub(super) fn wait(&mut self, class: SyncClass, waiter: Waiter) {
        self.classes[class as usize].wait_queue.push_back(waiter);
    }

    /// Removes a waiting task; `false` if it was removed already, because it was woken.
    pub(super) fn leave_wait_queue(&mut self, class: SyncClass, waiter: Waiter) -> bool {
        let wait_queue = &mut self.classes[class as usize].wait_queue;
        let index = wait_queue.iter().position(|&other| other == waiter);
        index.is_some_and(|index| wait_queue.remove(index).is_some())
    }

    /// A woken task wants no request: calls `wake` for the task that may try instead.
    pub(super) fn wake_next_request_waiter(
        &mut self,
        thresholds: &Thresholds,
        class: SyncClass,
        mut wake: impl FnMut(Waiter),
    ) {
        self.classes[class as usize].freed(thresholds, &mut wake);
    }

    /// A request of `class` was freed: calls `wake` for the task that may try again.
    #[inline]
    pub(super) fn put(&mut self, thresholds: &Thresholds, class: SyncClass, mut wake: impl FnMut(Waiter)) {
        let freed = &mut self.classes[class as usize];
        freed.allocated -= 1;
        freed.freed(thresholds, &mut wake);
        let other = &mut self.classes[class.other() as usize];
        if other.starved {
            other.freed(thresholds, &mut wake);
        }
    }

    /// The thresholds have changed: calls `wake` for as many tasks as there is room for.
    pub(super) fn resized(&mut self, thresholds: &Thresholds, mut wake: impl FnMut(Waiter)) {
        for class in &mut self.classes {
            if class.allocated >= thresholds.congestion_on {
                class.congested = true;
            } else if class.allocated < thresholds.congestion_off {
                class.congested = false;
            }
            class.full = class.allocated >= thresholds.nr_requests;
            let room = thresholds.nr_requests.saturating_sub(class.allocated) as usize;
            let woken = room.min(class.wait_queue.len());
            class.wait_queue.drain(..woken).for_each(&mut wake);
        }
    }

    pub(super) fn is_congested(&self, class: SyncClass) -> bool {
        self.classes[class as usize].congested
    }
}

impl Class {
    /// Whether another request may be allocated. The one that reaches the limit marks the class full, and its task may
    /// continue with a burst.
    #[inline]
    fn try_admit(
        &mut self,
        now: Now,
        thresholds: &Thresholds,
        batchers: &mut Batchers,
        io_context: IoContextId,
        may: MayQueue,
    ) -> bool {
        if may == MayQueue::No {
            return false;
        }
        let next = self.allocated + 1;
        if next >= thresholds.congestion_on {
            self.congested = true;
            if next >= thresholds.nr_requests {
                if !self.full {
                    self.full = true;
                    batchers.grant(now, io_context);
                } else if may != MayQueue::Must && !batchers.contains(now, io_context) {
                    return false;
                }
            }
        }
        self.allocated < thresholds.max
    }

    #[inline]
    fn freed(&mut self, thresholds: &Thresholds, wake: &mut impl FnMut(Waiter)) {
        if self.allocated < thresholds.congestion_off {
            self.congested = false;
        }
        if self.allocated < thresholds.nr_requests {
            if let Some(waiter) = self.wait_queue.pop_front() {
                wake(waiter);
            }
            self.full = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_for_128_are_113_103_and_192_and_for_1_those_of_4() {
        let thresholds = |n| {
            let t = Thresholds::new(n);
            (t.nr_requests, t.congestion_on, t.congestion_off, t.max)
        };
        assert_eq!(thresholds(128), (128, 113, 103, 192));
        assert_eq!(thresholds(4), (4, 4, 3, 6));
        assert_eq!(thresholds(1), thresholds(4));
    }
}
