//! Code that lives on a worker's thread: what it submits and what it is answered passes through no mailbox, and nobody has to
//! be woken.

use hoistway_blk::ground::Instant;

use crate::request::{Completion, Request};

/// When a [`Resident`] wants its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// When requests of it have ended, or at this moment if none has by then; [`Instant::NEVER`] for only the first.
    By(Instant),
    /// Never: it departs. What it has under way ends without its being told.
    Leaves,
}

/// A client on the thread of its worker. Other clients wait while it has its turn.
pub trait Resident: Send {
    /// Its turn. `ended` are the answers that have come since the last one; what is left there is dropped. What it puts into
    /// `requests` is submitted together, in order.
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn;
}
