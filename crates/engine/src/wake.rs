//! Sleeping and being woken.
//!
//! Used by: `backend`, `ring`, `mailbox`; crate `serve`.
//! Tests: `crates/engine/tests/model.rs`.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Wakes a worker that sleeps. If it is awake, its next sleep ends at once.
pub trait Wake: Send + Sync {
    /// Wakes it.
    fn wake(&self);
}

/// Where a worker sleeps that waits only for other threads and timeouts.
#[derive(Default)]
pub struct Parker {
    is_woken: Mutex<bool>,
    woken: Condvar,
    instead: OnceLock<Arc<dyn Wake>>,
}

impl Parker {
    /// From now on waking it wakes `waker` instead. Only the first call counts.
    pub fn wake_instead(&self, waker: Arc<dyn Wake>) {
        let _ = self.instead.set(waker);
    }

    /// Sleeps until it is woken, at most for `timeout`.
    pub fn park(&self, timeout: Option<Duration>) {
        let is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_woken = match timeout {
            Some(timeout) => {
                let slept = self.woken.wait_timeout_while(is_woken, timeout, |is_woken| !*is_woken);
                slept.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.woken.wait_while(is_woken, |is_woken| !*is_woken).unwrap_or_else(PoisonError::into_inner),
        };
        *is_woken = false;
    }
}

impl Wake for Parker {
    fn wake(&self) {
        if let Some(instead) = self.instead.get() {
            return instead.wake();
        }
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }
}
