//! What reaches a policy through its lock, in which order, and what waits for the next holder.

use std::cell::Cell;
use std::collections::VecDeque;

use super::*;
use crate::bio::limits::Limits;
use crate::ground::ids::CpuId;
use crate::ground::kernel::Kernel;
use crate::ground::sharing::{Local, Threads};
use crate::ground::time::{Instant, Now};
use crate::policy::{Choice, Insertion, Place, Scheduler};
use crate::request::RequestPool;
use crate::request::merge::Merging;

/// A policy that holds requests until it is notified that they have ended, and limits writes.
struct Holding {
    needs: Needs,
    held: u32,
    depth: u32,
}

impl Scheduler for Holding {
    fn needs(&self) -> Needs {
        self.needs
    }
    fn insert(&mut self, _: &mut PolicyCx<'_>, _: RqId, _: Place) {}
    fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        Choice { rq: None, reason: Reason::Empty }
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {
        self.held -= 1;
    }
    fn has_work(&self) -> bool {
        self.held > 0
    }
    fn limit_depth(&mut self, _: &mut PolicyCx<'_>, bio: &Bio) -> Option<u32> {
        (bio.op == Op::Write).then_some(self.depth)
    }
    fn on_event(&mut self, _: &mut PolicyCx<'_>, _: SchedulerEvent) {
        self.depth += 1;
    }
}

fn holding(needs: Needs) -> Holding {
    Holding { needs, held: 1, depth: 3 }
}

/// Whether a policy of which one request is left has work after that has ended, and after the next call besides.
fn work_after_the_end<Sh: Sharing>(completions: Completions) -> [bool; 2] {
    let serialized: Serialized<_, Sh> = Serialized::new(holding(Needs { completions, ..Needs::default() }), 4);
    ElevatorCx::alone(Now::default(), |cx| {
        serialized.with_policy(&NoMeter, cx, |_, _| {});
        assert!(serialized.has_work());
        serialized.finish(&NoMeter, cx, RqId(2));
        let told_at_once = serialized.has_work();
        serialized.with_policy(&NoMeter, cx, |_, _| {});
        [told_at_once, serialized.has_work()]
    })
}

#[test]
fn with_threads_a_deferrable_completion_waits_for_the_next_lock_holder() {
    assert_eq!(work_after_the_end::<Threads>(Completions::Deferred), [true, false]);
    assert_eq!(work_after_the_end::<Threads>(Completions::AtOnce), [false, false]);
    assert_eq!(work_after_the_end::<Local>(Completions::Deferred), [false, false]);
    assert_eq!(work_after_the_end::<Local>(Completions::AtOnce), [false, false]);
}

#[test]
fn published_and_queried_depth_limits_follow_notifications() {
    for depth_by_context in [false, true] {
        let serialized: Serialized<_, Local> =
            Serialized::new(holding(Needs { depth_by_context, ..Needs::default() }), 4);
        ElevatorCx::alone(Now::default(), |cx| {
            let depths = |cx: &mut ElevatorCx<'_>| {
                [Op::Read, Op::Write].map(|op| serialized.limit_depth(&NoMeter, cx, &Bio::new(op, Sector(0), 8)))
            };
            assert_eq!(depths(cx), [Depth::Full, Depth::Shallow(3)]);
            serialized.notify(&NoMeter, cx, SchedulerEvent::Depths { nr_requests: 8, async_depth: None });
            assert_eq!(depths(cx), [Depth::Full, Depth::Shallow(4)], "asked: {depth_by_context}");
        });
    }
}

/// A policy that dispatches what came first, but for what goes before all others; it may want to know of bios.
struct Line {
    bios: bool,
    queue: VecDeque<RqId>,
}

impl Scheduler for Line {
    fn needs(&self) -> Needs {
        Needs { bios: self.bios, ..Needs::default() }
    }
    fn insert(&mut self, _: &mut PolicyCx<'_>, id: RqId, place: Place) {
        match place {
            Place::Sorted => self.queue.push_back(id),
            Place::Head => self.queue.push_front(id),
        }
    }
    fn dispatch(&mut self, _: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        Choice { rq: self.queue.pop_front(), reason: Reason::Empty }
    }
    fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {}
    fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// The ids that are dispatched, and those that are absorbed at their insertion, of requests that begin at these sectors.
fn through_a_line(insertion: Insertion, bios: bool, inserted: &[(u64, Place)]) -> (Vec<u32>, Vec<u32>) {
    let contention_options = ContentionOptions { insertion, ..ContentionOptions::default() };
    let line = Line { bios, queue: VecDeque::new() };
    let serialized: Serialized<_, Local> = Serialized::new(line, inserted.len() as u32).with(contention_options);
    let pool = RequestPool::<Local>::new(inserted.len() as u32);
    let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
    ElevatorCx::alone(Now::default(), |cx| {
        for (id, &(sector, place)) in inserted.iter().enumerate() {
            let mut rq = pool.take(RqId(id as u32));
            rq.found(Bio::new(Op::Write, Sector(sector), 8), Instant::ZERO);
            serialized.insert(&NoMeter, cx, &rules, std::iter::once(rq), place);
        }
        assert!(serialized.has_work());
        let absorbed: Vec<Rq> = cx.freed.drain(..).collect();
        let absorbed = absorbed.into_iter().map(|rq| pool_back(&pool, rq)).collect();
        let dispatched = std::iter::from_fn(|| serialized.dispatch(&NoMeter, cx, HctxId(0)).0);
        let dispatched: Vec<Rq> = dispatched.collect();
        let late: Vec<Rq> = cx.freed.drain(..).collect();
        late.into_iter().for_each(|rq| {
            pool_back(&pool, rq);
        });
        assert!(!serialized.has_work());
        (dispatched.into_iter().map(|rq| pool_back(&pool, rq)).collect(), absorbed)
    })
}

fn pool_back(pool: &RequestPool<Local>, rq: Rq) -> u32 {
    let id = rq.id().0;
    pool.put(rq);
    id
}

#[test]
fn head_insertions_keep_their_order_through_pending_lists() {
    let inserted =
        [(100, Place::Sorted), (200, Place::Sorted), (300, Place::Head), (400, Place::Head), (500, Place::Sorted)];
    for insertion in [Insertion::Direct, Insertion::Buckets, Insertion::Pending] {
        assert_eq!(through_a_line(insertion, false, &inserted).0, [3, 2, 0, 1, 4], "{insertion:?}");
    }
}

#[test]
fn neighbours_join_while_they_are_pending_unless_the_policy_wants_to_know_of_bios() {
    let inserted = [100, 108, 300, 116].map(|sector| (sector, Place::Sorted));
    let (dispatched, absorbed) = through_a_line(Insertion::Pending, false, &inserted);
    assert_eq!(absorbed, [1], "the one before the last is in the way of the last");
    assert_eq!(dispatched, [0, 2], "which finds its place when the policy gets it");
    let (dispatched, absorbed) = through_a_line(Insertion::Pending, true, &inserted);
    assert_eq!((dispatched, absorbed), (vec![0, 2], vec![]));
}

/// Finds each lock held by another CPU when it is tried, which takes in what is left to it or does not.
struct Taken {
    accepts_delegated_work: bool,
    /// What that one was reported to deal with.
    count_delegated_request: Cell<u32>,
}

impl Meter for Taken {
    fn enter(&self, _: &crate::ground::meter::Held, _: Site) {}

    fn try_enter(&self, _: &crate::ground::meter::Held, _: Site) -> bool {
        false
    }

    fn is_accepting_delegated_work(&self, _: &crate::ground::meter::Held) -> bool {
        self.accepts_delegated_work
    }

    fn count_delegated_request(&self, _: CpuId) {
        self.count_delegated_request.set(self.count_delegated_request.get() + 1);
    }

    fn leave(&self, _: &crate::ground::meter::Held, _: Site) {}
}

#[test]
fn with_buckets_a_contended_insertion_keeps_the_order() {
    for accepts_delegated_work in [false, true] {
        let contention_options = ContentionOptions { insertion: Insertion::Buckets, ..ContentionOptions::default() };
        let line = Line { bios: false, queue: VecDeque::new() };
        let serialized: Serialized<_, Local> = Serialized::new(line, 3).with(contention_options);
        let pool = RequestPool::<Local>::new(3);
        let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
        ElevatorCx::alone(Now::default(), |cx| {
            let rq = |id: u32| {
                let mut rq = pool.take(RqId(id));
                rq.found(Bio::new(Op::Write, Sector(u64::from(id) * 100), 8), Instant::ZERO);
                rq
            };
            let meter = Taken { accepts_delegated_work, count_delegated_request: Cell::new(0) };
            serialized.insert(&meter, cx, &rules, (0..3).map(rq), Place::Sorted);
            assert_eq!(
                meter.count_delegated_request.get(),
                if accepts_delegated_work { 3 } else { 0 },
                "each is work of the CPU that does it"
            );
            let dispatched = std::iter::from_fn(|| serialized.dispatch(&NoMeter, cx, HctxId(0)).0);
            let dispatched: Vec<Rq> = dispatched.collect();
            assert_eq!(dispatched.into_iter().map(|rq| pool_back(&pool, rq)).collect::<Vec<_>>(), [0, 1, 2]);
        });
    }
}

/// A batch that expects no request and calls `dispatched` with the number of attempts after each.
struct Vain<F: FnMut(u32)> {
    asked: u32,
    dispatched: F,
}

impl<F: FnMut(u32)> DispatchBatch for Vain<F> {
    fn may_dispatch(&mut self) -> bool {
        self.asked += 1;
        true
    }

    fn on_dispatched(&mut self, rq: Option<Rq>, _: Reason) -> bool {
        assert!(rq.is_none());
        (self.dispatched)(self.asked);
        false
    }
}

#[test]
fn the_single_dispatcher_releases_its_turn_before_reading_completions() {
    let mut policy = holding(Needs { completions: Completions::Deferred, ..Needs::default() });
    policy.held = 3;
    let contention_options = ContentionOptions { single_dispatcher: true, ..ContentionOptions::default() };
    let serialized: Serialized<_, Threads> = Serialized::new(policy, 4).with(contention_options);
    let mut turns = Vec::new();
    ElevatorCx::alone(Now::default(), |cx| {
        let dispatched = |asked| {
            turns.push(serialized.dispatching.load(SeqCst));
            // It ends without the lock, as the policy allows.
            (asked == 1).then(|| ElevatorCx::alone(Now::default(), |cx| serialized.finish(&NoMeter, cx, RqId(2))));
        };
        serialized.dispatch_batch(&NoMeter, cx, HctxId(0), 4, &mut Vain { asked: 0, dispatched });
    });
    assert_eq!(turns, [1, 0], "a CPU that brings something from now on may ask itself");
}

/// Counts the requests beyond the first under a hold.
#[derive(Default)]
struct Beyond(Cell<u32>);

impl Meter for Beyond {
    fn enter(&self, _: &crate::ground::meter::Held, _: Site) {}

    fn try_enter(&self, _: &crate::ground::meter::Held, _: Site) -> bool {
        true
    }

    fn another(&self) {
        self.0.set(self.0.get() + 1);
    }

    fn leave(&self, _: &crate::ground::meter::Held, _: Site) {}
}

/// Takes whatever is dispatched.
struct Greedy<'a>(&'a RequestPool<Local>, u32);

impl DispatchBatch for Greedy<'_> {
    fn may_dispatch(&mut self) -> bool {
        true
    }

    fn on_dispatched(&mut self, rq: Option<Rq>, _: Reason) -> bool {
        self.1 += rq.map_or(0, |rq| {
            assert!(rq.marks.contains(Marks::STARTED), "it no longer grows");
            pool_back(self.0, rq);
            1
        });
        true
    }
}

#[test]
fn a_batch_dispatches_no_more_than_asked_and_charges_each_extra_request() {
    let line = Line { bios: false, queue: VecDeque::new() };
    let serialized: Serialized<_, Local> = Serialized::new(line, 4);
    let pool = RequestPool::<Local>::new(4);
    let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
    ElevatorCx::alone(Now::default(), |cx| {
        for id in 0..4 {
            let mut rq = pool.take(RqId(id));
            rq.found(Bio::new(Op::Write, Sector(u64::from(id) * 100), 8), Instant::ZERO);
            serialized.insert(&NoMeter, cx, &rules, std::iter::once(rq), Place::Sorted);
        }
        let mut draw = |most| {
            let (meter, mut greedy) = (Beyond::default(), Greedy(&pool, 0));
            serialized.dispatch_batch(&meter, cx, HctxId(0), most, &mut greedy);
            (greedy.1, meter.0.get())
        };
        assert_eq!([draw(3), draw(3), draw(3)], [(3, 2), (1, 0), (0, 0)]);
    });
}

#[test]
fn deferred_completions_are_reported_before_the_pool_grows() {
    let needs = Needs { completions: Completions::Deferred, ..Needs::default() };
    let mut serialized: Serialized<_, Threads> = Serialized::new(holding(needs), 4);
    ElevatorCx::alone(Now::default(), |cx| serialized.finish(&NoMeter, cx, RqId(2)));
    serialized.grow(8);
    assert!(serialized.store.aside(|store| store.policy().held == 0));
}

/// Counts what tries to get a lock.
#[derive(Default)]
struct Tried(Cell<u32>);

impl Meter for Tried {
    fn enter(&self, _: &crate::ground::meter::Held, _: Site) {}

    fn try_enter(&self, _: &crate::ground::meter::Held, _: Site) -> bool {
        self.0.set(self.0.get() + 1);
        true
    }

    fn leave(&self, _: &crate::ground::meter::Held, _: Site) {}
}

#[test]
fn a_bio_tries_for_the_lock_only_if_a_merge_candidate_may_exist() {
    let contention_options = ContentionOptions { try_merge: true, ..ContentionOptions::default() };
    let serialized: Serialized<_, Local> =
        Serialized::new(Line { bios: false, queue: VecDeque::new() }, 1).with(contention_options);
    let pool = RequestPool::<Local>::new(1);
    let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
    ElevatorCx::alone(Now::default(), |cx| {
        let tries = |cx: &mut ElevatorCx<'_>| {
            let (meter, mut bio) = (Tried::default(), Some(Bio::new(Op::Read, Sector(0), 8)));
            assert_eq!(serialized.merge_bio(&meter, cx, &rules, &mut bio), None);
            meter.0.get()
        };
        let mut rq = pool.take(RqId(0));
        rq.found(Bio::new(Op::Write, Sector(800), 8), Instant::ZERO);
        serialized.insert(&NoMeter, cx, &rules, std::iter::once(rq), Place::Sorted);
        assert_eq!(tries(cx), 1);
        pool_back(&pool, serialized.dispatch(&NoMeter, cx, HctxId(0)).0.expect("it waits"));
        assert_eq!(tries(cx), 0);
    });
}

#[test]
fn the_single_dispatcher_drains_pending_lists_first_and_again_if_empty() {
    let contention_options =
        ContentionOptions { single_dispatcher: true, insertion: Insertion::Pending, ..ContentionOptions::default() };
    let line = Line { bios: false, queue: VecDeque::new() };
    let serialized: Serialized<_, Local> = Serialized::new(line, 4).with(contention_options);
    let pool = RequestPool::<Local>::new(4);
    let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
    let insert = |id: u32, place| {
        let mut rq = pool.take(RqId(id));
        rq.found(Bio::new(Op::Write, Sector(u64::from(id) * 100), 8), Instant::ZERO);
        ElevatorCx::alone(Now::default(), |cx| {
            serialized.insert(&NoMeter, cx, &rules, std::iter::once(rq), place);
        });
    };
    ElevatorCx::alone(Now::default(), |cx| {
        insert(0, Place::Sorted);
        insert(1, Place::Sorted);
        let mut next = || serialized.dispatch(&NoMeter, cx, HctxId(0)).0.map(|rq| pool_back(&pool, rq));
        assert_eq!(next(), Some(0));
        insert(2, Place::Head);
        assert_eq!([next(), next(), next()], [Some(2), Some(1), None]);
    });
}

#[test]
fn no_request_arriving_during_an_empty_single_dispatch_is_left_behind() {
    /// Nothing at the first question, what is there at the next.
    struct Hesitant(Line, bool);
    impl Scheduler for Hesitant {
        fn needs(&self) -> Needs {
            self.0.needs()
        }
        fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
            self.0.insert(cx, id, place);
        }
        fn dispatch(&mut self, cx: &mut PolicyCx<'_>, hctx: HctxId) -> Choice {
            if std::mem::take(&mut self.1) {
                Choice { rq: None, reason: Reason::Empty }
            } else {
                self.0.dispatch(cx, hctx)
            }
        }
        fn finish(&mut self, _: &mut PolicyCx<'_>, _: RqId) {}
        fn has_work(&self) -> bool {
            self.1 || self.0.has_work()
        }
    }
    /// Inserts a request when nothing was dispatched.
    struct Late<F: FnMut()>(F, Vec<Rq>);
    impl<F: FnMut()> DispatchBatch for Late<F> {
        fn may_dispatch(&mut self) -> bool {
            true
        }
        fn on_dispatched(&mut self, rq: Option<Rq>, _: Reason) -> bool {
            match rq {
                Some(rq) => self.1.push(rq),
                None => (self.0)(),
            }
            false
        }
    }
    let contention_options =
        ContentionOptions { single_dispatcher: true, insertion: Insertion::Pending, ..ContentionOptions::default() };
    let line = Line { bios: false, queue: VecDeque::new() };
    let serialized: Serialized<_, Local> = Serialized::new(Hesitant(line, true), 4).with(contention_options);
    let pool = RequestPool::<Local>::new(4);
    let rules = MergeRules::new(&Kernel::V6_18.generation(), Limits::default(), Merging::Full);
    let mut rq = pool.take(RqId(3));
    rq.found(Bio::new(Op::Write, Sector(8), 8), Instant::ZERO);
    let mut rq = Some(rq);
    let bring = || {
        ElevatorCx::alone(Now::default(), |cx| {
            serialized.insert(&NoMeter, cx, &rules, rq.take().into_iter(), Place::Sorted);
        });
    };
    let mut late = Late(bring, Vec::new());
    ElevatorCx::alone(Now::default(), |cx| serialized.dispatch_batch(&NoMeter, cx, HctxId(0), 4, &mut late));
    let given: Vec<u32> = late.1.drain(..).map(|rq| pool_back(&pool, rq)).collect();
    assert_eq!(given, [3]);
}
