//! The scan for requests that the device keeps for too long (BL-60, BL-61, BL-96, BL-97).

use super::Queue;
use crate::caller::env::{Cx, Env};
use crate::ground::ids::RqId;
use crate::ground::sharing::Sharing;
use crate::ground::time::Nanos;

impl<Sh: Sharing> Queue<Sh> {
    /// The moment that an [`Effect::SetTimeout`](crate::drive::Effect::SetTimeout) asked for has come. A queue that has nothing
    /// at the device leaves its share of tags to others.
    pub fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        let device = &self.device;
        if !self.during(cx.cpu, |queue| device.timeouts.scan(cx.now.at, &queue.state.flights, cx.effects)) {
            device.driver_tags.idle();
        }
    }

    /// A request that this CPU has started was found to be overdue, see [`Effect::TimedOut`](crate::drive::Effect::TimedOut): its
    /// driver is asked, unless it has ended since.
    pub fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId) {
        self.during(cx.cpu, |queue| {
            let flights = &queue.state.flights;
            if let Some(deadline) = flights.overdue(cx.now.at, cx.cpu, id) {
                let next = queue.timeouts.ask(cx.now.at, id, cx.driver);
                flights.extend_deadline(id, deadline, next);
            }
        });
    }

    /// How long a request may be at the device (`queue/io_timeout`).
    #[must_use]
    pub fn io_timeout(&self) -> Nanos {
        self.device.timeouts.timeout()
    }
}
