//! A client of the engine, from any thread.
//!
//! Used by: `engine`; crate `serve`.
//! Tests: `crates/engine/tests/model.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed};

use crate::context::Context;
use crate::request::{Errno, Request};
use crate::worker::{Message, Shared};

/// A client: one process, connection or virtual disk, as schedulers see it. Its requests go to its worker in order, and its
/// [`Handler`](crate::Handler) gets their completions on that worker's thread.
///
/// Dropping it discards requests that the queue has not seen; requests in flight end without a completion. The handler is
/// dropped when all have ended.
pub struct Client {
    shared: Arc<Shared>,
    worker: usize,
    id: u32,
    depth: u32,
    uncompleted_requests: Arc<AtomicU32>,
}

/// A request that was not accepted, and why: [`AGAIN`](Refused::AGAIN), or [`Errno::SHUTDOWN`].
#[derive(Debug)]
pub struct Refused {
    /// The request.
    pub request: Request,
    /// The reason.
    pub why: Errno,
}

impl Refused {
    /// The client has reached its maximum of uncompleted requests (EAGAIN): the next completion makes room.
    pub const AGAIN: Errno = Errno(11);
}

impl Client {
    pub(crate) fn new(
        shared: Arc<Shared>,
        worker: usize,
        id: u32,
        depth: u32,
        uncompleted_requests: Arc<AtomicU32>,
    ) -> Self {
        Client { shared, worker, id, depth, uncompleted_requests }
    }

    /// Submits a request, which completes exactly once unless the client is dropped before.
    ///
    /// # Errors
    /// If there is no room, or the engine has stopped: the request is returned and does not complete. This is the
    /// back-pressure of the engine, which holds at most [`depth`](Self::depth) requests of a client.
    pub fn submit(&self, request: Request) -> Result<(), Refused> {
        if self.reserve(1) == 0 {
            return Err(Refused { request, why: Refused::AGAIN });
        }
        let message = Message::Submit { client: self.id, request };
        match self.shared.mailboxes[self.worker].send_one(message) {
            Err(Message::Submit { request, .. }) => {
                self.uncompleted_requests.fetch_sub(1, Relaxed);
                Err(Refused { request, why: Errno::SHUTDOWN })
            }
            _ => Ok(()),
        }
    }

    /// Submits requests together, which wakes the worker only once and lets neighbours among them merge. Takes as many from
    /// the front of `requests` as there is room for, and returns whether that was all.
    ///
    /// # Errors
    /// If the engine has stopped ([`Errno::SHUTDOWN`]); then none was taken.
    pub fn submit_all(&self, requests: &mut Vec<Request>) -> Result<bool, Errno> {
        let taken = self.reserve(requests.len() as u32);
        let client = self.id;
        let add_messages = |messages: &mut Vec<Message>| {
            messages.extend(requests.drain(..taken as usize).map(|request| Message::Submit { client, request }));
        };
        if self.shared.mailboxes[self.worker].send_with(add_messages) {
            return Ok(requests.is_empty());
        }
        self.uncompleted_requests.fetch_sub(taken, Relaxed);
        Err(Errno::SHUTDOWN)
    }

    /// Reserves room for at most `requested` requests. Returns the number reserved.
    fn reserve(&self, requested: u32) -> u32 {
        let mut reserved = 0;
        let add_reserved = |uncompleted_requests| {
            reserved = requested.min(self.depth.saturating_sub(uncompleted_requests));
            (reserved > 0).then_some(uncompleted_requests + reserved)
        };
        let _ = self.uncompleted_requests.fetch_update(Acquire, Relaxed, add_reserved);
        reserved
    }

    /// Cancels a request. The parts of it that the queue has not seen are taken back, and it completes with
    /// [`Errno::CANCELED`]; if the queue has all of it, it completes as usual. Parts of a canceled request that were submitted
    /// before may have been carried out, so that what its blocks contain is unknown. If several have this token, one of them
    /// is canceled.
    pub fn cancel(&self, token: u64) {
        let _ = self.shared.mailboxes[self.worker].send_one(Message::Cancel { client: self.id, token });
    }

    /// Sets the priority and group of requests submitted from now on.
    pub fn set_context(&self, context: Context) {
        let _ = self.shared.mailboxes[self.worker].send_one(Message::Context { client: self.id, context });
    }

    /// Maximum number of uncompleted requests.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Current number of uncompleted requests.
    #[must_use]
    pub fn uncompleted_requests(&self) -> u32 {
        self.uncompleted_requests.load(Relaxed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.shared.mailboxes[self.worker].send_one(Message::Detach { client: self.id });
    }
}
