//! The interface of a device's queue for submitters, drivers and workers. [`Agenda`] and [`Submitter`] work with any queue that
//! implements it.
//!
//! [`Agenda`]: crate::caller::Agenda
//! [`Submitter`]: crate::caller::Submitter

use crate::bio::{Bio, Status};
use crate::caller::env::{Cx, Env};
use crate::ground::ids::{CpuId, HctxId, RqId, Waiter};
use crate::request::Rq;
use crate::request::plug::Plug;

/// The state of a submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// All parts have been submitted.
    Done,
    /// It sleeps for a tag, or until less write-back is in flight: continue it after an
    /// [`Effect::Wake`](crate::drive::Effect::Wake) with its waiter.
    Parked,
}

/// A bio that is being submitted to a queue. The submitter keeps it until all parts are submitted, even while it is parked, and
/// can reuse it for the next bio.
pub trait Submission {
    /// Starts the next bio. The previous one must no longer be in progress.
    fn begin(&mut self, bio: Bio);

    /// Takes the bio back if its submission has not started; otherwise use [`cancel`](BlockQueue::cancel).
    fn withdraw(&mut self) -> Option<Bio>;
}

/// The queue of a device.
pub trait BlockQueue {
    /// A bio that is being submitted.
    type Submission: Submission;

    // --- the submitter ---

    /// An idle submission; `waiter` submits one bio at a time.
    fn submission(&self, waiter: Waiter) -> Self::Submission;

    /// Continues a submission as far as possible. `plug` is the submitter's plug, if one is open.
    fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut Self::Submission,
        plug: Option<&mut Plug>,
    ) -> Submitted;

    /// Cancels a submission at any stage. Returns the part that has no request yet.
    fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Self::Submission) -> Option<Bio>;

    /// Flushes a plug at the end of its section.
    fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug);

    // --- the driver ---

    /// Completes a request.
    fn complete<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status);

    /// Takes a started request back from the driver.
    fn requeue<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq);

    // --- workers ---

    /// Number of hardware queues.
    fn hw_queues(&self) -> u16;

    /// The CPU on which the worker of this hardware queue runs after `calls` earlier runs: workers rotate over its CPUs, eight
    /// runs on each (BL-75). The worker of a single hardware queue is not bound to a CPU.
    fn worker_cpu(&self, hctx: HctxId, calls: u32) -> CpuId;

    /// Whether a "run all" on this CPU runs a hardware queue.
    fn is_run_by_run_all(&self, cpu: CpuId, hctx: HctxId) -> bool;

    /// Runs a hardware queue on this CPU.
    fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId);

    /// Reinserts requeued requests.
    fn kick_requeue<E: Env>(&self, cx: &mut Cx<'_, E>);

    /// The scheduler's timer has expired.
    fn timer<E: Env>(&self, cx: &mut Cx<'_, E>);

    /// The timeout scan is due.
    fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>);

    /// A request that this CPU started has timed out: its driver is asked, unless the request has completed since.
    fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId);

    /// A window of write-back throttling has ended.
    fn wbt_window_expired<E: Env>(&self, cx: &mut Cx<'_, E>);
}
