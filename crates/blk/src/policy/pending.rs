//! Where requests wait until a CPU asks the policy or looks for a merge (CL-7): two lists under a lock of their own, so that
//! insertion does not touch the policy's.
//!
//! **No request is left behind.** A CPU that puts something in marks that, and then asks for requests or finds out that another CPU
//! does. A CPU that asks says first that it asks no longer, and looks at the mark again if it was given nothing: `SeqCst`, so one of the
//! two sees the other. The taker of the lists says that there is work *before* the mark goes, so no CPU sees neither.

use std::sync::atomic::Ordering::SeqCst;

use crate::ground::meter::{Meter, Site, extra_request_counter};
use crate::ground::sharing::{Lock, Padded, Sharing, Word};
use crate::request::Rq;
use crate::request::merge::{self, MergeRules, NoMerges};

use super::scheduler::Place;

/// The lists.
pub struct Pending<Sh: Sharing> {
    lists: Padded<Sh::Lock<Lists>>,
    /// Whether there is something in them. Written under their lock.
    filled: Sh::Word,
    /// What is being taken in, under the policy's lock: so that the memory of both is used again.
    taken: Sh::Lock<Lists>,
}

#[derive(Default)]
struct Lists {
    /// What goes before all others, in the order of its coming. The policy is given them one by one, each before those that it has: so
    /// the last one is dispatched first, as without lists.
    head: Vec<Rq>,
    tail: Vec<Rq>,
    /// By which all of them are merged; the same for all, because they change while there are none.
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

    /// Puts requests in. Each is absorbed by the one before it in the list if it may be and `joins`, and is then `freed`: its tag
    /// does not have to wait for the next dispatch.
    pub fn leave(
        &self,
        meter: &impl Meter,
        rules: &MergeRules,
        list: impl Iterator<Item = Rq>,
        place: Place,
        joins: bool,
        freed: &mut Vec<Rq>,
    ) {
        let joins = joins && rules.nomerges != NoMerges::Nothing;
        let mut count = extra_request_counter(meter);
        self.lists.with(meter, Site::Leave, |lists| {
            for mut rq in list {
                count();
                let last = lists.tail.last_mut().filter(|last| joins && rules.may_absorb(last, &rq));
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

    /// Takes everything out, what goes first first. The caller holds the policy's lock; `before` is called once, before the mark goes.
    pub fn take(&self, meter: &impl Meter, before: impl FnOnce(), mut insert: impl FnMut(&MergeRules, Rq, Place)) {
        self.taken.aside(|taken| {
            self.lists.with(meter, Site::Take, |lists| {
                before();
                std::mem::swap(lists, taken);
                self.filled.store(0, SeqCst);
            });
            let Lists { head, tail, rules: Some(rules) } = taken else { return };
            head.drain(..).for_each(|rq| insert(rules, rq, Place::Head));
            tail.drain(..).for_each(|rq| insert(rules, rq, Place::Sorted));
        });
    }
}
