//! Messages to a worker: any thread sends them in batches. The worker takes them all at once, and is woken only if it sleeps.
//!
//! Used by: `worker`, `engine`.
//! Tests: `crates/engine/tests/model.rs`, `crates/engine/tests/allocations.rs`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::wake::Wake;

/// The messages that a worker has not taken yet.
pub struct Mailbox<T> {
    state: Mutex<State<T>>,
    /// Whether there may be messages: a hint for a worker that checks often. `Relaxed`, because the lock decides.
    has_messages: AtomicBool,
    waker: Arc<dyn Wake>,
}

struct State<T> {
    messages: Vec<T>,
    /// Whether the worker sleeps, or is about to.
    sleeps: bool,
    /// Whether the mailbox rejects messages.
    is_closed: bool,
}

impl<T> Mailbox<T> {
    /// An empty mailbox of a worker with this waker.
    pub fn new(waker: Arc<dyn Wake>) -> Self {
        let state = State { messages: Vec::new(), sleeps: false, is_closed: false };
        Mailbox { state: Mutex::new(state), has_messages: AtomicBool::new(false), waker }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends messages, and returns whether the worker will see them. If not, they stay in `batch`.
    pub fn send(&self, batch: &mut Vec<T>) -> bool {
        self.send_with(|messages| messages.append(batch))
    }

    /// Lets `add` add messages, and returns whether the worker will see them. If not, it was not called.
    pub fn send_with(&self, add: impl FnOnce(&mut Vec<T>)) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        add(&mut state.messages);
        self.notify(state);
        true
    }

    /// Sends one message, or returns it if the worker has stopped.
    pub fn send_one(&self, message: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(message);
        }
        state.messages.push(message);
        self.notify(state);
        Ok(())
    }

    fn notify(&self, mut state: MutexGuard<'_, State<T>>) {
        self.has_messages.store(true, Relaxed);
        let sleeps = std::mem::take(&mut state.sleeps);
        // Unlock first: the woken worker needs the lock.
        drop(state);
        if sleeps {
            self.waker.wake();
        }
    }

    /// Takes all messages. `into` must be empty; its memory is reused for later messages.
    #[inline]
    pub fn take(&self, into: &mut Vec<T>) {
        debug_assert!(into.is_empty(), "what was taken before has been dealt with");
        if self.has_messages.load(Relaxed) {
            let mut state = self.lock();
            std::mem::swap(&mut state.messages, into);
            self.has_messages.store(false, Relaxed);
        }
    }

    /// The worker is about to sleep. Returns whether it may: there are no messages, and a new one will wake it.
    pub fn may_sleep(&self) -> bool {
        let mut state = self.lock();
        state.sleeps = state.messages.is_empty();
        state.sleeps
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
        let mut state = self.lock();
        state.is_closed = true;
        std::mem::take(&mut state.messages)
    }
}
