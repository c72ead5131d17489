//! Pending lists (CL-7): requests wait there until a CPU dispatches or tries to merge. The two lists have their own lock, so insertion
//! does not take the policy's.
//!
//! **No request is left behind.** A CPU that adds a request sets the mark, and then dispatches or finds another CPU dispatching. A
//! dispatching CPU first clears `dispatching`, and checks the mark again if it got no request. So at least one of the two sees the other
//! (`SeqCst`). The CPU that takes the lists sets `has_work` before it clears the mark, so every CPU sees at least one of them.

use std::sync::atomic::Ordering::SeqCst;

use crate::ground::meter::{Meter, Site, extra_request_counter};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::request::Rq;
use crate::request::merge::{self, MergeRules, Merging};

use super::scheduler::Place;

/// The lists.
pub struct Pending<Sh: Sharing> {
    lists: Padded<Sh::Lock<Lists>>,
    /// Whether the lists are non-empty. Written under their lock.
    filled: Sh::Word,
    /// Lists being inserted, under the policy's lock: so that the memory of both is reused.
    taken: Sh::Lock<Lists>,
}

#[derive(Default)]
struct Lists {
    /// Head insertions, in order of arrival. Each is inserted at the head, so the last one is dispatched first, as without lists.
    head: Vec<Rq>,
    tail: Vec<Rq>,
    /// The merge rules; the same for all requests, because rules change only while the queue is empty.
    rules: Option<MergeRules>,
}

impl<Sh: Sharing> Default for Pending<Sh> {
    fn default() -> Self {
        let lists = || Sh::Lock::new(Lists::default());
        Pending { lists: Padded(lists()), filled: Sh::Word::new(0), taken: lists() }
    }
}

impl<Sh: Sharing> Pending<Sh> {
    /// Whether anything waits.
    #[inline]
    pub fn is_filled(&self) -> bool {
        self.filled.load(SeqCst) != 0
    }

    /// Adds requests. If allowed by the rules and `may_join`, each is merged into the previous one of the list and then `freed`, so its tag
    /// need not wait for the next dispatch.
    pub fn leave(
        &self,
        meter: &impl Meter,
        rules: &MergeRules,
        list: impl Iterator<Item = Rq>,
        place: Place,
        may_join: bool,
        freed: &mut Vec<Rq>,
    ) {
        let may_join = may_join && rules.merging != Merging::Off;
        let mut count = extra_request_counter(meter);
        self.lists.with(meter, Site::Leave, |lists| {
            for mut rq in list {
                count();
                let last = lists.tail.last_mut().filter(|last| may_join && rules.may_absorb(last, &rq));
                match (place, last) {
                    (Place::Head, _) => lists.head.push(rq),
                    (Place::Sorted, None) => lists.tail.push(rq),
                    (Place::Sorted, Some(last)) => {
                        merge::absorb(last, &mut rq);
                        freed.push(rq);
                    }
                }
            }
            if self.filled.load(SeqCst) == 0 && !(lists.head.is_empty() && lists.tail.is_empty()) {
                lists.rules = Some(rules.clone());
                self.filled.store(1, SeqCst);
            }
        });
    }

    /// Takes all requests, head insertions first. The caller holds the policy's lock; `on_locked` is called once, before the mark is
    /// cleared.
    pub fn take(&self, meter: &impl Meter, on_locked: impl FnOnce(), mut insert: impl FnMut(&MergeRules, Rq, Place)) {
        self.taken.aside(|taken| {
            self.lists.with(meter, Site::Take, |lists| {
                on_locked();
                std::mem::swap(lists, taken);
                self.filled.store(0, SeqCst);
            });
            let Lists { head, tail, rules: Some(rules) } = taken else { return };
            head.drain(..).for_each(|rq| insert(rules, rq, Place::Head));
            tail.drain(..).for_each(|rq| insert(rules, rq, Place::Sorted));
        });
    }
}
