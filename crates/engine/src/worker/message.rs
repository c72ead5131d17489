//! What workers are told, by clients, by the engine and by each other.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use hoistway_blk::bio::Status;
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::sysfs::AttributeError;

use super::member::Member;
use crate::context::Context;
use crate::request::Request;

/// A message to a worker.
pub enum Message {
    /// A client has come, and this is its seat.
    Attach { seat: u32, member: Box<Member> },
    /// A client submits.
    Submit { seat: u32, request: Request },
    /// A client would have a request back.
    Cancel { seat: u32, token: u64 },
    /// A client is somebody else from now on.
    Context { seat: u32, context: Context },
    /// A client has gone.
    Detach { seat: u32 },
    /// Another worker freed what a client here sleeps for.
    Wake { seat: u32 },
    /// Another worker carried a part of a request out that came from here.
    Ended { slot: u32, sectors: u32, status: Status },
    /// The scheduler is to be told something.
    Tell(SchedulerEvent),
    /// A file of the queue is to be written.
    Change(Change),
    /// Everything that is under way ends, nothing new begins, and then the worker goes home.
    Stop,
}

/// A file that is to be written, and who waits for that.
pub struct Change {
    pub file: String,
    pub text: String,
    pub reply: Arc<Reply>,
}

/// Where somebody waits for the end of a change.
#[derive(Default)]
pub struct Reply {
    answer: Mutex<Option<Result<(), AttributeError>>>,
    bell: Condvar,
}

impl Reply {
    /// The end.
    pub fn give(&self, answer: Result<(), AttributeError>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.bell.notify_all();
    }

    /// Waits for it.
    pub fn wait(&self) -> Result<(), AttributeError> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.bell.wait_while(answer, |answer| answer.is_none());
        wait.unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Ok(()))
    }
}
