//! Queue freeze: new bios have to wait, and those already inside run to completion (BL-98, BL-99).
//!
//! Inside are submissions, until they have become requests, and requests, which are counted by their slots. A submission in
//! progress is in a call, which holds the state, so only submissions that are parked inside need a count. A change of the
//! state is exclusive: it finds every submission either parked or not yet admitted. For the same reason all words here are
//! `Relaxed`: a submission that misses a freeze is in a call that began before the change, and the change waits for it.

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

/// Freeze depth and waiters of a queue (`q_usage_counter` and `mq_freeze_depth` in Linux).
pub(super) struct Freeze<Sh: Sharing> {
    /// The home of waiting submissions, here or inside.
    pub(super) home: Home,
    /// Freeze depth.
    freeze_depth: Sh::Word,
    /// Number of submissions parked inside.
    parked: Sh::Word,
    /// Submissions that wait for the queue to thaw.
    thaw_waiters: Sh::Lock<Vec<Waiter>>,
}

impl<Sh: Sharing> Freeze<Sh> {
    pub(super) fn new() -> Self {
        Freeze {
            home: Home::default(),
            freeze_depth: Sh::Word::new(0),
            parked: Sh::Word::new(0),
            thaw_waiters: Sh::Lock::new(Vec::new()),
        }
    }

    /// Whether a submission may enter. It is then inside for the rest of the call.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.freeze_depth.load(Relaxed) == 0
    }

    /// A submission parks inside beyond the current call.
    pub(super) fn park(&self) {
        self.parked.fetch_add(1, Relaxed);
    }

    /// A parked submission has left.
    pub(super) fn unpark(&self) {
        self.parked.fetch_sub(1, Relaxed);
    }

    /// Queues a submission that was not admitted. Returns `false` if the queue has thawed meanwhile, so that it need not wait.
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

    /// Removes a waiter.
    pub(super) fn remove_waiter(&self, meter: &impl Meter, waiter: Waiter) {
        self.thaw_waiters.with(meter, Site::Freeze, |waiters| waiters.retain(|&other| other != waiter));
    }
}

impl<Sh: Sharing> Device<Sh> {
    /// Whether nothing is inside; exact if the caller has exclusive access to the state.
    pub(super) fn is_empty(&self, state: &QueueState<Sh>) -> bool {
        self.freeze.parked.load(Relaxed) == 0 && state.pool.in_use() == 0
    }

    /// Whether the queue is frozen and empty; exact under the same condition.
    pub(super) fn is_drained(&self, state: &QueueState<Sh>) -> bool {
        !self.freeze.is_open() && self.is_empty(state)
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Freezes the queue: new submissions wait, and the queue is run until it is empty. Freezes nest.
    pub fn freeze<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.device.freeze.freeze_depth.fetch_add(1, Relaxed);
        cx.effects.push(Effect::RunAll { delay: Nanos::ZERO });
    }

    /// Undoes one [`freeze`](Self::freeze); the last one wakes the waiters.
    pub fn unfreeze<E: Env>(&self, cx: &mut Cx<'_, E>) {
        let freeze = &self.device.freeze;
        if freeze.freeze_depth.fetch_sub(1, Relaxed) == 1 {
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

    /// Whether a frozen queue is empty: no submission is in progress and no request exists, including plugged ones. Check
    /// after each completion and each [cancelled](Self::cancel) submission.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        // Wait for running calls only if the queue may be empty.
        self.during(CpuId(0), |queue: Current<'_, Sh>| queue.is_drained(queue.state))
            && self.state.change(|state| self.device.is_drained(state))
    }
}
