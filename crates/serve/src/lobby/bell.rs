//! What wakes a worker.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

use hoistway_engine::Wake;
use rustix::event::{EventfdFlags, eventfd};

/// What wakes a worker out of its sleep among sockets.
pub struct Bell {
    pub(super) descriptor: OwnedFd,
    /// Whether the worker sleeps, or is about to.
    sleeps: AtomicBool,
    /// Whether somebody rang while it did not.
    rung: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell { descriptor, sleeps: AtomicBool::new(false), rung: AtomicBool::new(false) })
    }

    /// The worker is about to sleep. Answers whether it may: nobody has rung since it was last up. `SeqCst`, here and in
    /// [`wake`](Wake::wake): either this sees that it was rung, or the other sees that the worker sleeps.
    pub(super) fn may_sleep(&self) -> bool {
        self.sleeps.store(true, SeqCst);
        !self.rung.load(SeqCst)
    }

    /// Whether somebody has rung since the worker was last up.
    pub(super) fn is_rung(&self) -> bool {
        self.rung.load(Relaxed)
    }

    pub(super) fn is_up(&self) {
        self.sleeps.store(false, SeqCst);
        self.rung.store(false, SeqCst);
    }

    pub(super) fn quieten(&self) {
        let mut count = [0; 8];
        // It may have been quiet already.
        let _ = rustix::io::read(&self.descriptor, &mut count);
    }
}

impl Wake for Bell {
    fn wake(&self) {
        self.rung.store(true, SeqCst);
        if self.sleeps.load(SeqCst) {
            // Full means that it rings.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }
}
