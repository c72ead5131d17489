//! What must not be lost: a request, wherever it is (a plug, a list, a driver), and a submission that waits. Code that drops
//! one has a bug that shows only later and elsewhere, as a tag that is never free or a freeze that never ends: debug builds
//! report it where it happens. Release builds know nothing of it.
//!
//! A queue may be torn down with requests inside, as a simulation that is cancelled is: what has outlived its home
//! is not lost. So a queue is dropped before what still holds something of it, and a home is the first field of its owner.

#[cfg(debug_assertions)]
use std::sync::{Arc, Weak};

use crate::ground::ids::Waiter;

/// What requests or submissions belong to.
#[derive(Debug, Default)]
pub struct Home {
    #[cfg(debug_assertions)]
    stands: Arc<()>,
}

/// Lies in what must not be dropped while its home stands.
#[derive(Debug, Default)]
pub struct Guard {
    /// The home, and what it is there.
    #[cfg(debug_assertions)]
    belongs: Option<(Weak<()>, &'static str, u32)>,
}

impl Home {
    /// A guard for one that belongs here.
    #[cfg_attr(not(debug_assertions), expect(unused_variables))]
    pub fn guard(&self, what: &'static str, number: u32) -> Guard {
        Guard {
            #[cfg(debug_assertions)]
            belongs: Some((Arc::downgrade(&self.stands), what, number)),
        }
    }

    /// As [`guard`](Self::guard), for a submission that begins to wait, or waits on.
    pub fn keep(&self, guard: &mut Guard, waiter: Waiter) {
        guard.disarm();
        *guard = self.guard("the submission of waiter", waiter.0);
    }
}

impl Guard {
    /// It belongs nowhere any more, and may be dropped.
    #[inline]
    pub fn disarm(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.belongs = None;
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((home, what, number)) = &self.belongs {
            let is_lost = home.strong_count() > 0 && !std::thread::panicking();
            assert!(!is_lost, "{what} {number} is dropped, and its queue waits for it");
        }
    }
}
