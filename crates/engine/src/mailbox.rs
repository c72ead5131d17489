//! Messages to a worker: any thread sends them in batches. The worker takes them all at once, and is woken only if it sleeps.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wake::Wake;

/// The messages that a worker has not taken yet.
pub struct Mailbox<T> {
    inside: Mutex<Inside<T>>,
    /// Whether there may be messages: a hint for a worker that checks often. `Relaxed`, because the lock decides.
    has_messages: AtomicBool,
    waker: Arc<dyn Wake>,
}

struct Inside<T> {
    messages: Vec<T>,
    /// Whether the worker sleeps, or is about to.
    sleeps: bool,
    /// Whether the mailbox rejects messages.
    is_closed: bool,
}

impl<T> Mailbox<T> {
    /// An empty mailbox of a worker with this waker.
    pub fn new(waker: Arc<dyn Wake>) -> Self {
        let inside = Inside { messages: Vec::new(), sleeps: false, is_closed: false };
        Mailbox { inside: Mutex::new(inside), has_messages: AtomicBool::new(false), waker }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends messages, and returns whether the worker will see them. If not, they stay in `batch`.
    pub fn send(&self, batch: &mut Vec<T>) -> bool {
        self.send_with(|messages| messages.append(batch))
    }

    /// Lets `leave` add messages, and returns whether the worker will see them. If not, it was not called.
    pub fn send_with(&self, leave: impl FnOnce(&mut Vec<T>)) -> bool {
        let mut inside = self.lock();
        if inside.is_closed {
            return false;
        }
        leave(&mut inside.messages);
        self.notify(inside);
        true
    }

    /// Sends one message, or returns it if the worker has stopped.
    pub fn send_one(&self, message: T) -> Result<(), T> {
        let mut inside = self.lock();
        if inside.is_closed {
            return Err(message);
        }
        inside.messages.push(message);
        self.notify(inside);
        Ok(())
    }

    fn notify(&self, mut inside: MutexGuard<'_, Inside<T>>) {
        self.has_messages.store(true, Relaxed);
        let sleeps = std::mem::take(&mut inside.sleeps);
        // Unlock first: the woken worker needs the lock.
        drop(inside);
        if sleeps {
            self.waker.wake();
        }
    }

    /// Takes all messages. `into` must be empty; its memory is reused for later messages.
    #[inline]
    pub fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "what was taken before has been dealt with");
        if self.has_messages.load(Relaxed) {
            let mut inside = self.lock();
            std::mem::swap(&mut inside.messages, into);
            self.has_messages.store(false, Relaxed);
        }
    }

    /// The worker is about to sleep. Returns whether it may: there are no messages, and a new one will wake it.
    pub fn may_sleep(&self) -> bool {
        let mut inside = self.lock();
        inside.sleeps = inside.messages.is_empty();
        inside.sleeps
    }

    /// The worker is awake again.
    pub fn clear_wakeup(&self) {
        self.lock().sleeps = false;
    }

    /// Wakes the worker unconditionally.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Rejects messages from now on; returns those that are left.
    pub fn close(&self) -> Vec<T> {
        let mut inside = self.lock();
        inside.is_closed = true;
        std::mem::take(&mut inside.messages)
    }
}
