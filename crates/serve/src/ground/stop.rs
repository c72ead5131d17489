//! Stops loops on several threads.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Stops a loop of [`Server::accept`](crate::Server::accept), from any thread.
#[derive(Clone)]
pub struct Stop(Arc<StopState>);

struct StopState {
    event_fd: OwnedFd,
    is_stopped: AtomicBool,
}

impl Stop {
    /// Creates a flag that is not set.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    pub fn new() -> io::Result<Stop> {
        let event_fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Stop(Arc::new(StopState { event_fd, is_stopped: AtomicBool::new(false) })))
    }

    /// Sets the flag.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Relaxed);
        // It stays signaled: the flag is never reset.
        let _ = rustix::io::write(&self.0.event_fd, &1_u64.to_ne_bytes());
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Relaxed)
    }

    /// Waits until the flag is set.
    pub fn wait_stopped(&self) {
        while !self.is_stopped() {
            Stop::wait(None, self.0.event_fd.as_fd(), PollFlags::IN, None);
        }
    }

    /// Waits until the flag is set, or `listener` has a connection.
    pub(crate) fn wait_or(&self, listener: BorrowedFd<'_>) {
        Stop::wait(Some(self), listener, PollFlags::IN, None);
    }

    /// Waits until the flag is set, `descriptor` is ready, or `timeout` has passed.
    pub(crate) fn wait(stop: Option<&Stop>, descriptor: BorrowedFd<'_>, events: PollFlags, timeout: Option<&Timespec>) {
        let watched = PollFd::from_borrowed_fd(descriptor, events);
        let _ = match stop {
            Some(stop) => poll(&mut [watched, PollFd::new(&stop.0.event_fd, PollFlags::IN)], timeout),
            None => poll(&mut [watched], timeout),
        };
    }
}
