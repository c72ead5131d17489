//! The state of a bio on its way in, kept by its submitter.

use crate::bio::{Bio, BioFlags};
use crate::caller::block_queue::Submission;
use crate::ground::ids::{HctxId, Waiter};
use crate::ground::lost::Guard;
use crate::request::Marks;
use crate::tags::Depth;
use crate::wbt::Kind;

/// A [submission](Submission) to a [`Queue`](crate::queue::Queue).
#[derive(Debug)]
pub struct QueueSubmission {
    pub(super) stage: Stage,
    pub(super) waiter: Waiter,
    /// The current part, until a request has it.
    pub(super) bio: Option<Bio>,
    /// Whether it takes the fast path.
    pub(super) is_plain: bool,
    /// What was cut off behind it.
    pub(super) remainder: Option<Bio>,
    /// Whether it has parked inside the queue and is counted there.
    pub(super) is_inside: bool,
    /// Where it sleeps: for the tags of which hardware queue, and at which place in line.
    pub(super) slept: Option<(HctxId, u64)>,
    /// What the request of this part will be marked with from its beginning.
    pub(super) marks: Marks,
    /// How many tags it may use, if it has asked and found none: a scheduler is asked once for each bio, before the wait
    /// for a tag, and what it said holds however long that wait is (BL-56).
    pub(super) depth: Option<Depth>,
    /// Armed while it waits.
    pub(super) guard: Guard,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Announce.
    Enter,
    /// In line for the end of a freeze, or let in meanwhile.
    WaitingForThaw,
    /// Split.
    Split,
    /// Look for a request to join.
    Merge,
    /// Be counted as write-back.
    Throttle,
    /// In line for other write-back to end. Woken, or asked to go on for another reason.
    Waiting,
    /// Take a tag.
    Allocate,
    /// In line for a tag. Woken, or asked to go on for another reason: leave the line.
    Woken,
    /// This part has gone.
    Next,
}

impl QueueSubmission {
    /// Nothing to be submitted yet; `waiter` submits one bio at a time.
    #[must_use]
    pub fn idle(waiter: Waiter) -> Self {
        QueueSubmission {
            stage: Stage::Next,
            waiter,
            bio: None,
            is_plain: false,
            remainder: None,
            is_inside: false,
            slept: None,
            marks: Marks::NONE,
            depth: None,
            guard: Guard::default(),
        }
    }

    /// A bio to be submitted by `waiter`.
    #[must_use]
    pub fn new(bio: Bio, waiter: Waiter) -> Self {
        let mut submission = QueueSubmission::idle(waiter);
        submission.begin(bio);
        submission
    }

    /// As what the current part is throttled, if it may be.
    pub(super) fn throttled_as(&self) -> Option<(Kind, BioFlags)> {
        let bio = self.bio.as_ref()?;
        Some((Kind::of(bio.op, bio.flags)?, bio.flags))
    }
}

impl Submission for QueueSubmission {
    #[inline]
    fn begin(&mut self, bio: Bio) {
        debug_assert!(self.bio.is_none() && self.remainder.is_none());
        self.stage = Stage::Enter;
        self.is_plain = false;
        self.marks = Marks::NONE;
        self.depth = None;
        self.bio = Some(bio);
    }

    #[inline]
    fn withdraw(&mut self) -> Option<Bio> {
        if self.stage != Stage::Enter {
            return None;
        }
        self.stage = Stage::Next;
        self.bio.take()
    }
}
