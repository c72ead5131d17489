//! Freezing: new bios are kept out, and those already inside run to completion (BL-98, BL-99).
//!
//! What is inside: submissions, until their requests carry on alone, and requests, which are counted by their slots. A
//! submission in progress is in a call, and a call holds the state, so it needs no count: only those that are parked
//! inside have one. A change of the state is alone with the queue, finds every submission either parked or not yet
//! let in, and sees what it is about to change empty. For the same reason all words here are `Relaxed`: a submission
//! that overlooks a freeze is in a call that began before the change, which waits for it.

use std::sync::atomic::Ordering::Relaxed;

use super::state::{Current, QueueState};
use super::{Device, Queue};
use crate::caller::env::{Cx, Env};
use crate::drive::effects::Effect;
use crate::ground::ids::{CpuId, Waiter};
use crate::ground::lost::Home;
use crate::ground::meter::{Meter, Site};
use crate::ground::sharing::{Lock, ReadMostly, Sharing, Word};
use crate::ground::time::Nanos;

/// How often a queue is frozen, and who waits for that to end (`q_usage_counter` and `mq_freeze_depth` in Linux).
pub(super) struct Freeze<Sh: Sharing> {
    /// Of submissions that wait, here or inside.
    pub(super) home: Home,
    /// How many times the queue is frozen.
    frozen: Sh::Word,
    /// Submissions that are parked inside.
    parked: Sh::Word,
    /// Submissions that wait for the queue to thaw.
    thaw_waiters: Sh::Lock<Vec<Waiter>>,
}

impl<Sh: Sharing> Freeze<Sh> {
    pub(super) fn new() -> Self {
        Freeze {
            home: Home::default(),
            frozen: Sh::Word::new(0),
            parked: Sh::Word::new(0),
            thaw_waiters: Sh::Lock::new(Vec::new()),
        }
    }

    /// Whether a submission may enter. It is inside for the rest of the call.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.frozen.load(Relaxed) == 0
    }

    /// A submission parks inside, and stays beyond the call.
    pub(super) fn stay(&self) {
        self.parked.fetch_add(1, Relaxed);
    }

    /// A submission that had parked has left.
    pub(super) fn leave(&self) {
        self.parked.fetch_sub(1, Relaxed);
    }

    /// Lines up a submission that was not let in. Returns whether it must wait; else the queue has thawed meanwhile.
    pub(super) fn wait(&self, meter: &impl Meter, waiter: Waiter) -> bool {
        self.thaw_waiters.with(meter, Site::Freeze, |waiters| {
            // unfreeze() takes this lock after it has thawed the queue, so it finds a waiter that finds the queue frozen here.
            let must_wait = !self.is_open();
            if must_wait {
                waiters.push(waiter);
            }
            must_wait
        })
    }

    /// A waiter in line no longer waits.
    pub(super) fn forget(&self, meter: &impl Meter, waiter: Waiter) {
        self.thaw_waiters.with(meter, Site::Freeze, |waiters| waiters.retain(|&other| other != waiter));
    }
}

impl<Sh: Sharing> Device<Sh> {
    /// Whether nothing is inside: exact for the holder of the whole state.
    pub(super) fn is_empty(&self, state: &QueueState<Sh>) -> bool {
        self.freeze.parked.load(Relaxed) == 0 && state.pool.in_use() == 0
    }

    /// Whether the queue is frozen and has emptied; as exact.
    pub(super) fn is_drained(&self, state: &QueueState<Sh>) -> bool {
        !self.freeze.is_open() && self.is_empty(state)
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Freezes the queue: new submissions wait. It is run, so that it empties. Freezing nests.
    pub fn freeze<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.device.freeze.frozen.fetch_add(1, Relaxed);
        cx.effects.push(Effect::RunAll { delay: Nanos::ZERO });
    }

    /// Undoes one [`freeze`](Self::freeze); the last one wakes those that wait.
    pub fn unfreeze<E: Env>(&self, cx: &mut Cx<'_, E>) {
        let freeze = &self.device.freeze;
        if freeze.frozen.fetch_sub(1, Relaxed) == 1 {
            for waiter in freeze.thaw_waiters.with(cx.meter, Site::Freeze, std::mem::take) {
                cx.effects.push(Effect::Wake(waiter));
            }
        }
    }

    /// Whether new submissions have to wait.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        !self.device.freeze.is_open()
    }

    /// Whether a frozen queue has emptied: no submission is in progress and no request exists, plugged ones included.
    /// Check after each completion, and after each submission that is [cancelled](Self::cancel).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        // Running calls are waited for only if the queue may be empty.
        self.during(CpuId(0), |queue: Current<'_, Sh>| queue.is_drained(queue.state))
            && self.state.change(|state| self.device.is_drained(state))
    }
}
