//! Listeners for clients of any protocol.

use std::sync::Arc;

use crate::ground::stop::Stop;
use crate::server::server_state::ServerState;

/// A listener of one protocol. It makes [connections](crate::Connection) of clients and adds them to the server's
/// [inboxes](ServerState::inboxes); what a connection submits goes through a [client](crate::ThrottledClient), so that weights, priorities and limits
/// hold between clients of all front ends.
pub trait FrontEnd: Send + Sync {
    /// The address of its listener, for the log.
    fn place(&self) -> String;

    /// Accepts clients until it is stopped. Errors of single clients are only logged. Connected clients stay when this
    /// returns: they disconnect when the server [drains](ServerState::is_draining).
    fn serve(&self, server: &Arc<ServerState>, stop: &Stop);
}
