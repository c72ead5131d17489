//! The scan for requests that the device keeps for too long (`block-layer.md` 11.4 and 19.2).

use super::Queue;
use crate::env::{Cx, Env};
use crate::sharing::Sharing;
use crate::time::Nanos;

impl<Sh: Sharing> Queue<Sh> {
    /// The moment that an [`Effect::SetTimeout`](crate::Effect::SetTimeout) asked for has come. A queue that has nothing
    /// at the device leaves its share of tags to others.
    pub fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        if !self.device.timeouts.scan(cx.now.at, cx.driver, cx.effects) {
            self.device.driver_tags.idle();
        }
    }

    /// How long a request may be at the device (`queue/io_timeout`).
    #[must_use]
    pub fn io_timeout(&self) -> Nanos {
        self.device.timeouts.timeout()
    }
}
