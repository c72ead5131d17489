//! Insertion of requests: under the policy's lock, or delegated to a CPU that holds it.

use crate::ground::meter::{Meter, Site, extra_request_counter};
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::request::Rq;
use crate::request::merge::MergeRules;

use super::Serialized;
use crate::policy::contention_options::Insertion;
use crate::policy::request_store::{OwnedPolicy, RequestStore};
use crate::policy::scheduler::{ElevatorCx, Place};
use std::sync::atomic::Ordering::Relaxed;

impl<S: OwnedPolicy, Sh: Sharing> Serialized<S, Sh> {
    /// Inserts a list of requests in order, under one hold of the lock: by the caller, with [buckets](Insertion::Buckets) possibly by
    /// another CPU, or with [pending lists](Insertion::Pending) by the next CPU to dispatch. A run has to follow. Requests that were
    /// merged into others are added to [`freed`](ElevatorCx::freed).
    #[inline]
    pub fn insert(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        list: impl Iterator<Item = Rq>,
        place: Place,
    ) {
        match self.options.insertion {
            Insertion::Buckets if place == Place::Sorted => self.insert_or_delegate(meter, cx, rules, list),
            Insertion::Direct | Insertion::Buckets => self.locked(meter, Site::Insert, cx, |store, cx| {
                let mut count = extra_request_counter(meter);
                list.for_each(|rq| {
                    count();
                    store.insert(cx, rules, rq, place);
                });
            }),
            Insertion::Pending => {
                self.pending.leave(meter, rules, list, place, self.may_merge_before_insertion(), cx.freed)
            }
        }
    }

    /// Whether two requests may be merged before insertion: not if the policy keeps data for each request, or has to be asked.
    fn may_merge_before_insertion(&self) -> bool {
        !self.needs.preparation && !self.needs.bios && !self.needs.request_merges
    }

    /// Inserts the requests of the pending lists into the policy.
    #[inline]
    pub(super) fn take_pending(&self, meter: &impl Meter, store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>) {
        if self.pending.is_filled() {
            self.insert_pending_requests(meter, store, cx);
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_pending_requests(&self, meter: &impl Meter, store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>) {
        let mark_work = || self.has_work.store(1, Relaxed);
        self.pending.take(meter, mark_work, |rules, rq, place| {
            meter.count_delegated_request(rq.ctx);
            self.insert_late(store, cx, rules, rq, place);
        });
    }

    /// Inserts a request that arrived after the lock was taken. The previous request in its slot may have completed since, which the
    /// policy must be notified of first.
    fn insert_late(
        &self,
        store: &mut RequestStore<S>,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        rq: Rq,
        place: Place,
    ) {
        if self.defers() {
            self.deliver_completions(store, cx);
        }
        store.insert(cx, rules, rq, place);
    }

    #[inline(never)]
    fn insert_or_delegate(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        mut list: impl Iterator<Item = Rq>,
    ) {
        let inserted = self.store.try_with(meter, Site::Insert, |store| {
            self.under_lock(store, cx, |store, cx| self.insert_with_buckets(meter, store, cx, rules, &mut list));
        });
        if inserted.is_some() {
            return;
        }
        if !self.buckets.leave(meter, cx.cpu, &mut list, || self.store.is_accepting_delegated_work(meter)) {
            let insert = |store: &mut RequestStore<S>, cx: &mut ElevatorCx<'_>| {
                self.insert_with_buckets(meter, store, cx, rules, &mut list);
            };
            return self.locked(meter, Site::Insert, cx, insert);
        }
        self.store.join(meter, |store| {
            self.under_lock(store, cx, |store, cx| {
                self.buckets.insert(meter, &mut std::iter::empty(), |rq| {
                    meter.count_delegated_request(rq.ctx);
                    self.insert_late(store, cx, rules, rq, Place::Sorted);
                });
            });
        });
    }

    fn insert_with_buckets(
        &self,
        meter: &impl Meter,
        store: &mut RequestStore<S>,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        list: &mut impl Iterator<Item = Rq>,
    ) {
        meter.accepts_delegated_work();
        let mut count = extra_request_counter(meter);
        self.buckets.insert(meter, list, |rq| {
            count();
            self.insert_late(store, cx, rules, rq, Place::Sorted);
        });
    }
}
