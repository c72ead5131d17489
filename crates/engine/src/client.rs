//! A client of the engine, from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed};

use crate::context::Context;
use crate::request::{Errno, Request};
use crate::worker::{Message, Shared};

/// A client: one process, connection or virtual disk, as schedulers see it. Its requests go to its worker in order, and its
/// [`Handler`](crate::Handler) is told of their ends on that worker's thread.
///
/// Dropping it is its departure: what the queue has not seen is forgotten, what is under way ends, and nobody is told of
/// either. The handler is dropped when all has ended.
pub struct Client {
    shared: Arc<Shared>,
    worker: usize,
    seat: u32,
    depth: u32,
    unanswered: Arc<AtomicU32>,
}

/// A request that was not taken, and why: [`AGAIN`](Refused::AGAIN), or [`Errno::SHUTDOWN`].
#[derive(Debug)]
pub struct Refused {
    /// It.
    pub request: Request,
    /// Why.
    pub why: Errno,
}

impl Refused {
    /// The client has as many requests unanswered as it may have (EAGAIN): the next answer makes room.
    pub const AGAIN: Errno = Errno(11);
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, worker: usize, seat: u32, depth: u32, unanswered: Arc<AtomicU32>) -> Self {
        Client { shared, worker, seat, depth, unanswered }
    }

    /// Submits a request, which will be answered exactly once.
    ///
    /// # Errors
    /// If there is no room, or no engine any more: the request is given back, and is not answered in any other way. This is
    /// the back-pressure of the engine, which holds [`depth`](Self::depth) requests of a client and no more.
    pub fn submit(&self, request: Request) -> Result<(), Refused> {
        if self.take_room(1) == 0 {
            return Err(Refused { request, why: Refused::AGAIN });
        }
        let message = Message::Submit { seat: self.seat, request };
        match self.shared.mailboxes[self.worker].send_one(message) {
            Err(Message::Submit { request, .. }) => {
                self.unanswered.fetch_sub(1, Relaxed);
                Err(Refused { request, why: Errno::SHUTDOWN })
            }
            _ => Ok(()),
        }
    }

    /// Submits requests together, which wakes the worker once and lets neighbours among them merge. Takes from the front of
    /// `requests` what there is room for, and answers whether that was all.
    ///
    /// # Errors
    /// If there is no engine any more ([`Errno::SHUTDOWN`]); then none was taken.
    pub fn submit_all(&self, requests: &mut Vec<Request>) -> Result<bool, Errno> {
        let taken = self.take_room(requests.len() as u32);
        let seat = self.seat;
        let leave = |messages: &mut Vec<Message>| {
            messages.extend(requests.drain(..taken as usize).map(|request| Message::Submit { seat, request }));
        };
        if self.shared.mailboxes[self.worker].send_with(leave) {
            return Ok(requests.is_empty());
        }
        self.unanswered.fetch_sub(taken, Relaxed);
        Err(Errno::SHUTDOWN)
    }

    /// Takes room for so many requests at most. Answers for how many.
    fn take_room(&self, wanted: u32) -> u32 {
        let mut taken = 0;
        let grow = |unanswered| {
            taken = wanted.min(self.depth.saturating_sub(unanswered));
            (taken > 0).then_some(unanswered + taken)
        };
        let _ = self.unanswered.fetch_update(Acquire, Relaxed, grow);
        taken
    }

    /// Wants a request back. If it is not yet on its way, its answer is [`Errno::CANCELED`]; else it is what it would have
    /// been. Of several with the same token one is meant.
    pub fn cancel(&self, token: u64) {
        let _ = self.shared.mailboxes[self.worker].send_one(Message::Cancel { seat: self.seat, token });
    }

    /// Priority and group of what it submits from now on.
    pub fn set_context(&self, context: Context) {
        let _ = self.shared.mailboxes[self.worker].send_one(Message::Context { seat: self.seat, context });
    }

    /// How many requests it may have unanswered.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// How many it has.
    #[must_use]
    pub fn unanswered(&self) -> u32 {
        self.unanswered.load(Relaxed)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.shared.mailboxes[self.worker].send_one(Message::Detach { seat: self.seat });
    }
}
