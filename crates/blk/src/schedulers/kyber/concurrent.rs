//! Implements [`Concurrent`] for kyber.

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};
use crate::ground::meter::Meter;
use crate::ground::sharing::Sharing;
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::{Concurrent, ElevatorCx, Place, SchedulerEvent};
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Request, Rq};
use crate::tags::Depth;
use crate::watch::reason::Reason;

use super::{ASYNC_PERCENT, Kyber};

impl<Sh: Sharing> Concurrent<Sh> for Kyber<Sh> {
    fn insert(&self, meter: &dyn Meter, _: &mut ElevatorCx<'_>, list: &mut dyn Iterator<Item = Rq>, place: Place) {
        Kyber::insert(self, &meter, list, place);
    }

    fn dispatch(&self, meter: &dyn Meter, _: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        Kyber::dispatch(self, &meter, hctx)
    }

    fn has_work(&self, hctx: HctxId) -> bool {
        Kyber::has_work(self, hctx)
    }

    fn finish(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        Kyber::finish(self, &meter, cx, id);
    }

    fn async_percent(&self) -> u32 {
        ASYNC_PERCENT
    }

    fn min_shallow(&self) -> Option<u32> {
        Kyber::min_shallow(self)
    }

    fn merge_bio(
        &self,
        meter: &dyn Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        Kyber::merge_bio(self, &meter, cx.cpu, rules, bio)
    }

    fn limit_depth(&self, bio: &Bio) -> Depth {
        Kyber::limit_depth(self, bio)
    }

    fn on_completed(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        Kyber::on_completed(self, cx, rq);
    }

    fn on_requeued(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        Kyber::on_requeued(self, &meter, cx, id);
    }

    fn on_timer(&self, meter: &dyn Meter, cx: &mut ElevatorCx<'_>) {
        Kyber::on_timer(self, &meter, cx);
    }

    fn on_event(&self, _: &dyn Meter, _: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        Kyber::on_event(self, event);
    }

    fn grow(&mut self, capacity: u32) {
        Kyber::grow(self, capacity);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        Kyber::tunables(self)
    }

    fn set_tunable(&self, _: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        Kyber::set_tunable(self, name, text)
    }
}
