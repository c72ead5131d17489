//! Implementation of [`BlockQueue`] for the multi-queue queue.

use super::{Queue, QueueSubmission};
use crate::bio::{Bio, Status};
use crate::caller::block_queue::BlockQueue;
use crate::caller::block_queue::Submitted;
use crate::caller::env::{Cx, Env};
use crate::ground::ids::{CpuId, HctxId, RqId, Waiter};
use crate::ground::sharing::Sharing;
use crate::request::Rq;
use crate::request::plug::Plug;

/// Number of successive worker runs of a hardware queue on the same CPU (BL-75).
const CALLS_ON_A_CPU: u32 = 8;

impl<Sh: Sharing> BlockQueue for Queue<Sh> {
    type Submission = QueueSubmission;

    fn submission(&self, waiter: Waiter) -> QueueSubmission {
        QueueSubmission::idle(waiter)
    }

    #[inline]
    fn submit<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        submission: &mut QueueSubmission,
        plug: Option<&mut Plug>,
    ) -> Submitted {
        self.submit(cx, submission, plug)
    }

    fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut QueueSubmission) -> Option<Bio> {
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
        self.hw_queues()
    }

    #[inline]
    fn worker_cpu(&self, hctx: HctxId, calls: u32) -> CpuId {
        let cpus = self.hctx(hctx).cpus();
        let turn = (calls / CALLS_ON_A_CPU) as usize % cpus.len().max(1);
        cpus.get(turn).copied().unwrap_or_default()
    }

    #[inline]
    fn is_run_by_run_all(&self, cpu: CpuId, hctx: HctxId) -> bool {
        self.is_run_by_run_all(cpu, hctx)
    }

    #[inline]
    fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        self.run_hctx(cx, hctx);
    }

    fn kick_requeue<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.kick_requeue(cx);
    }

    fn timer<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.timer(cx);
    }

    fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.scan_timeouts(cx);
    }

    fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId) {
        self.timed_out(cx, id);
    }

    fn wbt_window_expired<E: Env>(&self, cx: &mut Cx<'_, E>) {
        self.wbt_window_expired(cx);
    }
}
