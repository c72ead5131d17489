//! Listeners for clients of any protocol.

use std::sync::Arc;

use crate::site::Site;
use crate::stop::Stop;

/// A listener of one protocol. It makes [connections](crate::Connection) of clients and adds them to the site's
/// [inboxes](Site::inboxes); what a connection submits goes through a [client](crate::ThrottledClient), so that weights, priorities and limits
/// hold between clients of all front ends.
pub trait FrontEnd: Send + Sync {
    /// The address of its listener, for the log.
    fn place(&self) -> String;

    /// Accepts clients until it is stopped. Errors of single clients are only logged. Connected clients stay when this
    /// returns: they disconnect when the site [drains](Site::is_draining).
    fn serve(&self, site: &Arc<Site>, stop: &Stop);
}
