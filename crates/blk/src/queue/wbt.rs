//! Write-back throttling in the path of a request (BL-109, BL-119 to BL-125). A buffered write waits before it gets a tag.
//! Its request is counted until it completes. While buffered writes wait or are counted, reads are tracked. A task that does
//! only direct I/O pays for one check of a word when a request is issued, and another when it completes.

use std::sync::atomic::Ordering::Relaxed;

use super::state::{Current, QueueState};
use super::submission::Stage;
use super::{Device, Queue, QueueSubmission};
use crate::bio::{Bio, BioFlags, Direction, Op, Status};
use crate::caller::env::{Cx, Env};
use crate::drive::effects::{Effect, Effects};
use crate::ground::meter::{Meter, NoMeter, Site};
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::ground::time::{Instant, Nanos};
use crate::request::plug::Plug;
use crate::request::{Marks, Request, Rq};
use crate::sysfs::AttributeError;
use crate::wbt::{Admission, Kind, Throttle, default_target};

/// The throttle of a queue, with its lock.
pub(super) struct Wbt<Sh: Sharing> {
    /// Whether the throttle tracks issued and completed requests; read without the lock. `Relaxed`: it is written under the
    /// lock and stays set while a request is counted, which the completing CPU sees because the request was handed over to
    /// it.
    is_tracking: Sh::Word,
    throttle: Sh::Lock<Throttle>,
}

impl<Sh: Sharing> Wbt<Sh> {
    pub(super) fn new(throttle: Throttle) -> Self {
        Wbt { is_tracking: Sh::Word::new(0), throttle: Sh::Lock::new(throttle) }
    }

    #[inline]
    fn is_tracking(&self) -> bool {
        self.is_tracking.load(Relaxed) != 0
    }

    fn with<R>(&self, meter: &impl Meter, body: impl FnOnce(&mut Throttle) -> R) -> R {
        self.throttle.with(meter, Site::Writeback, |throttle| {
            let result = body(throttle);
            self.is_tracking.store(u64::from(throttle.is_tracking()), Relaxed);
            result
        })
    }
}

/// The stage after merging was tried.
#[inline]
pub(super) fn stage_after_merging(bio: Option<&Bio>) -> Stage {
    match bio {
        Some(bio) if Kind::of(bio.op, bio.flags).is_some() => Stage::Throttle,
        _ => Stage::Allocate,
    }
}

impl<Sh: Sharing> Current<'_, Sh> {
    // --- submission ---

    /// Admits a bio, or queues it after flushing its task's plug. Returns `None` if it has to wait.
    #[cold]
    pub(super) fn throttle<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        mut plug: Option<&mut Plug>,
    ) -> Option<Stage> {
        let Some((kind, flags)) = submission.throttled_kind() else { return Some(Stage::Allocate) };
        let mut admission = self.wbt.with(cx.meter, |throttle| throttle.admit(cx.now.at, kind, flags));
        if admission == Admission::Waits {
            if flags.contains(BioFlags::NOWAIT) {
                return Some(self.end_bio(cx, submission, Status::Again));
            }
            self.flush_before_sleep(cx, plug.as_deref_mut());
            let waiter = submission.waiter;
            admission = self.wbt.with(cx.meter, |throttle| throttle.admit_or_join(cx.now.at, kind, flags, waiter));
        }
        if admission != Admission::Waits {
            return Some(self.admitted(cx, submission, admission));
        }
        if let Some(plug) = plug {
            plug.resume_clock();
        }
        submission.stage = Stage::Waiting;
        None
    }

    /// Continues a submission in the wait queue: a woken one is already counted; one that continues for another reason keeps
    /// waiting.
    #[cold]
    pub(super) fn resume_throttled<E: Env>(
        self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
    ) -> Option<Stage> {
        let Some((kind, _)) = submission.throttled_kind() else { return Some(Stage::Allocate) };
        let waiter = submission.waiter;
        if self.wbt.with(cx.meter, |throttle| throttle.is_waiting(kind, waiter)) {
            return None;
        }
        Some(self.admitted(cx, submission, Admission::Counted))
    }

    /// Removes a submission from the wait queue, or undoes its count if it was already admitted.
    #[cold]
    pub(super) fn leave_throttle_queue<E: Env>(self, cx: &mut Cx<'_, E>, submission: &QueueSubmission) {
        if let Some((kind, _)) = submission.throttled_kind()
            && !self.wbt.with(cx.meter, |throttle| throttle.leave_wait_queue(kind, submission.waiter))
        {
            self.count_down(cx, kind);
        }
    }

    fn admitted<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission, admission: Admission) -> Stage {
        if admission == Admission::Counted {
            submission.marks = Marks::THROTTLED;
            self.set_window(cx);
        } else {
            submission.marks = Marks::NONE;
        }
        Stage::Allocate
    }

    /// Undoes the count of an admitted bio that did not get a request.
    #[cold]
    pub(super) fn undo_admission<E: Env>(self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) {
        let marks = std::mem::replace(&mut submission.marks, Marks::NONE);
        if let (true, Some((kind, _))) = (marks.contains(Marks::THROTTLED), submission.throttled_kind()) {
            self.count_down(cx, kind);
        }
    }

    // --- issue and completion ---

    /// A request is about to be issued.
    #[inline]
    pub(super) fn track_issue(self, meter: &impl Meter, now: Instant, rq: &Request) {
        if self.wbt.is_tracking() && rq.op == Op::Read {
            self.wbt.with(meter, |throttle| throttle.read_issued(now));
        }
    }

    /// A request has completed.
    #[inline]
    pub(super) fn track_end<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        if self.wbt.is_tracking() {
            self.record_end(cx, rq);
        }
    }

    #[cold]
    fn record_end<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        let now = cx.now.at;
        // A request that was never issued says nothing about the device's latency.
        if rq.issued != Instant::NEVER {
            match (rq.op, rq.direction()) {
                (Op::Read, _) => self.wbt.with(cx.meter, |throttle| throttle.read_ended(now, now.since(rq.issued))),
                (_, Direction::Write) => self.wbt.with(cx.meter, Throttle::write_ended),
                (_, Direction::Read) => {}
            }
        }
        self.stop_counting(cx, rq);
    }

    /// A counted request completes, or was merged into another one, which is counted itself.
    pub(super) fn stop_counting<E: Env>(self, cx: &mut Cx<'_, E>, rq: &mut Rq) {
        if rq.marks.contains(Marks::THROTTLED) {
            rq.marks.clear(Marks::THROTTLED);
            self.count_down(cx, Kind::of_counted(rq.op, rq.flags));
        }
    }

    fn count_down<E: Env>(self, cx: &mut Cx<'_, E>, kind: Kind) {
        let (effects, write_cache) = (&mut *cx.effects, self.state.rules.limits.write_cache);
        self.wbt.with(cx.meter, |throttle| {
            throttle.end_counted(cx.now.at, kind, write_cache, |waiter| effects.push(Effect::Wake(waiter)));
        });
    }

    // --- the window ---

    fn set_window<E: Env>(self, cx: &mut Cx<'_, E>) {
        if let Some(at) = self.wbt.with(cx.meter, |throttle| throttle.begin_window(cx.now.at)) {
            cx.effects.push(Effect::SetWindow(at));
        }
    }

    // --- the file ---

    /// The content of `queue/wbt_lat_usec`.
    pub(super) fn wbt_lat_usec(self) -> Result<String, AttributeError> {
        if !self.generation.wbt {
            return Err(AttributeError::Unknown);
        }
        Ok((self.wbt.throttle.aside(|throttle| throttle.target()).0 / 1000).to_string())
    }

    /// Writes `queue/wbt_lat_usec`; -1 sets the default of the device.
    pub(super) fn set_wbt_lat_usec(self, text: &str, effects: &mut Effects) -> Result<(), AttributeError> {
        if !self.generation.wbt {
            return Err(AttributeError::Unknown);
        }
        let target = match text.trim().parse::<i64>() {
            Ok(-1) => default_target(self.state.rules.limits.rotational),
            Ok(us @ 0..) => Nanos(us.unsigned_abs().saturating_mul(1000)),
            _ => return Err(AttributeError::Invalid),
        };
        self.wbt.with(&NoMeter, |throttle| throttle.set_target(target, |waiter| effects.push(Effect::Wake(waiter))));
        Ok(())
    }
}

impl<Sh: Sharing> Device<Sh> {
    /// Adapts to a new scheduler of the queue.
    pub(super) fn wbt_follows_scheduler(&self, state: &QueueState<Sh>) {
        if self.generation.wbt {
            let (disables, rotational) = (state.elevator.disables_wbt(), state.rules.limits.rotational);
            self.wbt.with(&NoMeter, |throttle| throttle.follow_scheduler(disables, rotational));
        }
    }
}

impl<Sh: Sharing> Queue<Sh> {
    /// Ends the window that an [`Effect::SetWindow`] set: the latency of reads determines how many buffered writes are
    /// admitted from now on.
    pub fn wbt_window_expired<E: Env>(&self, cx: &mut Cx<'_, E>) {
        let oldest_read = self.during(cx.cpu, |queue| queue.state.flights.oldest_read());
        if let Some(at) = self.device.wbt.with(cx.meter, |throttle| throttle.window_expired(cx.now.at, oldest_read)) {
            cx.effects.push(Effect::SetWindow(at));
        }
    }

    /// Sets whether a writing task is blocked because too much memory is dirty: write-back then has to continue regardless of
    /// reads.
    pub fn set_dirty_throttled(&self, now: Instant, is_throttled: bool) {
        self.device.wbt.with(&NoMeter, |throttle| throttle.set_dirty_throttled(now, is_throttled));
    }

    /// Number of buffered writes and discards in flight that are subject to throttling.
    #[must_use]
    pub fn throttled_in_flight(&self) -> u32 {
        self.device.wbt.throttle.aside(|throttle| throttle.in_flight())
    }
}
