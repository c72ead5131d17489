//! Messages to workers, from clients, the engine and other workers.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use hoistway_blk::bio::Status;
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::sysfs::AttributeError;

use super::member::Member;
use super::ranges::Fence;
use crate::context::Context;
use crate::request::Request;

/// A message to a worker.
pub enum Message {
    /// A new client.
    Attach { client: u32, member: Box<Member> },
    /// A client submits.
    Submit { client: u32, request: Request },
    /// A client cancels a request.
    Cancel { client: u32, token: u64 },
    /// A client changes its I/O context.
    Context { client: u32, context: Context },
    /// A client was dropped.
    Detach { client: u32 },
    /// Another worker freed a resource that the submitter of a client waits for.
    Wake { client: u32 },
    /// Another worker carried out a part of a request of this worker.
    Ended { slot: u32, sectors: u32, status: Status },
    /// Writes to these sectors must wait until [`Message::Unfence`]; this worker replies when none is in flight.
    Fence(Fence),
    /// A worker has no write in flight to the sectors that this unaligned request has locked.
    Fenced { op: u32 },
    /// Writes to the sectors of this request may proceed.
    Unfence { worker: usize, op: u32 },
    /// An event for the scheduler.
    Event(SchedulerEvent),
    /// A file of the queue must be written.
    Change(Change),
    /// Complete the requests in flight, refuse new ones, then stop.
    Stop,
}

/// A file to write, and where the result goes.
pub struct Change {
    pub file: String,
    pub text: String,
    pub reply: Arc<Reply>,
}

/// The result of a change, with a way to wait for it.
#[derive(Default)]
pub struct Reply {
    result: Mutex<Option<Result<(), AttributeError>>>,
    is_set: Condvar,
}

impl Reply {
    /// Sets the result.
    pub fn give(&self, result: Result<(), AttributeError>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_set.notify_all();
    }

    /// Waits for the result.
    pub fn wait(&self) -> Result<(), AttributeError> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.is_set.wait_while(result, |result| result.is_none());
        wait.unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Ok(()))
    }
}
