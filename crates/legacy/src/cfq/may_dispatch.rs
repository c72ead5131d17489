//! The dispatch check: whether the active queue may dispatch another request.
//!
//! If it may not, it remains active, and no other queue may dispatch.
//!
//! Rules: CFQ-38, CFQ-50 to CFQ-52.

use hoistway_blk::watch::Reason;

use super::Cfq;
use super::class::Class;
use super::log::CfqLog;
use super::queue::QueueId;

impl<L: CfqLog> Cfq<L> {
    /// The reason why the active queue may not dispatch now, if any.
    pub(super) fn reason_to_hold(&mut self, id: QueueId, now: i64) -> Option<Reason> {
        let queue = self.queue(id);
        let (sync, in_flight, class) = (queue.sync, queue.in_flight, queue.priority.class);
        if queue.must_dispatch {
            return None;
        }
        // A queue with idling only starts on a device without async I/O, and async I/O only on one without sync I/O.
        if self.should_idle(id) && self.in_flight[0] > 0 {
            return Some(Reason::AsyncInFlight);
        }
        if !sync && self.in_flight[1] > 0 {
            return Some(Reason::SyncInFlight);
        }
        let mut limit = if class == Class::Idle { 1 } else { (self.settings.quantum / 2).max(1) };
        if in_flight >= limit {
            if class == Class::Idle {
                return Some(Reason::Quantum);
            }
            let only_sync = sync && self.busy_sync_queues == 1;
            if self.busy_queues > 1 && !only_sync && self.is_nearly_used_up(id, now) {
                return Some(Reason::Quantum);
            }
            limit = if only_sync || self.busy_queues == 1 { u32::MAX } else { self.settings.quantum };
        }
        if !sync && self.settings.low_latency {
            limit = limit.min(self.async_depth(in_flight, now));
            if in_flight >= limit {
                return Some(Reason::AsyncRamp);
            }
        }
        (in_flight >= limit).then_some(Reason::Quantum)
    }

    /// Maximum async requests in flight: one more for each sync slice since a sync request was last delayed.
    fn async_depth(&self, in_flight: u32, now: i64) -> u32 {
        let depth = (now - self.last_delayed_sync) / self.settings.slice[1];
        match u32::try_from(depth).unwrap_or(u32::MAX) {
            0 if in_flight == 0 => 1,
            depth => depth,
        }
    }

    /// Whether the requests in flight will probably last until the end of the slice.
    fn is_nearly_used_up(&self, id: QueueId, now: i64) -> bool {
        let queue = self.queue(id);
        let in_flight_time = self.settings.slice_idle * i64::from(queue.in_flight);
        queue.slice.is_none_or(|slice| now + in_flight_time > slice.end)
    }
}
