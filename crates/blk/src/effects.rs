//! Effects: what the block layer wants done by whoever owns the clock and the threads. Calls do not call back;
//! they answer with effects.

use std::collections::VecDeque;

use crate::bio::{Bio, Status};
use crate::elevator::Calls;
use crate::ids::{HctxId, Waiter};
use crate::request::Rq;
use crate::time::{Instant, Nanos};

/// How long a run is delayed when nothing else would trigger it (`block-layer.md` 15.3).
pub const RESOURCE_DELAY: Nanos = Nanos::from_millis(3);

/// Something to be done.
#[derive(Debug)]
pub enum Effect {
    /// A bio has ended: tell its submitter.
    EndBio {
        /// The bio.
        bio: Bio,
        /// How it ended.
        status: Status,
    },
    /// Wake a submitter that sleeps: it goes on with its submission.
    Wake(Waiter),
    /// Run a hardware queue on a worker.
    RunHctx {
        /// Which.
        hctx: HctxId,
        /// Not before this has passed. A later request for the same queue replaces an earlier one.
        delay: Nanos,
    },
    /// Run all hardware queues on workers.
    RunAll {
        /// Not before this has passed. A queue that is already waiting to run is left alone.
        delay: Nanos,
    },
    /// Put requeued requests back in.
    KickRequeue,
    /// Call [`Queue::timer`](crate::Queue::timer) at this moment; replaces an earlier one.
    SetTimer(Instant),
    /// Forget the timer.
    CancelTimer,
}

/// The effects of one or more calls, in order, and buffers that calls reuse.
#[derive(Default)]
pub struct Effects {
    list: VecDeque<Effect>,
    spare: Vec<VecDeque<Rq>>,
    freed: Vec<Rq>,
}

impl Effects {
    /// No effects.
    #[must_use]
    pub fn new() -> Self {
        Effects::default()
    }

    /// Takes the oldest effect.
    #[inline]
    pub fn pop(&mut self) -> Option<Effect> {
        self.list.pop_front()
    }

    /// Whether nothing is to be done.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push_back(effect);
    }

    /// What a policy asked for.
    #[inline]
    pub(crate) fn push_calls(&mut self, calls: Calls) {
        let nothing = calls.set_timer.is_none() && !calls.cancel_timer && !calls.run_queues;
        if !nothing || !calls.run_hctxs.is_empty() {
            self.push_some_calls(calls);
        }
    }

    #[cold]
    fn push_some_calls(&mut self, calls: Calls) {
        if let Some(at) = calls.set_timer {
            self.push(Effect::SetTimer(at));
        } else if calls.cancel_timer {
            self.push(Effect::CancelTimer);
        }
        if calls.run_queues {
            self.push(Effect::RunAll { delay: Nanos::ZERO });
        }
        for hctx in calls.run_hctxs.iter() {
            self.push(Effect::RunHctx { hctx, delay: Nanos::ZERO });
        }
    }

    /// An empty list of requests that keeps its memory between uses.
    #[inline]
    pub(crate) fn take_list(&mut self) -> VecDeque<Rq> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives an emptied list back.
    #[inline]
    pub(crate) fn give_list(&mut self, list: VecDeque<Rq>) {
        debug_assert!(list.is_empty(), "no request is left behind");
        if list.capacity() > 0 {
            self.spare.push(list);
        }
    }

    /// The buffer for requests that were absorbed during a call.
    #[inline]
    pub(crate) fn take_freed(&mut self) -> Vec<Rq> {
        std::mem::take(&mut self.freed)
    }

    #[inline]
    pub(crate) fn give_freed(&mut self, freed: Vec<Rq>) {
        debug_assert!(freed.is_empty(), "no request is left behind");
        self.freed = freed;
    }
}
