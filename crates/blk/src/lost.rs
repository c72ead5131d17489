//! What must not be lost: a request, wherever it is (a plug, a list, a driver), and a submission that waits. Whoever drops
//! one has a bug that shows only later and elsewhere, as a tag that is never free or a freeze that never ends: debug builds
//! report it where it happens. Release builds know nothing of it.
//!
//! A queue may be torn down with requests inside, as a simulation that is cancelled is: what has outlived its home is
//! nobody's loss. So a queue goes before whoever still holds something of it, and a home is the first field of its owner.

#[cfg(debug_assertions)]
use std::sync::{Arc, Weak};

use crate::ids::Waiter;

/// What requests or submissions belong to.
#[derive(Debug, Default)]
pub struct Home {
    #[cfg(debug_assertions)]
    stands: Arc<()>,
}

/// Lies in what must not be dropped while its home stands.
#[derive(Debug, Default)]
pub struct Guard {
    /// The home, and who it is there.
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

#[cfg(all(test, debug_assertions))]
mod tests {
    use crate::bio::{Bio, Op};
    use crate::ids::{RqId, Sector};
    use crate::plug::Plug;
    use crate::request::RequestPool;
    use crate::sharing::Local;
    use crate::time::Instant;

    /// A plug with the only request of a pool in it.
    fn plugged(pool: &RequestPool<Local>) -> Plug {
        let mut rq = pool.take(RqId(0));
        rq.found(Bio::new(Op::Read, Sector(0), 8), Instant::ZERO);
        let mut plug = Plug::new();
        plug.list.push_back(rq);
        plug
    }

    #[test]
    #[should_panic(expected = "request 0 is dropped")]
    fn a_plug_that_is_dropped_with_a_request_in_it_is_reported() {
        let pool = RequestPool::of_queue(1);
        drop(plugged(&pool));
    }

    #[test]
    fn what_outlives_its_queue_is_nobodys_loss() {
        let pool = RequestPool::of_queue(1);
        let plug = plugged(&pool);
        drop(pool);
        drop(plug);
    }
}
