//! Leak detection for requests (in a plug, a list, a driver) and waiting submissions. Dropping one is a bug that would show
//! only later and elsewhere, as a tag that is never freed or a freeze that never ends. Debug builds report it where it
//! happens; release builds do not check.
//!
//! A queue may be dropped with requests inside, for example in a cancelled simulation: objects that outlive their home are
//! not reported. So a queue must be dropped before anything that still holds its requests, and a home must be the first
//! field of its owner.

#[cfg(debug_assertions)]
use std::sync::{Arc, Weak};

use crate::ground::ids::Waiter;

/// The owner that requests or submissions belong to.
#[derive(Debug, Default)]
pub struct Home {
    #[cfg(debug_assertions)]
    alive: Arc<()>,
}

/// A field of an object that must not be dropped while its home exists.
#[derive(Debug, Default)]
pub struct Guard {
    /// The home, and the object's kind and number there.
    #[cfg(debug_assertions)]
    owner: Option<(Weak<()>, &'static str, u32)>,
}

impl Home {
    /// A guard for an object that belongs here.
    #[cfg_attr(not(debug_assertions), expect(unused_variables))]
    pub fn guard(&self, kind: &'static str, number: u32) -> Guard {
        Guard {
            #[cfg(debug_assertions)]
            owner: Some((Arc::downgrade(&self.alive), kind, number)),
        }
    }

    /// The same as [`guard`](Self::guard), for a submission that starts or continues to wait.
    pub fn keep(&self, guard: &mut Guard, waiter: Waiter) {
        guard.disarm();
        *guard = self.guard("the submission of waiter", waiter.0);
    }
}

impl Guard {
    /// Allows the object to be dropped.
    #[inline]
    pub fn disarm(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.owner = None;
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((home, kind, number)) = &self.owner {
            let is_lost = home.strong_count() > 0 && !std::thread::panicking();
            assert!(!is_lost, "{kind} {number} is dropped, and its queue waits for it");
        }
    }
}
