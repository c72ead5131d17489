//! Clients that run on a worker's thread: their requests and completions need no mailbox and no wake-up.
//!
//! Used by: `worker`, `engine`, `job`; crate `calibrate`.
//! Tests: `crates/engine/tests/jobs.rs`.

use hoistway_blk::ground::Instant;

use crate::request::{Completion, Request};

/// When a [`Resident`] wants its next turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// When one of its requests has completed, or at this time at the latest; [`Instant::NEVER`] for no time limit.
    By(Instant),
    /// Never: it leaves. Its requests in flight end without a completion.
    Detached,
}

/// A client on the thread of its worker. Other clients wait during its turn.
pub trait Resident: Send {
    /// Takes a turn. `ended` are the completions since the last turn; those left there are dropped. The contents of
    /// `requests` are submitted together, in order.
    fn turn(&mut self, now: Instant, ended: &mut Vec<Completion>, requests: &mut Vec<Request>) -> Turn;
}
