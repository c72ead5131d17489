//! Wakers: a queue whose completions make another process send its next request. Rules: BFQ-90.

use super::Bfq;
use super::config::{WAKER_DELAY, WAKER_DETECTIONS};
use super::entity::QueueId;
use super::state_lines::StateChange;

/// The coincidences must happen within this many `slice_idle`.
const WINDOW: u64 = 128;

impl Bfq {
    /// A sync request arrives: determines whether the last completion woke its process.
    pub(super) fn look_for_waker(&mut self, q: QueueId) {
        let Some(last) = self.last_completed else { return };
        if last == q || self.queues[q].short_think {
            return;
        }
        let now = self.now.ns;
        if now.wrapping_sub(self.rate.last_completion) >= WAKER_DELAY {
            return;
        }
        let suspect = self.entity(last).label.and_then(|label| label.io_context);
        let waker = &mut self.queues[q].waker;
        let too_long = now > waker.since.saturating_add(WINDOW * self.settings.slice_idle);
        if waker.tentative != Some(last) || too_long {
            waker.tentative = Some(last);
            waker.detections = 1;
            waker.since = now;
            self.log_queue(q, || StateChange::WakerCandidate { io_context: suspect });
            return;
        }
        waker.detections += 1;
        if waker.detections == WAKER_DETECTIONS {
            waker.tentative = None;
            self.log_queue(q, || StateChange::Waker { io_context: suspect });
            self.set_waker(q, Some(last));
        }
    }

    /// Gives a queue a waker, or takes it away.
    pub(super) fn set_waker(&mut self, q: QueueId, waker: Option<QueueId>) {
        if let Some(old) = self.queues[q].waker.known {
            self.queues[old].waker.woken.retain(|&woken| woken != q);
        }
        self.queues[q].waker.known = waker;
        if let Some(waker) = waker {
            self.queues[waker].waker.woken.insert(0, q);
        }
    }

    /// A queue gets work: its waker serves it first.
    pub(super) fn move_up_among_woken(&mut self, q: QueueId) {
        if let Some(waker) = self.queues[q].waker.known {
            let woken = &mut self.queues[waker].waker.woken;
            if let Some(at) = woken.iter().position(|&woken| woken == q) {
                woken[..=at].rotate_right(1);
            }
        }
    }

    /// A queue is freed: it wakes no queue, and none wakes it.
    pub(super) fn forget_waker(&mut self, q: QueueId) {
        self.set_waker(q, None);
        for woken in std::mem::take(&mut self.queues[q].waker.woken) {
            self.queues[woken].waker.known = None;
        }
        for at in 0..self.queues.len() {
            let waker = &mut self.queues[QueueId(at as u32)].waker;
            if waker.tentative == Some(q) {
                waker.tentative = None;
            }
        }
    }
}
