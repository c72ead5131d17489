//! Implements [`Concurrent`] for mqfq.

use crate::bio::Bio;
use crate::ground::ids::{HctxId, RqId};
use crate::ground::meter::Meter;
use crate::ground::sharing::{Sharing, Word};
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
use crate::policy::{Concurrent, ElevatorCx, Place, SchedulerEvent};
use crate::request::merge::{Edge, MergeRules};
use crate::request::{Marks, Rq};
use crate::watch::reason::Reason;

use super::Mqfq;
use crate::schedulers::fair_queue::FlowKey;

/// The tunables' values: threshold, slots, cost of a write.
type Values = [u64; 3];

static TUNABLES: Tunables<Values> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "threshold_kb",
            (Unit::Kib, 45, 0, 65_536),
            "How far a flow may be ahead of the one that is furthest behind. Smaller: fairer; larger: fewer waits.",
            |values| i128::from(values[0]),
            |values, kib| values[0] = kib as u64,
        ),
        TunableRow::new(
            "slots",
            (Unit::Requests, 64, 1, 65_535),
            "Most requests at the device. Smaller: the order here counts; larger: throughput.",
            |values| i128::from(values[1]),
            |values, requests| values[1] = requests as u64,
        ),
        TunableRow::new(
            "write_cost",
            (Unit::Number, 100, 1, 10_000),
            "What a byte written counts, in percent of a byte read.",
            |values| i128::from(values[2]),
            |values, percent| values[2] = percent as u64,
        ),
    ],
};

impl<Sh: Sharing> Mqfq<Sh> {
    fn words(&self) -> [&Sh::Word; 3] {
        [&self.settings.threshold_kib, &self.settings.slots, &self.settings.write_cost]
    }
}

impl<Sh: Sharing> Concurrent<Sh> for Mqfq<Sh> {
    fn insert(&self, meter: &dyn Meter, _: &mut ElevatorCx<'_>, list: &mut dyn Iterator<Item = Rq>, place: Place) {
        for mut rq in list {
            rq.marks.set(Marks::INSERTED);
            // If it comes back from the device, the run that follows finds its slot.
            self.leave_device(rq.id().index());
            match place {
                Place::Sorted => self.enqueue(&meter, rq),
                Place::Head => self.insert_at_head(&meter, rq),
            }
        }
    }

    fn dispatch(&self, meter: &dyn Meter, _: &mut ElevatorCx<'_>, hctx: HctxId) -> (Option<Rq>, Reason) {
        self.dispatch_next(&meter, hctx)
    }

    fn has_work(&self, _: HctxId) -> bool {
        self.has_requests()
    }

    fn finish(&self, _: &dyn Meter, cx: &mut ElevatorCx<'_>, id: RqId) {
        cx.requested.run_queues |= self.leave_device(id.index());
    }

    fn is_single_dispatch(&self) -> bool {
        true
    }

    fn merge_bio(
        &self,
        meter: &dyn Meter,
        cx: &mut ElevatorCx<'_>,
        rules: &MergeRules,
        bio: &mut Option<Bio>,
    ) -> Option<Edge> {
        let hctx = self.hctx_for(cx.cpu, bio.as_ref()?);
        self.merge(&meter, hctx, rules, bio)
    }

    fn on_event(&self, _: &dyn Meter, _: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        match event {
            SchedulerEvent::CgroupAdded { .. } => self.flows.add_group(),
            SchedulerEvent::Weight { cgroup, weight } => self.flows.set_weight(cgroup, weight),
            SchedulerEvent::CgroupRemoved(cgroup) => {
                self.flows.forget_weight(cgroup);
                self.end(FlowKey::group(cgroup));
            }
            SchedulerEvent::IoContextExited(io_context) => self.end(FlowKey::io_context(io_context)),
            _ => {}
        }
    }

    fn grow(&mut self, capacity: u32) {
        if capacity as usize > self.is_counted.len() {
            self.is_counted.resize_with(capacity as usize, || Sh::Word::new(0));
        }
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown_shared(self.words())
    }

    fn set_tunable(&self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store_shared(self.words(), name, text, |_| {})?;
        cx.requested.run_queues |= self.has_requests();
        Ok(())
    }
}
