//! Messages to workers, from clients, from the engine and from each other.

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
    /// Another worker freed what the submitter of a client waits for.
    Wake { client: u32 },
    /// Another worker carried a part of a request out that came from here.
    Ended { slot: u32, sectors: u32, status: Status },
    /// Writes to these sectors wait until [`Message::Unfence`], and this worker reports when none is in flight.
    Fence(Fence),
    /// No write is in flight at a worker to the sectors that this request here needs for itself.
    Fenced { op: u32 },
    /// Writes to the sectors of this request may proceed.
    Unfence { worker: usize, op: u32 },
    /// An event for the scheduler.
    Event(SchedulerEvent),
    /// A file of the queue is to be written.
    Change(Change),
    /// In-flight requests complete, new ones are refused, and then the worker stops.
    Stop,
}

/// A file that is to be written, and where the result goes.
pub struct Change {
    pub file: String,
    pub text: String,
    pub reply: Arc<Reply>,
}

/// The result of a change, and where a caller waits for it.
#[derive(Default)]
pub struct Reply {
    result: Mutex<Option<Result<(), AttributeError>>>,
    is_set: Condvar,
}

impl Reply {
    /// Sets it.
    pub fn give(&self, result: Result<(), AttributeError>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.is_set.notify_all();
    }

    /// Waits for it.
    pub fn wait(&self) -> Result<(), AttributeError> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.is_set.wait_while(result, |result| result.is_none());
        wait.unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Ok(()))
    }
}
