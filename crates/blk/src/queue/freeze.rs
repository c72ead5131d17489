//! Freezing: nobody enters, and everything that is inside goes on until it has ended (`block-layer.md` 20).
//!
//! Each submission is counted from the moment it enters to the moment its requests carry on alone; requests are counted
//! by their slots. The counts of the CPUs are words of their own, so that entering shares nothing; a submission may
//! leave on another CPU than it entered on, and only the sum means something.

use super::Queue;
use crate::effects::Effect;
use crate::env::{Cx, Env};
use crate::ids::{CpuId, Waiter};
use crate::lost::Home;
use crate::meter::{Meter, Site};
use crate::sharing::{Lock, Sharing, Word};
use crate::time::Nanos;

/// The gate in front of a queue.
pub(super) struct Gate<Sh: Sharing> {
    /// Of submissions that wait, here or inside.
    pub(super) home: Home,
    /// How many times the queue is frozen.
    frozen: Sh::Word,
    /// Submissions that have entered on each CPU, less those that have left there.
    inside: Vec<Sh::Word>,
    /// Who waits for it to open.
    shut_out: Sh::Lock<Vec<Waiter>>,
}

impl<Sh: Sharing> Gate<Sh> {
    pub(super) fn new(cpus: u16) -> Self {
        Gate {
            home: Home::default(),
            frozen: Sh::Word::new(0),
            inside: (0..cpus).map(|_| Sh::Word::new(0)).collect(),
            shut_out: Sh::Lock::new(Vec::new()),
        }
    }

    /// Lets a submission in, or not.
    #[inline]
    pub(super) fn enter(&self, cpu: CpuId) -> bool {
        // Counted first: whoever freezes either sees the count or is seen.
        let inside = &self.inside[cpu.index()];
        inside.fetch_add(1);
        let open = self.frozen.load() == 0;
        if !open {
            inside.fetch_sub(1);
        }
        open
    }

    /// A submission has left.
    #[inline]
    pub(super) fn leave(&self, cpu: CpuId) {
        self.inside[cpu.index()].fetch_sub(1);
    }

    /// Lines up a submission that was not let in. Answers whether it must wait; else the gate has opened meanwhile.
    pub(super) fn wait(&self, meter: &impl Meter, waiter: Waiter) -> bool {
        self.shut_out.with(meter, Site::Gate, |waiters| waiters.push(waiter));
        if self.frozen.load() > 0 {
            return true;
        }
        self.forget(meter, waiter);
        false
    }

    /// Somebody in line no longer waits, or has been let in already.
    pub(super) fn forget(&self, meter: &impl Meter, waiter: Waiter) {
        self.shut_out.with(meter, Site::Gate, |waiters| waiters.retain(|&other| other != waiter));
    }

    fn is_empty(&self) -> bool {
        self.inside.iter().fold(0, |sum: u64, inside| sum.wrapping_add(inside.load())) == 0
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Closes the queue for newcomers, who wait, and has it run, so that it empties. Freezing nests.
    pub fn freeze<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.gate.frozen.fetch_add(1);
        cx.effects.push(Effect::RunAll { delay: Nanos::ZERO });
    }

    /// Undoes one [`freeze`](Self::freeze); the last one lets those in who wait.
    pub fn unfreeze<E: Env>(&self, cx: &mut Cx<'_, E>) {
        if self.gate.frozen.fetch_sub(1) == 1 {
            for waiter in self.gate.shut_out.with(cx.meter, Site::Gate, std::mem::take) {
                cx.effects.push(Effect::Wake(waiter));
            }
        }
    }

    /// Whether newcomers have to wait.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.gate.frozen.load() > 0
    }

    /// Whether a frozen queue has emptied: no submission is under way and no request exists, plugged ones included.
    /// Whoever freezes looks after each completion, and after each submission that is [cancelled](Self::cancel).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_frozen() && self.gate.is_empty() && self.requests_in_use() == 0
    }
}
