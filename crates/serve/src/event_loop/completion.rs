//! The handler of completions of a connection, which runs on the thread of its event loop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError, Weak};

use hoistway_blk::ground::Instant;
use hoistway_engine::Completion;

use super::{Connection, ConnectionId, Inboxes};

/// Passes completions to a connection. The engine keeps the handler, and with it `keeps`, until all requests have ended.
pub(crate) fn completion_handler(
    connection: Weak<Mutex<dyn Connection>>,
    id: ConnectionId,
    inboxes: Inboxes,
    now: impl Fn() -> Instant + Send + 'static,
    keeps: impl Send + 'static,
) -> impl FnMut(&mut Vec<Completion>) + Send + 'static {
    move |batch: &mut Vec<Completion>| {
        let _ = &keeps;
        let Some(connection) = connection.upgrade() else { return };
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let planned = connection.next();
        // As in the event loop, a panic ends this connection only.
        if catch_unwind(AssertUnwindSafe(|| connection.completed(now(), batch))).is_err() {
            connection.panicked();
        }
        // The event loop drops it, and has to know when to run it.
        if connection.next() != planned {
            inboxes.notify(id);
        }
    }
}
