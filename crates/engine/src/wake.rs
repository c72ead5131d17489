//! Sleeping and being woken.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Wakes a worker that sleeps. If it does not yet, its next sleep ends at once.
pub trait Wake: Send + Sync {
    /// Wakes it.
    fn wake(&self);
}

/// A place to sleep for whoever waits for nothing but other threads and the time.
#[derive(Default)]
pub struct Parker {
    is_woken: Mutex<bool>,
    bell: Condvar,
    instead: OnceLock<Arc<dyn Wake>>,
}

impl Parker {
    /// Nobody sleeps here any longer: whoever wakes this wakes that. Only the first call of it counts.
    pub fn wake_instead(&self, waker: Arc<dyn Wake>) {
        let _ = self.instead.set(waker);
    }

    /// Sleeps until somebody wakes it, but no longer than `most`.
    pub fn park(&self, most: Option<Duration>) {
        let is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_woken = match most {
            Some(most) => {
                let slept = self.bell.wait_timeout_while(is_woken, most, |is_woken| !*is_woken);
                slept.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.bell.wait_while(is_woken, |is_woken| !*is_woken).unwrap_or_else(PoisonError::into_inner),
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
        self.bell.notify_one();
    }
}
