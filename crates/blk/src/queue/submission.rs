//! The state of a bio during its submission, kept by the submitter.

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
    /// The current part of the bio, until it is in a request.
    pub(super) bio: Option<Bio>,
    /// Whether it takes the fast path.
    pub(super) is_plain: bool,
    /// The rest of the bio, which was split off.
    pub(super) remainder: Option<Bio>,
    /// Whether it has waited inside the queue, so that a freeze waits for it.
    pub(super) is_inside: bool,
    /// While it sleeps: the hardware queue for whose tags it waits, and its position in the wait queue.
    pub(super) wait_position: Option<(HctxId, u64)>,
    /// The initial marks of the request of this part.
    pub(super) marks: Marks,
    /// How many tags it may use, once it has had to wait for one. A scheduler is asked only once for each bio, before
    /// the wait, and the depth stays valid for the whole wait (BL-56).
    pub(super) depth: Option<Depth>,
    /// Armed while it waits.
    pub(super) guard: Guard,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Report the bio to probes.
    Enter,
    /// Waits for the end of a freeze, or has been admitted since.
    WaitingForThaw,
    /// Split the bio.
    Split,
    /// Look for a request to merge with.
    Merge,
    /// Be counted for write-back throttling.
    Throttle,
    /// Waits for other write-back to end; continued when woken or for another reason.
    Waiting,
    /// Take a tag.
    Allocate,
    /// Waits for a tag; continued when woken or for another reason, and then leaves the wait queue.
    Woken,
    /// This part is in a request: continue with the rest.
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
            wait_position: None,
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

    /// The kind under which the current part is throttled, if it is.
    pub(super) fn throttled_kind(&self) -> Option<(Kind, BioFlags)> {
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
