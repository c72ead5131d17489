//! Submission of bios: a [`Submitter`] submits one bio at a time, and [`Parts`] tracks the parts of a bio that have not
//! completed.

use crate::bio::{Bio, Status};
use crate::caller::block_queue::{BlockQueue, Submission as _, Submitted};
use crate::caller::env::{Cx, Env};
use crate::ground::ids::Waiter;
use crate::request::plug::Plug;

/// A submitter to a queue: a task, a thread, a connection. It submits one bio at a time, may have a plug open, and sleeps
/// where the queue parks it.
pub struct Submitter<Q: BlockQueue> {
    submission: Q::Submission,
    plug: Plug,
    is_plugged: bool,
    is_parked: bool,
}

impl<Q: BlockQueue> Submitter<Q> {
    /// A submitter; `waiter` identifies it in [`Effect::Wake`](crate::drive::Effect::Wake).
    #[must_use]
    pub fn new(queue: &Q, waiter: Waiter) -> Self {
        Submitter { submission: queue.submission(waiter), plug: Plug::new(), is_plugged: false, is_parked: false }
    }

    /// Opens a plug: submitted I/O is held back until [`unplug`](Self::unplug), or until the submitter sleeps.
    #[inline]
    pub fn plug(&mut self) {
        self.is_plugged = true;
    }

    /// Whether a plug is open.
    #[inline]
    #[must_use]
    pub fn is_plugged(&self) -> bool {
        self.is_plugged
    }

    /// Closes the plug, if one is open, and flushes it.
    #[inline]
    pub fn unplug<E: Env>(&mut self, queue: &Q, cx: &mut Cx<'_, E>) {
        if std::mem::take(&mut self.is_plugged) {
            queue.flush_plug(cx, &mut self.plug);
        }
    }

    /// Whether it sleeps with a bio. It [continues](Self::make_progress) after its wake-up.
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// Submits a bio.
    ///
    /// # Panics
    /// In debug builds if the previous bio is still in progress.
    #[inline]
    pub fn submit<E: Env>(&mut self, queue: &Q, cx: &mut Cx<'_, E>, bio: Bio) -> Submitted {
        self.begin(bio);
        self.make_progress(queue, cx)
    }

    /// Sets the next bio, to be submitted by [`make_progress`](Self::make_progress).
    ///
    /// # Panics
    /// In debug builds if the previous bio is still in progress.
    #[inline]
    pub fn begin(&mut self, bio: Bio) {
        debug_assert!(!self.is_parked, "it sleeps with another bio");
        self.submission.begin(bio);
    }

    /// Takes back the current bio if its submission has not started.
    #[inline]
    pub fn withdraw(&mut self) -> Option<Bio> {
        if self.is_parked { None } else { self.submission.withdraw() }
    }

    /// Continues with the current bio until it is submitted or the submitter has to sleep.
    #[inline]
    pub fn make_progress<E: Env>(&mut self, queue: &Q, cx: &mut Cx<'_, E>) -> Submitted {
        let plug = self.is_plugged.then_some(&mut self.plug);
        let submitted = queue.submit(cx, &mut self.submission, plug);
        self.is_parked = submitted == Submitted::Parked;
        submitted
    }

    /// Cancels the current bio at any stage, because its client has left. Returns the part that has no request yet; the rest
    /// completes as usual. Plugged requests stay plugged.
    pub fn cancel<E: Env>(&mut self, queue: &Q, cx: &mut Cx<'_, E>) -> Option<Bio> {
        self.is_parked = false;
        queue.cancel(cx, &mut self.submission)
    }
}

/// The outstanding parts of a submitted bio: a queue may split it, and its parts complete separately.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Parts {
    /// Sectors that have not completed. A bio without sectors counts as one.
    sectors_left: u32,
    status: Status,
}

impl Parts {
    /// All of a bio is outstanding.
    #[inline]
    #[must_use]
    pub fn of(bio: &Bio) -> Parts {
        Parts::of_sectors(bio.sectors)
    }

    /// All of a bio of this many sectors is outstanding.
    #[inline]
    #[must_use]
    pub fn of_sectors(sectors: u32) -> Parts {
        Parts { sectors_left: sectors.max(1), status: Status::Ok }
    }

    /// Whether all parts have completed.
    #[must_use]
    pub const fn have_ended(&self) -> bool {
        self.sectors_left == 0
    }

    /// A part has completed. Returns the status of the whole bio if it was the last: an error if any part had one.
    #[inline]
    pub fn ended(&mut self, part: &Bio, status: Status) -> Option<Status> {
        self.sectors_left = self.sectors_left.saturating_sub(part.sectors.max(1));
        if status != Status::Ok {
            self.status = status;
        }
        (self.sectors_left == 0).then_some(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Op;
    use crate::ground::ids::Sector;

    fn read(sectors: u32) -> Bio {
        Bio::new(Op::Read, Sector(0), sectors)
    }

    #[test]
    fn a_bio_ends_with_its_last_part_and_with_the_error_of_any() {
        let mut parts = Parts::of(&read(32));
        assert_eq!(parts.ended(&read(8), Status::IoError), None);
        assert_eq!(parts.ended(&read(24), Status::Ok), Some(Status::IoError));
        assert_eq!(Parts::of(&read(0)).ended(&read(0), Status::Ok), Some(Status::Ok), "a flush has no sectors");
    }
}
