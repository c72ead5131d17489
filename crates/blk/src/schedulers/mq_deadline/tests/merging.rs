//! Merging behind the scheduler's lock: DL-6 to DL-9, DD-10.

use super::*;
use crate::bio::limits::Limits;
use crate::ground::kernel::Kernel;
use crate::ground::meter::NoMeter;
use crate::ground::time::Now;
use crate::policy::ElevatorCx;
use crate::policy::Serialized;
use crate::request::merge::{Edge, MergeRules, Merging};
use proptest::prelude::*;

/// A scheduler under its lock, with submitters that try to merge before they insert.
struct MergeBench {
    scheduler: Serialized<MqDeadline, Local>,
    pool: RequestPool<Local>,
    free: Vec<u32>,
    rules: MergeRules,
    now: Now,
}

impl MergeBench {
    fn new(generation: DeadlineGeneration) -> Self {
        let policy = MqDeadline::new(config(generation, Hz(1000)), CAPACITY);
        MergeBench {
            scheduler: Serialized::new(policy, CAPACITY),
            pool: RequestPool::new(CAPACITY),
            free: (0..CAPACITY).rev().collect(),
            rules: MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full),
            now: Now::default(),
        }
    }

    fn set(self, file: &str, text: &str) -> Self {
        ElevatorCx::alone(self.now, |cx| self.scheduler.set_tunable(&NoMeter, cx, file, text)).unwrap();
        self
    }

    fn release(&mut self, freed: Vec<Rq>) {
        for rq in freed {
            self.finish(rq);
        }
    }

    fn finish(&mut self, rq: Rq) {
        let (id, inserted) = (rq.id(), rq.marks.contains(crate::request::Marks::INSERTED));
        self.pool.put(rq);
        if inserted {
            ElevatorCx::alone(self.now, |cx| self.scheduler.finish(&NoMeter, cx, id));
        }
        self.free.push(id.0);
    }

    /// A bio at this time: where it merged, or `None` if it became a request.
    fn submit(&mut self, ms: f64, text: &str) -> Option<Edge> {
        self.now = Hz(1000).now(moment(ms));
        let mut bio = Some(bio(text));
        let (edge, freed) = ElevatorCx::alone(self.now, |cx| {
            let edge = self.scheduler.merge_bio(&NoMeter, cx, &self.rules, &mut bio);
            (edge, std::mem::take(cx.freed))
        });
        self.release(freed);
        if let Some(bio) = bio {
            let rq = self.request(bio);
            self.insert(rq, Place::Sorted);
        }
        edge
    }

    fn request(&mut self, bio: Bio) -> Rq {
        let mut rq = self.pool.take(RqId(self.free.pop().expect("a free slot")));
        rq.found(bio, self.now.at);
        rq
    }

    fn insert(&mut self, rq: Rq, place: Place) {
        let freed = ElevatorCx::alone(self.now, |cx| {
            self.scheduler.insert(&NoMeter, cx, &self.rules, std::iter::once(rq), place);
            std::mem::take(cx.freed)
        });
        self.release(freed);
    }

    /// A request that comes out of a plug: it may be appended to a queued one, but no bio lookup precedes it.
    fn insert_from_plug(&mut self, text: &str) {
        let rq = self.request(bio(text));
        self.insert(rq, Place::Sorted);
    }

    fn dispatch(&mut self) -> Option<Rq> {
        ElevatorCx::alone(self.now, |cx| self.scheduler.dispatch(&NoMeter, cx, HctxId(0))).0
    }

    /// Everything that waits, in the order of dispatch.
    fn drain(&mut self) -> String {
        let mut names = Vec::new();
        while let Some(rq) = self.dispatch() {
            names.push(name(&rq));
            self.finish(rq);
        }
        names.join(" ")
    }

    /// Looks at the policy.
    fn look<R>(&self, body: impl FnOnce(&MqDeadline) -> R) -> R {
        let mut answer = None;
        ElevatorCx::alone(self.now, |cx| {
            self.scheduler.with_policy(&NoMeter, cx, |policy, _| answer = Some(body(policy)));
        });
        answer.expect("the body was called")
    }

    /// The fifo of best effort in a direction: start sector and expiry.
    fn fifo(&self, direction: usize) -> Vec<(u64, u64)> {
        self.look(|policy| {
            let ids = policy.classes[1].fifo[direction].iter(&policy.links);
            ids.map(|id| &policy.entries[id as usize]).map(|entry| (entry.sector, entry.expiry)).collect()
        })
    }

    fn queued(&self) -> [u32; 3] {
        self.look(|policy| policy.classes.each_ref().map(|class| class.queued))
    }
}

#[test]
fn a_merged_request_keeps_its_expiry_and_its_place() {
    let mut bench = MergeBench::new(A);
    let edges = [(0.0, "W100"), (1.0, "W500"), (2.0, "W108"), (3.0, "W492"), (4.0, "W92")]
        .map(|(ms, text)| bench.submit(ms, text));
    assert_eq!(edges, [None, None, Some(Edge::Back), Some(Edge::Front), Some(Edge::Front)]);
    assert_eq!(bench.fifo(1), [(92, 5000), (492, 5001)]);
    assert_eq!(bench.drain(), "W92+24 W492+16");
}

#[test]
fn without_front_merges_only_the_cached_request_is_merged_in_front() {
    let mut bench = MergeBench::new(A).set("front_merges", "0");
    let edges = [(0.0, "W100"), (1.0, "W500"), (2.0, "W108"), (3.0, "W492"), (4.0, "W92")]
        .map(|(ms, text)| bench.submit(ms, text));
    assert_eq!(edges, [None, None, Some(Edge::Back), None, Some(Edge::Front)]);
    assert_eq!(bench.fifo(1), [(92, 5000), (500, 5001), (492, 5003)]);
}

#[test]
fn coalescing_hands_over_the_earlier_expiry_and_its_place() {
    for generation in GENERATIONS {
        let mut bench = MergeBench::new(generation);
        for (ms, text) in [(0.0, "R116"), (5.0, "R900"), (10.0, "R100")] {
            assert_eq!(bench.submit(ms, text), None);
        }
        assert_eq!(bench.submit(20.0, "R108"), Some(Edge::Front));
        assert_eq!(bench.fifo(0), [(100, 500), (900, 505)], "{generation:?}");
        assert_eq!(bench.queued(), [0, 2, 0], "{generation:?}: the absorbed request is no longer counted");
        assert_eq!(bench.drain(), "R100+24 R900", "{generation:?}");
    }
}

#[test]
fn coalescing_with_a_younger_request_keeps_expiry_and_place() {
    let mut bench = MergeBench::new(CPrime);
    for (ms, text) in [(0.0, "R100"), (5.0, "R900"), (10.0, "R116")] {
        bench.submit(ms, text);
    }
    assert_eq!(bench.submit(20.0, "R108"), Some(Edge::Back));
    assert_eq!(bench.fifo(0), [(100, 500), (900, 505)]);
}

#[test]
fn requests_of_different_classes_never_merge() {
    for generation in [B1, B2, C, CPrime] {
        let mut bench = MergeBench::new(generation);
        for text in ["R100", "rt/R108", "idle/R116", "idle/R92"] {
            assert_eq!(bench.submit(0.0, text), None, "{generation:?} {text}");
        }
        bench.insert_from_plug("rt/R124");
        bench.insert_from_plug("R116");
        assert_eq!(bench.queued(), [2, 2, 2], "{generation:?}");
    }
}

#[test]
fn a_request_from_a_plug_is_appended_to_the_one_that_ends_where_it_begins() {
    let mut bench = MergeBench::new(CPrime);
    for text in ["W500", "W100", "W92", "W116"] {
        bench.insert_from_plug(text);
    }
    assert_eq!(bench.queued(), [0, 4, 0], "nothing goes in front of a queued request");
    bench.insert_from_plug("W108");
    assert_eq!(bench.queued(), [0, 3, 0]);
    assert_eq!(bench.drain(), "W92+24 W116 W500", "the grown request is appended in turn, what follows is not");
}

#[test]
fn a_next_pointer_moves_on_when_its_request_is_absorbed() {
    for generation in BY_POINTER {
        let mut bench = MergeBench::new(generation);
        for text in ["R10", "R100", "R116", "R300"] {
            bench.submit(0.0, text);
        }
        let first = bench.dispatch().unwrap();
        assert_eq!(name(&first), "R10");
        bench.submit(1.0, "R92");
        bench.submit(1.0, "R108");
        assert_eq!(bench.drain(), "R92+32 R300", "{generation:?}");
        bench.finish(first);
    }
}

#[test]
fn a_dispatched_request_is_found_neither_by_cache_nor_by_hash() {
    for generation in GENERATIONS {
        let mut bench = MergeBench::new(generation);
        bench.submit(0.0, "R100");
        let rq = bench.dispatch().unwrap();
        assert_eq!(bench.submit(1.0, "R108"), None, "{generation:?}");
        assert_eq!(bench.submit(1.0, "R92"), None, "{generation:?}");
        bench.finish(rq);
    }
}

#[test]
fn a_head_inserted_request_is_not_found_by_its_end() {
    let mut bench = MergeBench::new(CPrime);
    let rq = bench.request(bio("R100"));
    bench.insert(rq, Place::Head);
    assert_eq!(bench.submit(0.0, "R108"), None);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Submit(u8, bool, u64),
    FromPlug(u8, bool, u64),
    Dispatch,
    Requeue,
    Complete,
}

fn act() -> impl Strategy<Value = Act> {
    let what = (0u8..3, any::<bool>(), (0u64..40).prop_map(|n| n * 8));
    prop_oneof![
        4 => what.clone().prop_map(|(class, read, sector)| Act::Submit(class, read, sector)),
        2 => what.prop_map(|(class, read, sector)| Act::FromPlug(class, read, sector)),
        3 => Just(Act::Dispatch),
        1 => Just(Act::Requeue),
        2 => Just(Act::Complete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_left_counted_after_any_mixture_of_merges_requeues_and_completions(
        generation in 0usize..5,
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let mut bench = MergeBench::new(GENERATIONS[generation]);
        let mut out: VecDeque<Rq> = VecDeque::new();
        let text = |class: u8, read: bool, sector: u64| {
            format!("{}/{}{sector}", ["rt", "be", "idle"][usize::from(class)], if read { 'R' } else { 'W' })
        };
        for act in acts {
            match act {
                Act::Submit(class, read, sector) => {
                    bench.submit(0.0, &text(class, read, sector));
                }
                Act::FromPlug(class, read, sector) => bench.insert_from_plug(&text(class, read, sector)),
                Act::Dispatch => out.extend(bench.dispatch()),
                Act::Requeue => {
                    if let Some(mut rq) = out.pop_front() {
                        rq.marks.clear(crate::request::Marks::STARTED);
                        bench.insert(rq, Place::Head);
                    }
                }
                Act::Complete => {
                    if let Some(rq) = out.pop_front() {
                        bench.finish(rq);
                    }
                }
            }
        }
        while let Some(rq) = out.pop_front() {
            bench.finish(rq);
        }
        bench.drain();
        prop_assert_eq!(bench.queued(), [0; 3]);
        prop_assert!(!bench.scheduler.has_work());
        prop_assert_eq!(bench.free.len(), CAPACITY as usize);
    }
}

#[test]
fn coalescing_with_one_that_is_due_at_the_same_time_changes_no_place() {
    let mut bench = MergeBench::new(CPrime);
    for text in ["R116", "R900", "R100"] {
        bench.submit(0.0, text);
    }
    assert_eq!(bench.submit(20.0, "R108"), Some(Edge::Front));
    assert_eq!(bench.fifo(0), [(900, 500), (100, 500)]);
}
