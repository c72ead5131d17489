//! The queue of a device as submitters, drivers and workers see it: where the caller's kit, [`Agenda`] and [`Submitter`], meets a
//! queue of any kind.
//!
//! [`Agenda`]: crate::caller::Agenda
//! [`Submitter`]: crate::caller::Submitter

use crate::bio::{Bio, Status};
use crate::caller::env::{Cx, Env};
use crate::ground::ids::{CpuId, HctxId, RqId, Waiter};
use crate::request::Rq;
use crate::request::plug::Plug;

/// Where a submission has got to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// Every part is on its way.
    Done,
    /// It sleeps for a tag, or until less write-back is in flight: an [`Effect::Wake`](crate::drive::Effect::Wake) with its waiter
    /// will come, then go on with it.
    Parked,
}

/// A bio on its way into a queue. The submitter keeps it until every part is on its way, also while it is parked, and may use
/// it again for the next bio.
pub trait Submission {
    /// The next bio. The previous one must not be in progress any more.
    fn begin(&mut self, bio: Bio);

    /// Takes the bio back, unless it is already on its way: then it can be [cancelled](BlockQueue::cancel).
    fn withdraw(&mut self) -> Option<Bio>;
}

/// The queue of a device.
pub trait BlockQueue {
    /// A bio on its way in.
    type Submission: Submission;

    // --- the submitter ---

    /// Nothing to be submitted yet; `waiter` submits one bio at a time.
    fn submission(&self, waiter: Waiter) -> Self::Submission;

    /// Takes a submission as far as it gets. `plug` is the submitter's plug, if one is open.
    fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut Self::Submission,
        plug: Option<&mut Plug>,
    ) -> Submitted;

    /// Takes a submission back from any stage. Returns the part that no request has been made of.
    fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut Self::Submission) -> Option<Bio>;

    /// Flushes a plug at the end of its section.
    fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug);

    // --- the driver ---

    /// A request has ended.
    fn complete<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status);

    /// Takes a started request back from the driver.
    fn requeue<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq);

    // --- workers ---

    /// Number of hardware queues.
    fn hw_queues(&self) -> u16;

    /// The CPU on which the worker of this hardware queue runs after `calls` earlier calls: workers go round its CPUs, eight calls
    /// on each (BL-75). The worker of a lone hardware queue is bound to none.
    fn worker_cpu(&self, hctx: HctxId, calls: u32) -> CpuId;

    /// Whether a "run all" on this CPU runs a hardware queue.
    fn is_of_run_all(&self, cpu: CpuId, hctx: HctxId) -> bool;

    /// Runs a hardware queue on this CPU.
    fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId);

    /// Puts requeued requests back in.
    fn kick_requeue<E: Env>(&self, cx: &mut Cx<'_, E>);

    /// The scheduler's timer has come.
    fn timer<E: Env>(&self, cx: &mut Cx<'_, E>);

    /// The moment to look for timeouts has come.
    fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>);

    /// A request that this CPU has started has been at the device for too long: its driver is asked, unless it has ended
    /// since.
    fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId);

    /// A window of write-back throttling has ended.
    fn window_ended<E: Env>(&self, cx: &mut Cx<'_, E>);
}
