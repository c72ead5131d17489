//! Which I/Os are admitted and which wait (BL-119 to BL-125): counters, limits by the kind of write, and queues of
//! waiters.

use std::collections::VecDeque;

use super::control::Control;
use super::default_target;
use super::depths::Depths;
use crate::bio::{BioFlags, Op};
use crate::ground::ids::Waiter;
use crate::ground::time::{Instant, Nanos};

/// A task counts as throttled because of dirty pages for this long after it continues.
const DIRTY_RECENT_FOR: Nanos = Nanos::from_secs(1);
/// Reads count as recent for this long after one began or ended.
const READS_RECENT_FOR: Nanos = Nanos::from_millis(100);

/// Flags of I/O that its submitter or other tasks wait for.
const URGENT: BioFlags = BioFlags::SYNC.with(BioFlags::META).with(BioFlags::PRIO).with(BioFlags::SWAP);

/// The kinds of throttled I/O. Each has a counter and a queue of waiters of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Normal,
    Swap,
    Discard,
}

impl Kind {
    /// The kind of an I/O; `None` if it is never throttled, as reads and direct writes are not.
    #[inline]
    pub(crate) fn of(op: Op, flags: BioFlags) -> Option<Kind> {
        match op {
            Op::Write if flags.contains(BioFlags::SYNC.with(BioFlags::IDLE)) => None,
            Op::Write | Op::Discard => Some(Kind::of_counted(op, flags)),
            Op::Read | Op::Flush | Op::WriteZeroes => None,
        }
    }

    /// The kind of an I/O that was counted. (A flush sequence may have changed other flags of it.)
    pub(crate) fn of_counted(op: Op, flags: BioFlags) -> Kind {
        match op {
            Op::Discard => Kind::Discard,
            _ if flags.contains(BioFlags::SWAP) => Kind::Swap,
            _ => Kind::Normal,
        }
    }
}

/// What happens to an I/O that is to be submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// Nothing is throttled now: it is admitted and not counted.
    Free,
    /// It is admitted, and counted until its end.
    Counted,
    /// It has to wait.
    Waits,
}

/// The number of I/Os of a kind in flight, and those that wait for one of them to end.
#[derive(Debug, Default)]
struct Counter {
    in_flight: u32,
    waiting: VecDeque<(Waiter, BioFlags)>,
}

/// The throttle of a device.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// Tags of the device.
    queue_depth: u32,
    /// The latency that reads should have; 0 if nothing is throttled.
    target: Nanos,
    /// The target has been written: no scheduler changes it then.
    is_set_by_user: bool,
    depths: Depths,
    control: Control,
    counters: [Counter; 3],
    /// Until when a task counts as throttled because of dirty pages.
    dirty_until: Instant,
    /// When a read last began or ended.
    last_read: Option<Instant>,
    is_timer_set: bool,
}

impl Throttle {
    pub(crate) fn new(queue_depth: u32) -> Self {
        Throttle {
            queue_depth,
            target: Nanos::ZERO,
            is_set_by_user: false,
            depths: Depths::at(queue_depth, 0),
            control: Control::default(),
            counters: Default::default(),
            dirty_until: Instant::ZERO,
            last_read: None,
            is_timer_set: false,
        }
    }

    // --- the target ---

    pub(crate) fn target(&self) -> Nanos {
        self.target
    }

    /// The queue has got a scheduler that disables throttling, or one that does not. A target that was written by the
    /// user stays.
    pub(crate) fn follow_scheduler(&mut self, disables: bool, rotational: bool) {
        if !self.is_set_by_user {
            self.target = if disables { Nanos::ZERO } else { default_target(rotational) };
            if disables {
                self.reset_learned_state();
            }
        }
    }

    /// The user writes the target; 0 switches the throttle off and admits all I/Os that wait.
    pub(crate) fn set_target(&mut self, target: Nanos, mut wake: impl FnMut(Waiter)) {
        self.target = target;
        self.is_set_by_user = true;
        if target == Nanos::ZERO {
            self.reset_learned_state();
            for counter in &mut self.counters {
                counter.in_flight += counter.waiting.len() as u32;
                counter.waiting.drain(..).for_each(|(waiter, _)| wake(waiter));
            }
        }
    }

    /// Resets the state of the control.
    fn reset_learned_state(&mut self) {
        self.control = Control::default();
        self.depths = Depths::at(self.queue_depth, 0);
    }

    // --- admission ---

    /// Whether an I/O is admitted. None overtakes waiting ones of its kind.
    pub(crate) fn admit(&mut self, now: Instant, kind: Kind, flags: BioFlags) -> Admission {
        if self.target == Nanos::ZERO {
            return Admission::Free;
        }
        let limit = self.limit(now, kind, flags);
        let counter = &mut self.counters[kind as usize];
        if !counter.waiting.is_empty() || counter.in_flight >= limit {
            return Admission::Waits;
        }
        counter.in_flight += 1;
        Admission::Counted
    }

    /// As [`admit`](Self::admit); an I/O that has to wait joins the end of its queue of waiters.
    pub(crate) fn admit_or_join(&mut self, now: Instant, kind: Kind, flags: BioFlags, waiter: Waiter) -> Admission {
        let admission = self.admit(now, kind, flags);
        if admission == Admission::Waits {
            self.counters[kind as usize].waiting.push_back((waiter, flags));
        }
        admission
    }

    /// Whether a waiter still waits. One that does not has been counted and admitted.
    pub(crate) fn is_waiting(&self, kind: Kind, waiter: Waiter) -> bool {
        self.counters[kind as usize].waiting.iter().any(|&(queued, _)| queued == waiter)
    }

    /// A waiter leaves its queue without being counted; `false` if it was no longer there because it has been counted.
    pub(crate) fn leave_wait_queue(&mut self, kind: Kind, waiter: Waiter) -> bool {
        let waiting = &mut self.counters[kind as usize].waiting;
        let index = waiting.iter().position(|&(queued, _)| queued == waiter);
        index.is_some_and(|index| waiting.remove(index).is_some())
    }

    /// A new I/O of a kind is admitted while fewer than this are in flight.
    fn limit(&self, now: Instant, kind: Kind, flags: BioFlags) -> u32 {
        if kind == Kind::Discard {
            self.depths.background
        } else if flags.intersects(URGENT) || self.is_dirty(now) {
            self.depths.max
        } else if flags.contains(BioFlags::BACKGROUND) || self.has_reads(now) {
            self.depths.background
        } else {
            self.depths.normal
        }
    }

    fn has_reads(&self, now: Instant) -> bool {
        self.last_read.is_some_and(|at| now.since(at) < READS_RECENT_FOR)
    }

    /// Whether a task is, or recently was, throttled because too much memory is dirty.
    fn is_dirty(&self, now: Instant) -> bool {
        now < self.dirty_until
    }

    /// Sets whether a task is throttled because of dirty pages.
    pub(crate) fn set_dirty_throttled(&mut self, now: Instant, is_throttled: bool) {
        self.dirty_until = if is_throttled { Instant::NEVER } else { now + DIRTY_RECENT_FOR };
    }

    // --- completion ---

    /// A counted I/O has ended, or was not submitted after all. Those that are admitted because of it are counted and
    /// passed to `wake`.
    pub(crate) fn end_counted(&mut self, now: Instant, kind: Kind, write_cache: bool, mut wake: impl FnMut(Waiter)) {
        let limit = match kind {
            Kind::Discard => self.depths.background,
            // Writes that such a device has completed are not on the medium yet: the device is given time for that.
            Kind::Normal | Kind::Swap if write_cache && !self.is_dirty(now) => 0,
            Kind::Normal | Kind::Swap => self.depths.normal,
        };
        let counter = &mut self.counters[kind as usize];
        debug_assert!(counter.in_flight > 0, "a counted I/O ends only once");
        counter.in_flight = counter.in_flight.saturating_sub(1);
        let in_flight = counter.in_flight;
        let has_room = in_flight < limit && limit - in_flight >= self.depths.background / 2;
        if in_flight > 0 && !has_room {
            return;
        }
        while let Some(&(waiter, flags)) = self.counters[kind as usize].waiting.front() {
            let limit = self.limit(now, kind, flags);
            let counter = &mut self.counters[kind as usize];
            if counter.in_flight >= limit {
                return;
            }
            counter.in_flight += 1;
            counter.waiting.pop_front();
            wake(waiter);
        }
    }

    /// Throttled I/Os in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.counters.iter().map(|counter| counter.in_flight).sum()
    }

    // --- the control ---

    /// The driver has been given a read.
    pub(crate) fn read_issued(&mut self, now: Instant) {
        self.last_read = Some(now);
    }

    /// A read has ended, `latency` after the driver got it.
    pub(crate) fn read_ended(&mut self, now: Instant, latency: Nanos) {
        self.last_read = Some(now);
        self.control.read_ended(latency);
    }

    /// A write of any kind has ended.
    pub(crate) fn write_ended(&mut self) {
        self.control.write_ended();
    }

    /// When the current window ends, if the timer has to be set for that now.
    pub(crate) fn begin_window(&mut self, now: Instant) -> Option<Instant> {
        let is_needed = self.target > Nanos::ZERO && (self.control.step() != 0 || self.in_flight() > 0);
        if self.is_timer_set || !is_needed {
            return None;
        }
        self.is_timer_set = true;
        Some(now + self.control.window())
    }

    /// The timer has fired. `oldest_read`: when the driver got the oldest of the reads that it still has. Returns when
    /// the next window ends, if there has to be one.
    pub(crate) fn window_expired(&mut self, now: Instant, oldest_read: Option<Instant>) -> Option<Instant> {
        self.is_timer_set = false;
        if self.target > Nanos::ZERO {
            let result = self.control.window_result(self.target, oldest_read.map(|at| now.since(at)));
            self.control.next_window(result, self.queue_depth);
            self.depths = Depths::at(self.queue_depth, self.control.step());
        }
        self.begin_window(now)
    }

    /// Whether it must be notified of issued and completed requests; not while nothing is throttled.
    pub(crate) fn is_tracking(&self) -> bool {
        self.is_timer_set || self.in_flight() > 0
    }

    /// The limits now.
    #[cfg(test)]
    pub(super) fn depths(&self) -> Depths {
        self.depths
    }
}
