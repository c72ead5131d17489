//! k2 against its rules, with the requests that it decides on around it. `rt0/R100` reads 8 sectors at sector 100 in the
//! real-time class at level 0; `be/`, `idle/` and `none/` are the other classes, `W` writes.

use super::*;
use crate::bio::Op;
use crate::bio::limits::Limits;
use crate::ground::ids::Sector;
use crate::ground::kernel::{Generation, Kernel};
use crate::ground::sharing::Local;
use crate::ground::time::{Instant, Now};
use crate::policy::{ElevatorCx, RequestStore, RequestedActions};
use crate::request::merge::{MergeRules, Merging};
use crate::request::{RequestPool, Rq};

const CAPACITY: u32 = 64;

fn bio(text: &str) -> Bio {
    let (class, text) = text.split_once('/').expect("a class");
    let priority = match class {
        "none" => IoPriority::UNSET,
        "be" => IoPriority::DEFAULT,
        "idle" => IoPriority::new(PriorityClass::Idle, 0),
        level => IoPriority::new(PriorityClass::RealTime, level.strip_prefix("rt").unwrap().parse().unwrap()),
    };
    let op = if text.starts_with('R') { Op::Read } else { Op::Write };
    Bio { ioprio: priority, ..Bio::new(op, Sector(text[1..].parse().unwrap()), 8) }
}

struct Bench {
    store: RequestStore<K2>,
    rules: MergeRules,
    pool: RequestPool<Local>,
    free: Vec<u32>,
    at_device: Vec<Rq>,
    /// What the last call asked for.
    requested: RequestedActions,
}

impl Bench {
    fn new() -> Self {
        Bench::of(&Kernel::V6_18.generation())
    }

    fn of(generation: &Generation) -> Self {
        let limits = Limits { max_sectors: 1024, ..Limits::default() };
        Bench {
            store: RequestStore::new(K2::new(CAPACITY), CAPACITY),
            rules: MergeRules::new(generation, limits, Merging::Full),
            pool: RequestPool::new(CAPACITY),
            free: (0..CAPACITY).rev().collect(),
            at_device: Vec::new(),
            requested: RequestedActions::default(),
        }
    }

    fn with(mut self, tunable: &str, text: &str) -> Self {
        self.set(tunable, text).expect("a valid value");
        self
    }

    fn call<R>(&mut self, body: impl FnOnce(&mut RequestStore<K2>, &mut ElevatorCx<'_>, &MergeRules) -> R) -> R {
        self.requested = RequestedActions::default();
        let mut freed = Vec::new();
        let mut cx = ElevatorCx {
            now: Now::default(),
            cpu: crate::ground::ids::CpuId(0),
            requested: &mut self.requested,
            freed: &mut freed,
        };
        let answer = body(&mut self.store, &mut cx, &self.rules);
        let absorbed: Vec<RqId> = freed.iter().map(|rq| rq.id()).collect();
        freed.into_iter().for_each(|rq| self.pool.put(rq));
        for id in absorbed {
            self.free.push(id.0);
            self.finish(id);
        }
        answer
    }

    fn set(&mut self, tunable: &str, text: &str) -> Result<(), StoreError> {
        self.call(|store, cx, _| store.call(cx, |k2, cx| k2.set_tunable(cx, tunable, text)))
    }

    fn shown(&self, tunable: &str) -> i128 {
        crate::ground::tunables::value_of(&self.store.policy().tunables(), tunable).unwrap()
    }

    /// A request, not inserted yet.
    fn make(&mut self, text: &str) -> Rq {
        let mut rq = self.pool.take(RqId(self.free.pop().expect("a free slot")));
        rq.found(bio(text), Instant::ZERO);
        rq
    }

    fn insert(&mut self, texts: &str) {
        for text in texts.split_whitespace() {
            let rq = self.make(text);
            self.call(|store, cx, rules| store.insert(cx, rules, rq, Place::Sorted));
        }
    }

    fn merges(&mut self, text: &str) -> Option<Edge> {
        let mut bio = Some(bio(text));
        self.call(|store, cx, rules| store.merge_bio(cx, rules, &mut bio))
    }

    fn dispatch_to(&mut self, hctx: u16) -> (Option<String>, Reason) {
        let (rq, reason) = self.call(|store, cx, _| store.dispatch(cx, HctxId(hctx)));
        (
            rq.map(|rq| {
                let name = name(&rq);
                self.at_device.push(rq);
                name
            }),
            reason,
        )
    }

    /// What can be dispatched now, in order.
    fn dispatch(&mut self) -> String {
        std::iter::from_fn(|| self.dispatch_to(0).0).collect::<Vec<_>>().join(" ")
    }

    /// Ends the oldest request at the device.
    fn complete(&mut self) {
        let rq = self.at_device.remove(0);
        let id = rq.id();
        self.pool.put(rq);
        self.free.push(id.0);
        self.finish(id);
    }

    fn finish(&mut self, id: RqId) {
        self.requested = RequestedActions::default();
        let mut freed = Vec::new();
        let cpu = crate::ground::ids::CpuId(0);
        let mut cx = ElevatorCx { now: Now::default(), cpu, requested: &mut self.requested, freed: &mut freed };
        self.store.call(&mut cx, |k2, cx| k2.finish(cx, id));
    }

    /// The device gives back the newest request.
    fn requeue(&mut self) {
        let rq = self.at_device.pop().expect("the device has a request");
        let id = rq.id();
        self.call(|store, cx, rules| {
            store.call(cx, |k2, cx| k2.on_requeued(cx, id));
            store.insert(cx, rules, rq, Place::Head);
        });
    }

    fn has_work(&self) -> bool {
        self.store.policy().has_work()
    }

    fn inflight(&self) -> u32 {
        self.store.policy().inflight
    }

    /// The order in which everything goes.
    fn order(mut self) -> String {
        let mut order = Vec::new();
        loop {
            match self.dispatch_to(0).0 {
                Some(name) => order.push(name),
                None if self.at_device.is_empty() => break,
                None => self.complete(),
            }
        }
        while !self.at_device.is_empty() {
            self.complete();
        }
        assert!(!self.has_work() && self.inflight() == 0 && self.free.len() == CAPACITY as usize);
        order.join(" ")
    }
}

fn name(rq: &Rq) -> String {
    let op = if rq.op == Op::Read { 'R' } else { 'W' };
    let length = if rq.sectors == 8 { String::new() } else { format!("+{}", rq.sectors) };
    format!("{op}{}{length}", rq.sector.0)
}

impl Drop for Bench {
    fn drop(&mut self) {
        let left = self.at_device.drain(..).collect::<Vec<_>>();
        left.into_iter().for_each(|rq| self.pool.put(rq));
        // What still waits goes back, too.
        let policy = self.store.policy().clone();
        for list in policy.lists {
            for id in list.iter(&policy.links).collect::<Vec<_>>() {
                let k2 = RqId(id);
                ElevatorCx::alone(Now::default(), |cx| self.store.call(cx, |policy, _| policy.dequeue(k2)));
            }
        }
    }
}

#[test]
fn real_time_levels_go_before_each_other_and_before_all_else_and_each_is_a_fifo() {
    let mut bench = Bench::new();
    bench.insert(
        "be/W1000 rt7/R10 rt4/R20 rt0/R30 rt7/R11 rt4/R21 rt0/R31 be/R1001 rt1/W40 rt6/W50 rt2/W60 rt5/W70 rt3/W80",
    );
    let [first, last] = [Reason::RealTimeLevel, Reason::Fifo];
    assert_eq!(bench.dispatch_to(0), (Some("R30".into()), first));
    assert_eq!(bench.dispatch_to(1), (Some("R31".into()), first), "whatever the hardware queue");
    assert_eq!(bench.dispatch(), "W40 W60 W80 R20 R21 W70 W50 R10 R11 W1000 R1001");
    bench.insert("be/R2");
    assert_eq!(bench.dispatch_to(0), (Some("R2".into()), last));
    assert_eq!(bench.dispatch_to(0), (None, Reason::Empty));
}

#[test]
fn best_effort_idle_and_no_class_share_one_fifo() {
    let mut bench = Bench::new();
    bench.insert("idle/R1000 be/R100 none/R500 idle/R20 be/W300");
    assert_eq!(bench.order(), "R1000 R100 R500 R20 W300");
}

#[test]
fn in_flight_requests_never_exceed_max_inflight() {
    let mut random = 7_u64;
    let mut draw = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut bench, mut bound, mut sector) = (Bench::new(), 32, 0);
    let mut was_full = false;
    for _ in 0..20_000 {
        match draw(8) {
            0..3 if !bench.free.is_empty() => {
                sector += 1000;
                let class = ["rt0", "rt5", "be", "idle", "none"][draw(5) as usize];
                bench.insert(&format!("{class}/R{sector}"));
            }
            3..5 if !bench.at_device.is_empty() => {
                let place = draw(bench.at_device.len() as u64) as usize;
                bench.at_device.swap(0, place);
                bench.complete();
            }
            5 if !bench.at_device.is_empty() => bench.requeue(),
            6 if draw(20) == 0 => {
                bound = 1 + draw(40) as u32;
                bench.set("max_inflight", &bound.to_string()).unwrap();
            }
            _ => {
                let before = bench.at_device.len();
                let (rq, _) = bench.dispatch_to(draw(4) as u16);
                assert!(rq.is_none() || before < bound as usize, "{before} of {bound} were at the device");
                was_full |= rq.is_none() && before == bound as usize;
            }
        }
        assert_eq!(bench.inflight() as usize, bench.at_device.len());
        let waits = CAPACITY as usize - bench.free.len() - bench.at_device.len();
        assert_eq!(bench.has_work(), waits > 0 && bench.at_device.len() < bound as usize);
    }
    assert!(was_full, "the bound was met");
    bench.order();
}

#[test]
fn whoever_inserts_for_another_does_not_lend_its_class() {
    let mut bench = Bench::new();
    // One task inserts for several, as a flushed plug does: each keeps its own class.
    bench.insert("none/R100 rt4/R200 be/R300 rt3/R400");
    assert_eq!(bench.order(), "R400 R200 R100 R300");
    let of_nice = [-20, 0, 19].map(|nice| list_of(IoPriority::from_nice(nice)));
    assert_eq!(of_nice, [COMMON; 3], "the nice level decides between best-effort levels");
    // A group that promotes to real time names no level.
    let promoted = crate::bio::ioprio::CgroupPriority::PromoteToRealTime.applied_to(IoPriority::UNSET);
    assert_eq!(list_of(promoted), FIRST_LEVEL + 4);
}

#[test]
fn a_bound_that_is_raised_lets_go_what_waits() {
    let mut bench = Bench::new().with("max_inflight", "1");
    bench.insert("be/R100 be/R200 be/R300");
    assert_eq!(bench.dispatch(), "R100");
    bench.set("max_inflight", "1").unwrap();
    assert!(!bench.requested.run_queues, "there is no more room than before");
    bench.set("max_inflight", "2").unwrap();
    assert!(
        bench.requested.run_queues && bench.has_work(),
        "all submitters sleep, so nothing else would run the queues"
    );
    assert_eq!(bench.dispatch(), "R200");
    // Lowered below what is at the device: the second completion makes the place.
    bench.set("max_inflight", "1").unwrap();
    bench.complete();
    assert!(!bench.requested.run_queues && !bench.has_work());
    bench.complete();
    assert!(bench.requested.run_queues);
    assert_eq!(bench.order(), "R300");
}

#[test]
fn there_is_no_work_at_the_bound_until_the_completion_that_frees_a_place() {
    let mut bench = Bench::new().with("max_inflight", "2");
    bench.insert("be/R100 be/R200");
    assert!(bench.has_work());
    assert_eq!(bench.dispatch(), "R100 R200");
    assert!(!bench.has_work(), "nothing waits");
    bench.insert("rt0/R300");
    assert!(!bench.has_work(), "all places are taken");
    assert_eq!(bench.dispatch_to(0), (None, Reason::BoundReached));
    bench.complete();
    assert!(bench.requested.run_queues && bench.has_work());
    assert_eq!(bench.dispatch(), "R300");
    bench.complete();
    assert!(!bench.requested.run_queues, "nothing waits that a run could take");
}

#[test]
fn an_invalid_bound_is_refused_and_changes_nothing() {
    let mut bench = Bench::new();
    assert_eq!(["max_inflight", "merge"].map(|name| bench.shown(name)), [32, 0]);
    bench.set("max_inflight", "65535").unwrap();
    for (text, error) in [
        ("0", StoreError::Range),
        ("65536", StoreError::Range),
        ("-1", StoreError::Invalid),
        ("many", StoreError::Invalid),
        ("", StoreError::Invalid),
    ] {
        assert_eq!((bench.set("max_inflight", text), bench.shown("max_inflight")), (Err(error), 65_535), "{text:?}");
    }
    assert_eq!((bench.set("merge", "2"), bench.shown("merge")), (Err(StoreError::Range), 0));
    assert_eq!(bench.set("quantum", "1"), Err(StoreError::Unknown));
}

#[test]
fn with_merge_a_bio_joins_a_request_of_another_class_and_takes_its_place_in_line() {
    // Up to 4.20 the block layer lets priorities merge.
    let mut bench = Bench::of(&Kernel::V4_12.generation()).with("merge", "1");
    bench.insert("be/R100 be/R500");
    assert_eq!(bench.merges("rt0/R508"), Some(Edge::Back));
    assert_eq!(bench.order(), "R100 R500+16");
    let mut bench = Bench::new().with("merge", "1");
    bench.insert("be/R100 be/R500");
    assert_eq!(bench.merges("rt0/R508"), None, "since 5.0 the block layer merges equal priorities only");
    bench.insert("rt3/R300");
    assert_eq!(bench.merges("rt3/R308"), Some(Edge::Back));
    assert_eq!(bench.order(), "R300+16 R100 R500");
}

#[test]
fn with_merge_a_front_merge_re_sorts_the_request() {
    let mut bench = Bench::new().with("merge", "1");
    bench.insert("be/R100 be/R500 be/W500");
    assert_eq!(bench.merges("be/R492"), Some(Edge::Front));
    assert_eq!(bench.merges("be/W492"), Some(Edge::Front), "each direction has an order");
    // It is found where it begins now, and no longer where it began.
    assert_eq!(bench.merges("be/R484"), Some(Edge::Front));
    assert_eq!(bench.merges("be/R492"), None);
    // What closes a gap makes one request of two, in the place of the one before the gap.
    bench.insert("be/R116");
    assert_eq!(bench.merges("be/R108"), Some(Edge::Back));
    assert_eq!(bench.order(), "R100+24 R484+24 W492+16");
}

#[test]
fn without_merge_no_bio_joins_and_a_change_leaves_waiting_requests_alone() {
    let mut bench = Bench::new();
    bench.insert("be/R100 be/R108 be/R700");
    assert_eq!([bench.merges("be/R116"), bench.merges("be/R92")], [None, None]);
    bench.set("merge", "1").unwrap();
    assert_eq!(bench.merges("be/R692"), None, "what came before is in no order");
    bench.insert("be/R300");
    assert_eq!(bench.merges("be/R292"), Some(Edge::Front));
    bench.set("merge", "0").unwrap();
    assert_eq!([bench.merges("be/R284"), bench.merges("be/R308")], [None, None]);
    bench.insert("be/R308");
    assert_eq!(bench.order(), "R100 R108 R700 R292+16 R308");
}

#[test]
fn a_requeued_request_is_counted_once_and_goes_first() {
    let mut bench = Bench::new().with("max_inflight", "2");
    bench.insert("be/R100 be/R200 rt0/R300");
    assert_eq!(bench.dispatch(), "R300 R100");
    bench.requeue();
    assert_eq!(bench.inflight(), 1);
    bench.insert("rt0/R400");
    assert_eq!(bench.dispatch_to(0), (Some("R100".into()), Reason::HeadList));
    assert_eq!((bench.inflight(), bench.has_work()), (2, false));
    // Two that come back at once are put back one by one, each before the other.
    bench.requeue();
    bench.requeue();
    assert_eq!((bench.inflight(), bench.dispatch()), (0, "R300 R100".into()));
    assert_eq!(bench.order(), "R400 R200");
}

#[test]
fn a_larger_queue_makes_room_for_more_ids() {
    let mut k2 = K2::new(2);
    k2.grow(CAPACITY);
    k2.grow(1);
    assert_eq!(k2.entries.len(), CAPACITY as usize);
}

proptest::proptest! {
    #[test]
    fn random_calls_lose_no_request_and_keep_the_bound(seed in proptest::prelude::any::<u64>()) {
        let bench = crate::schedulers::test_bench::Bench::new(K2::new(crate::schedulers::test_bench::CAPACITY));
        crate::schedulers::test_bench::random_calls(bench, seed, |bench| {
            assert_eq!(bench.policy().inflight as usize, bench.at_device.len());
        });
    }
}
