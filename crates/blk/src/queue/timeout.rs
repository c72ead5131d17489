//! Timeout scan (BL-60, BL-61, BL-96, BL-97).

use super::Queue;
use crate::caller::env::{Cx, Env};
use crate::ground::ids::RqId;
use crate::ground::sharing::Sharing;
use crate::ground::time::Nanos;

impl<Sh: Sharing> Queue<Sh> {
    /// Runs the scan that an [`Effect::SetTimeout`](crate::drive::Effect::SetTimeout) requested. A queue with nothing at the
    /// device gives up its share of tags.
    pub fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        let device = &self.device;
        if !self.during(cx.cpu, |queue| device.timeouts.scan(cx.now.at, &queue.state.flights, cx.effects)) {
            device.driver_tags.release_share();
        }
    }

    /// Handles an overdue request that this CPU started, see [`Effect::TimedOut`](crate::drive::Effect::TimedOut): asks its
    /// driver, unless it has completed since.
    pub fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId) {
        self.during(cx.cpu, |queue| {
            let flights = &queue.state.flights;
            if let Some(deadline) = flights.overdue(cx.now.at, cx.cpu, id) {
                let next = queue.timeouts.ask(cx.now.at, id, cx.driver);
                flights.extend_deadline(id, deadline, next);
            }
        });
    }

    /// Timeout of a request at the device (`queue/io_timeout`).
    #[must_use]
    pub fn io_timeout(&self) -> Nanos {
        self.device.timeouts.timeout()
    }
}
