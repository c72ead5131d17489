//! Effects: work that calls into the block layer request from the owner of clock and threads. There are no callbacks;
//! calls return effects. An [`Agenda`](crate::caller::Agenda) takes them and applies the rules by which one replaces
//! another.

use std::collections::VecDeque;

use crate::bio::{Bio, Status};
use crate::ground::ids::{CpuId, HctxId, IoContextId, QueueId, RqId, Waiter};
use crate::ground::time::{Instant, Nanos, Now};
use crate::policy::{ElevatorCx, RequestedActions};

/// Delay of a run that nothing else would trigger (BL-86 to BL-89).
pub const RESOURCE_DELAY: Nanos = Nanos::from_millis(3);

/// One requested piece of work.
#[derive(Debug)]
pub enum Effect {
    /// A bio has ended: notify its submitter.
    EndBio {
        /// The bio.
        bio: Bio,
        /// How it ended.
        status: Status,
    },
    /// Wake a submitter that sleeps: it continues its submission.
    Wake(Waiter),
    /// Run a hardware queue on a worker.
    RunHctx {
        /// The hardware queue.
        hctx: HctxId,
        /// Minimum delay.
        delay: Nanos,
    },
    /// Run a hardware queue of another queue, with which this one shares a [`TagSet`](crate::tags::TagSet), on a worker.
    RunOther {
        /// The other queue.
        queue: QueueId,
        /// The hardware queue.
        hctx: HctxId,
    },
    /// Run all hardware queues on workers.
    RunAll {
        /// Minimum delay.
        delay: Nanos,
    },
    /// Reinsert requeued requests.
    KickRequeue,
    /// Set the scheduler's timer to this time.
    SetTimer(Instant),
    /// Cancel the scheduler's timer.
    CancelTimer,
    /// Scan for timeouts at this time.
    SetTimeout(Instant),
    /// A request has timed out: a worker on the CPU that started it has to [ask its
    /// driver](crate::caller::BlockQueue::timed_out).
    TimedOut {
        /// The CPU.
        cpu: CpuId,
        /// The request.
        id: RqId,
    },
    /// A window of write-back throttling ends at this time.
    SetWindow(Instant),
    /// Have the drive arbitrate between the classes of hardware queues high, medium and low by these weights; `None`: as it does by itself.
    Arbitrate(Option<[u16; 3]>),
    /// Have a process run on another CPU from its next wake-up on, if it is allowed to run there.
    MoveSubmitter {
        /// The I/O context of the process.
        io_context: IoContextId,
        /// The CPU.
        cpu: CpuId,
    },
}

/// The effects of one or more calls, in order.
#[derive(Default)]
pub struct Effects {
    list: VecDeque<Effect>,
    /// Completed bios, separate from other effects: wrapping each in an [`Effect`] would cost a store-forwarding stall (a
    /// wide read after narrow writes).
    ended: Vec<Bio>,
    /// Failed bios among them, by index.
    failed: Vec<(usize, Status)>,
    /// Number of completed bios that have been popped.
    popped: usize,
}

impl Effects {
    /// No effects.
    #[must_use]
    pub fn new() -> Self {
        Effects::default()
    }

    /// Takes the oldest effect; completed bios come before all others.
    #[inline]
    pub fn pop(&mut self) -> Option<Effect> {
        if self.ended.is_empty() { self.list.pop_front() } else { self.pop_one_ended() }
    }

    /// Takes the oldest effect if it is a wake-up.
    #[inline]
    pub fn pop_wake(&mut self) -> Option<Waiter> {
        let &Effect::Wake(waiter) = self.list.front()? else { return None };
        if self.has_ended() {
            return None;
        }
        self.list.pop_front();
        Some(waiter)
    }

    fn pop_one_ended(&mut self) -> Option<Effect> {
        let effect = Effect::EndBio { bio: self.ended[self.popped].clone(), status: self.status(self.popped) };
        self.popped += 1;
        if self.popped == self.ended.len() {
            self.clear_ended();
        }
        Some(effect)
    }

    /// Takes all completed bios, in order, without moving them: those that [`pop`](Self::pop) would return as
    /// [`Effect::EndBio`].
    #[inline]
    pub fn pop_ended(&mut self, mut notify: impl FnMut(&Bio, Status)) {
        for (index, bio) in (self.popped..).zip(&self.ended[self.popped..]) {
            notify(bio, self.status(index));
        }
        self.clear_ended();
    }

    /// Whether there are completed bios that have not been taken.
    #[inline]
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// The status of a completed bio.
    #[inline]
    fn status(&self, index: usize) -> Status {
        if self.failed.is_empty() {
            return Status::Ok;
        }
        self.failed.iter().find(|(failed, _)| *failed == index).map_or(Status::Ok, |(_, status)| *status)
    }

    #[inline]
    fn clear_ended(&mut self) {
        self.ended.clear();
        self.failed.clear();
        self.popped = 0;
    }

    /// Whether there are no effects.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.ended.is_empty()
    }

    /// Adds completed bios.
    #[inline]
    pub fn end(&mut self, bios: &mut Vec<Bio>, status: Status) {
        if status != Status::Ok {
            let first = self.ended.len();
            self.failed.extend((first..first + bios.len()).map(|index| (index, status)));
        }
        // A loop, because there is nearly always one bio, for which a bulk copy would cost more.
        for bio in bios.iter() {
            self.ended.push(bio.clone());
        }
        bios.clear();
    }

    /// Adds a completed bio that had no request.
    pub fn end_bio(&mut self, bio: Bio, status: Status) {
        if status != Status::Ok {
            self.failed.push((self.ended.len(), status));
        }
        self.ended.push(bio);
    }

    /// Adds an effect.
    #[inline]
    pub fn push(&mut self, effect: Effect) {
        self.list.push_back(effect);
    }

    /// Calls into an elevator outside the I/O path; the actions that its policy requests become effects.
    pub(crate) fn call<R>(&mut self, now: Now, body: impl FnOnce(&mut ElevatorCx<'_>) -> R) -> R {
        ElevatorCx::alone(now, |cx| {
            let result = body(cx);
            self.push_requested_actions(std::mem::take(cx.requested));
            result
        })
    }

    /// Converts the actions that a policy requested during a call into effects.
    #[cold]
    pub(crate) fn push_requested_actions(&mut self, requested: RequestedActions) {
        if let Some(at) = requested.set_timer {
            self.push(Effect::SetTimer(at));
        } else if requested.cancel_timer {
            self.push(Effect::CancelTimer);
        }
        if requested.run_queues {
            self.push(Effect::RunAll { delay: Nanos::ZERO });
        }
        if requested.arbitrate.is_some() {
            self.push(Effect::Arbitrate(requested.arbitrate));
        }
        if let Some((io_context, cpu)) = requested.move_submitter {
            self.push(Effect::MoveSubmitter { io_context, cpu });
        }
        for hctx in requested.run_hctxs.iter() {
            self.push(Effect::RunHctx { hctx, delay: Nanos::ZERO });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requested_actions_of_a_policy_become_effects() {
        let mut effects = Effects::new();
        let result = effects.call(Now::default(), |cx| {
            cx.requested.run_queues = true;
            cx.requested.set_timer = Some(Instant(7));
            4711
        });
        assert_eq!(result, 4711);
        assert!(matches!(effects.pop(), Some(Effect::SetTimer(Instant(7)))));
        assert!(matches!(effects.pop(), Some(Effect::RunAll { delay: Nanos::ZERO })));
        effects.call(Now::default(), |cx| cx.requested.cancel_timer = true);
        assert!(matches!(effects.pop(), Some(Effect::CancelTimer)));
        assert!(effects.is_empty());
    }

    #[test]
    fn a_wake_up_is_popped_separately_only_if_it_is_the_oldest_effect() {
        let mut effects = Effects::new();
        assert_eq!(effects.pop_wake(), None);
        effects.push(Effect::Wake(Waiter(1)));
        effects.push(Effect::KickRequeue);
        effects.push(Effect::Wake(Waiter(2)));
        effects.end_bio(Bio::new(crate::bio::Op::Read, crate::ground::ids::Sector(8), 8), Status::Ok);
        assert_eq!(effects.pop_wake(), None, "bios that have ended come first");
        effects.pop_ended(|_, _| {});
        assert_eq!(effects.pop_wake(), Some(Waiter(1)));
        assert_eq!(effects.pop_wake(), None);
        assert!(matches!(effects.pop(), Some(Effect::KickRequeue)));
        assert_eq!(effects.pop_wake(), Some(Waiter(2)));
        assert!(effects.is_empty());
    }

    #[test]
    fn effects_are_pending_while_a_bio_end_or_another_effect_remains() {
        let mut effects = Effects::new();
        let mut bios = vec![Bio::new(crate::bio::Op::Read, crate::ground::ids::Sector(8), 8)];
        effects.end(&mut bios, Status::IoError);
        assert!(bios.is_empty(), "they have gone over");
        effects.push(Effect::KickRequeue);
        assert!(!effects.is_empty() && effects.has_ended());
        assert!(matches!(effects.pop(), Some(Effect::EndBio { status: Status::IoError, .. })));
        assert!(!effects.is_empty() && !effects.has_ended());
        assert!(matches!(effects.pop(), Some(Effect::KickRequeue)));
        assert!(effects.is_empty());
        effects.end_bio(Bio::new(crate::bio::Op::Read, crate::ground::ids::Sector(8), 8), Status::Ok);
        assert!(!effects.is_empty());
    }
}
