//! The eventfd that wakes a worker.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

use hoistway_engine::Wake;
use rustix::event::{EventfdFlags, eventfd};

/// Wakes a worker that sleeps in its poller.
pub struct EventFd {
    pub(super) descriptor: OwnedFd,
    /// Whether the worker sleeps, or is about to.
    sleeps: AtomicBool,
    /// Whether it was signaled while the worker was awake.
    signaled: AtomicBool,
}

impl EventFd {
    pub(super) fn new() -> io::Result<EventFd> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(EventFd { descriptor, sleeps: AtomicBool::new(false), signaled: AtomicBool::new(false) })
    }

    /// The worker is about to sleep. Returns whether it may, that is, whether there was no signal since it last woke up.
    /// `SeqCst`, here and in [`wake`](Wake::wake): either this sees the signal, or the signaling thread sees that the worker
    /// sleeps.
    pub(super) fn may_sleep(&self) -> bool {
        self.sleeps.store(true, SeqCst);
        !self.signaled.load(SeqCst)
    }

    /// Whether it was signaled since the worker last woke up.
    pub(super) fn is_signaled(&self) -> bool {
        self.signaled.load(Relaxed)
    }

    pub(super) fn clear_wakeup(&self) {
        self.sleeps.store(false, SeqCst);
        self.signaled.store(false, SeqCst);
    }

    pub(super) fn drain(&self) {
        let mut count = [0; 8];
        // It may have been drained already.
        let _ = rustix::io::read(&self.descriptor, &mut count);
    }
}

impl Wake for EventFd {
    fn wake(&self) {
        self.signaled.store(true, SeqCst);
        if self.sleeps.load(SeqCst) {
            // A full counter is signaled, too.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }
}
