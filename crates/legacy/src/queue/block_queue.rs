//! The queue from the caller's point of view: one with a single hardware queue.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::{BlockQueue, Cx, Env, Submitted};
use hoistway_blk::ground::{CpuId, HctxId, RqId, Sharing, Waiter};
use hoistway_blk::request::{Plug, Rq};

use super::{LegacyQueue, LegacySubmission};

impl<Sh: Sharing> BlockQueue for LegacyQueue<Sh> {
    type Submission = LegacySubmission;

    fn submission(&self, waiter: Waiter) -> LegacySubmission {
        LegacySubmission::idle(waiter)
    }

    #[inline]
    fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut LegacySubmission,
        plug: Option<&mut Plug>,
    ) -> Submitted {
        self.submit(cx, submission, plug)
    }

    fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut LegacySubmission) -> Option<Bio> {
        self.cancel(cx, submission)
    }

    #[inline]
    fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug) {
        self.flush_plug(cx, plug);
    }

    #[inline]
    fn complete<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        self.complete(cx, rq, status);
    }

    fn requeue<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq) {
        self.requeue(cx, rq);
    }

    #[inline]
    fn hw_queues(&self) -> u16 {
        1
    }

    #[inline]
    fn worker_cpu(&self, _: HctxId, _: u32) -> CpuId {
        CpuId(0)
    }

    fn is_run_by_run_all(&self, _: CpuId, _: HctxId) -> bool {
        true
    }

    #[inline]
    fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, _: HctxId) {
        self.run(cx);
    }

    /// Requests returned by the driver wait in the dispatch queue.
    fn kick_requeue<E: Env>(&self, _: &mut Cx<'_, E>) {}

    fn timer<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.timer(cx);
    }

    fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.scan_timeouts(cx);
    }

    fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId) {
        self.timed_out(cx, id);
    }

    /// It has no write-back throttling.
    fn wbt_window_expired<E: Env>(&self, _: &mut Cx<'_, E>) {}
}
