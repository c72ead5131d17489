//! LQ-26, LQ-35: which hook is called when, written down by a policy that does nothing else.

use std::sync::{Arc, Mutex};

use hoistway_blk::policy::{Choice, LegacyHooks, MayQueue, Needs, Place};
use hoistway_blk::request::Request;
use hoistway_blk::schedulers::Noop;
use hoistway_blk::watch::Reason;

use super::*;

/// What the policy was notified of, and what it is to answer.
#[derive(Default)]
pub(super) struct Diary {
    calls: Vec<String>,
    pub(super) may_queue: MayQueue,
}

/// noop with a diary.
pub(super) struct Recorder {
    noop: Noop,
    diary: Arc<Mutex<Diary>>,
}

impl Recorder {
    pub(super) fn bench(diary: &Arc<Mutex<Diary>>) -> Bench {
        let config = config(Kernel::V4_12);
        let policy = Recorder { noop: Noop::new(config.capacity()), diary: Arc::clone(diary) };
        let elevator = LegacyElevator::custom("recorder", Box::new(policy), &config);
        let queue = LegacyQueue::with_elevator(&config, elevator).expect("a valid configuration");
        Bench::around(config, queue)
    }

    fn note(&self, what: impl Into<String>) {
        self.diary.lock().unwrap().calls.push(what.into());
    }
}

impl Scheduler for Recorder {
    fn needs(&self) -> Needs {
        Needs { bios: true, preparation: true, ..Needs::default() }
    }
    fn on_bio(&mut self, _: &mut PolicyCx<'_>, bio: &Bio) {
        self.note(format!("bio {}", bio.sector.0));
    }
    fn prepare(&mut self, _: &mut PolicyCx<'_>, rq: &Request) {
        self.note(format!("prepare {}", rq.id().0));
    }
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        self.note(format!("insert {}", id.0));
        self.noop.insert(cx, id, place);
    }
    fn on_dropped(&mut self, _: &mut PolicyCx<'_>, id: RqId) {
        self.note(format!("dropped {}", id.0));
    }
    fn on_grown(&mut self, _: &mut PolicyCx<'_>, id: RqId, edge: Edge) {
        self.note(format!("grown {} {edge:?}", id.0));
    }
    fn on_absorbed(&mut self, cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        self.note(format!("{} absorbs {}", survivor.0, absorbed.0));
        self.noop.on_absorbed(cx, survivor, absorbed);
    }
    fn previous(&self, id: RqId) -> Option<RqId> {
        self.noop.previous(id)
    }
    fn next(&self, id: RqId) -> Option<RqId> {
        self.noop.next(id)
    }
    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId) -> Choice {
        let choice = self.noop.dispatch(cx, hctx);
        if choice.reason != Reason::Empty {
            self.note("dispatch");
        }
        choice
    }
    fn on_requeued(&mut self, _: &mut PolicyCx<'_>, id: RqId) {
        self.note(format!("requeued {}", id.0));
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, id: RqId) {
        self.note(format!("finish {}", id.0));
    }
    fn has_work(&self) -> bool {
        self.noop.has_work()
    }
    fn legacy_hooks(&mut self) -> Option<&mut dyn LegacyHooks> {
        Some(self)
    }
}

impl LegacyHooks for Recorder {
    fn may_queue(&mut self, _: &mut PolicyCx<'_>, _: &Bio) -> MayQueue {
        self.diary.lock().unwrap().may_queue
    }
    fn on_started(&mut self, _: &mut PolicyCx<'_>, id: RqId) {
        self.note(format!("started {}", id.0));
    }
}

fn take_calls(diary: &Mutex<Diary>) -> String {
    std::mem::take(&mut diary.lock().unwrap().calls).join(", ")
}

#[test]
fn the_hooks_of_a_request_come_in_the_order_of_its_life() {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let mut bench = Recorder::bench(&diary);
    bench.submit("R100");
    assert_eq!(take_calls(&diary), "bio 100, prepare 0, insert 0, dispatch, started 0");
    let rq = bench.driver.in_flight.pop_front().unwrap();
    bench.call(|queue, cx, _| queue.requeue(cx, rq));
    bench.run();
    assert_eq!(take_calls(&diary), "requeued 0, started 0");
    bench.complete_oldest();
    assert_eq!(take_calls(&diary), "finish 0");
}

#[test]
fn finish_is_called_once_per_accepted_request_even_if_absorbed() {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let mut bench = Recorder::bench(&diary);
    bench.queue.set_stopped(true);
    bench.submit("R100 R116");
    take_calls(&diary);
    bench.submit("R108");
    assert_eq!(take_calls(&diary), "bio 108, 0 absorbs 1, finish 1", "a bio closes the gap");
    bench.plug();
    bench.submit("R124");
    bench.unplug();
    assert_eq!(take_calls(&diary), "bio 124, grown 0 Back", "a plugged bio is looked for in the elevator first");
    bench.plug();
    bench.submit("R900 R140");
    bench.queue.locked.aside(|queue| queue.is_stopped = true);
    bench.plug.as_mut().unwrap();
    take_calls(&diary);
    bench.unplug();
    assert_eq!(take_calls(&diary), "insert 2, insert 1");
    assert_eq!(bench.serve(), "R100+32 R140+8 R900+8");
    assert_eq!(take_calls(&diary).matches("finish").count(), 3);
    bench.assert_empty();
}

#[test]
fn a_request_that_is_absorbed_on_its_way_in_is_dropped_and_not_finished() {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let mut bench = Recorder::bench(&diary);
    bench.queue.set_stopped(true);
    bench.plug();
    bench.submit("R108 R900");
    let plugged = bench.plug.take();
    // Meanwhile another task, without a plug, queues what comes before it.
    bench.submit_as(2, bio("R100"));
    take_calls(&diary);
    bench.plug = plugged;
    bench.unplug();
    assert_eq!(take_calls(&diary), "dropped 0, grown 2 Back, insert 1");
    assert_eq!(bench.serve(), "R100+16 R900+8");
}

#[test]
fn the_elevator_is_not_notified_of_requests_that_bypass_it() {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let mut bench = Recorder::bench(&diary);
    bench.submit_as(1, Bio { flags: BioFlags::FUA, ..bio("W100") });
    bench.complete_oldest();
    assert_eq!(take_calls(&diary), "");
    assert!(bench.events().starts_with("Q100 G100 I100 D100"));
}
