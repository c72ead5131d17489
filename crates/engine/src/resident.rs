//! Code that lives on a worker's thread: its requests and completions pass through no mailbox, and no thread has to be woken.

use hoistway_blk::ground::Instant;

use crate::request::{Completion, Request};

/// When a [`Resident`] wants its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// When requests of it have ended, or at this moment if none has by then; [`Instant::NEVER`] for only the first.
    By(Instant),
    /// Never: it departs. Its in-flight requests end without a completion.
    Leaves,
}

/// A client on the thread of its worker. Other clients wait while it has its turn.
pub trait Resident: Send {
    /// Its turn. `ended` are the completions since the last one; what is left there is dropped. What it puts into
    /// `requests` is submitted together, in order.
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn;
}
