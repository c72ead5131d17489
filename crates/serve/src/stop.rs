//! Stops loops on several threads.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Stops a loop of [`Server::accept`](crate::Server::accept), from any thread.
#[derive(Clone)]
pub struct Stop(Arc<StopInside>);

struct StopInside {
    event_fd: OwnedFd,
    is_stopped: AtomicBool,
}

impl Stop {
    /// Not yet.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new() -> io::Result<Stop> {
        let event_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Stop(Arc::new(StopInside { event_fd, is_stopped: AtomicBool::new(false) })))
    }

    /// Now.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Relaxed);
        // It stays signaled: there is no second start.
        let _ = rustix::io::write(&self.0.event_fd, &1_u64.to_ne_bytes());
    }

    /// Whether it has been stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Relaxed)
    }

    /// Waits until it is stopped.
    pub fn wait_stopped(&self) {
        while !self.is_stopped() {
            Stop::wait(None, self.0.event_fd.as_fd(), PollFlags::IN, None);
        }
    }

    /// Waits until it is stopped, or something comes to `listener`.
    pub(crate) fn wait_or(&self, listener: BorrowedFd<'_>) {
        Stop::wait(Some(self), listener, PollFlags::IN, None);
    }

    /// Waits until it is stopped, something can be done at `descriptor`, or `most` has passed.
    pub(crate) fn wait(stop: Option<&Stop>, descriptor: BorrowedFd<'_>, what: PollFlags, most: Option<&Timespec>) {
        let watched = PollFd::from_borrowed_fd(descriptor, what);
        let _ = match stop {
            Some(stop) => poll(&mut [watched, PollFd::new(&stop.0.event_fd, PollFlags::IN)], most),
            None => poll(&mut [watched], most),
        };
    }
}
