//! Staging, turns, tokens.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::super::tokens::TokenPool;
use super::*;
use crate::ground::meter::{Held, Meter, Site};
use crate::ground::sharing::Lock;
use crate::ground::tunables::value_of;
use crate::tags::Depth;
use crate::watch::reason::Reason;

#[test]
fn each_operation_has_its_domain_and_sync_matters_only_in_the_first_generations() {
    let with = |generation| Bench::<Local>::new(generation, &[0]).kyber.rules;
    let current = with(KyberGeneration::Percentiles);
    let first = with(KyberGeneration::Windows);
    for (op, flags, now, then) in [
        (Op::Read, BioFlags::NONE, Domain::Read, Domain::Read),
        (Op::Read, BioFlags::RAHEAD, Domain::Read, Domain::Read),
        (Op::Write, BioFlags::SYNC, Domain::Write, Domain::Write),
        (Op::Write, BioFlags::FUA, Domain::Write, Domain::Write),
        (Op::Write, BioFlags::NONE, Domain::Write, Domain::Other),
        (Op::Write, BioFlags::BACKGROUND, Domain::Write, Domain::Other),
        (Op::Discard, BioFlags::SYNC, Domain::Discard, Domain::Other),
        (Op::WriteZeroes, BioFlags::NONE, Domain::Other, Domain::Other),
    ] {
        assert_eq!(current.domain_of(op, flags), now, "{op:?}");
        assert_eq!(first.domain_of(op, flags), then, "{op:?}");
    }
}

#[test]
fn domains_take_turns_by_count() {
    let mut bench: Bench = Bench::current();
    for (op, count) in [(Op::WriteZeroes, 2), (Op::Discard, 2), (Op::Write, 10), (Op::Read, 20)] {
        bench.insert_many(op, count);
    }
    let expected = "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R16 W1 W2 W3 W4 W5 W6 W7 W8 D1 O1 \
                    R17 R18 R19 R20 W9 W10 D2 O2";
    assert_eq!(bench.drain(0), names(expected));
    assert!(!bench.kyber.has_work(HctxId(0)));
}

#[test]
fn the_batch_counter_restarts_when_the_turn_comes_back_to_the_same_domain() {
    let mut bench: Bench = Bench::current();
    bench.insert_many(Op::Read, 20);
    for n in 1..=20 {
        let (rq, reason) = bench.kyber.dispatch(&NoMeter, HctxId(0));
        assert_eq!(rq.map(|rq| name(&rq)), Some(format!("R{n}")));
        // The 17th is found by going round the whole circle.
        assert_eq!(reason, if n == 17 { Reason::DomainTurn } else { Reason::DomainBatch });
    }
    assert_eq!(bench.kyber.hctxs[0].turn().served, 4);
}

#[test]
fn a_throttled_domain_fails_and_goes_first_when_a_token_comes_back() {
    let mut bench: Bench = Bench::current();
    bench.kyber.adopt_depth(Domain::Write, 2);
    bench.insert_many(Op::Read, 3);
    bench.insert_many(Op::Write, 5);
    let given: Vec<Rq> = std::iter::from_fn(|| bench.dispatch(0)).collect();
    assert_eq!(given.iter().map(name).collect::<Vec<_>>(), names("R1 R2 R3 W1 W2"));
    assert_eq!(bench.kyber.dispatch(&NoMeter, HctxId(0)).1, Reason::NoToken);
    let turn = bench.kyber.hctxs[0].turn();
    assert_eq!((turn.current, turn.served), (Domain::Write.index(), 0));
    assert_eq!(bench.kyber.waiting(Domain::Write), 1, "it waits once, however often it asks");
    assert_eq!(bench.finish(&given[0]), [], "a read's token is of no use to it");

    bench.insert_many(Op::Read, 1);
    assert_eq!(bench.finish(&given[3]), [HctxId(0)]);
    assert_eq!(bench.drain(0), names("W3 R1"));
}

#[test]
fn no_more_than_depth_tokens_are_out_and_a_cut_withholds_the_high_numbers() {
    let mut bench: Bench = Bench::current();
    bench.insert_many(Op::Write, 200);
    let given: Vec<Rq> = std::iter::from_fn(|| bench.dispatch(0)).collect();
    assert_eq!(given.len(), 128);

    bench.kyber.adopt_depth(Domain::Write, 16);
    assert_eq!(bench.kyber.tokens_in_use(Domain::Write), 128, "nothing is revoked");
    let (high, low): (Vec<&Rq>, Vec<&Rq>) =
        given.iter().partition(|rq| bench.kyber.token_of(rq.id()).is_some_and(|token| token >= 16));
    for rq in high {
        bench.finish(rq);
        assert!(bench.dispatch(0).is_none(), "a high number is not given out again");
    }
    bench.finish(low[0]);
    let again = bench.dispatch(0).expect("a low number is");
    assert!(bench.kyber.token_of(again.id()).is_some_and(|token| token < 16));
}

#[test]
fn a_domain_that_had_no_token_has_one_as_soon_as_its_depth_is_larger() {
    let mut bench: Bench = Bench::current();
    bench.kyber.adopt_depth(Domain::Write, 1);
    bench.insert_many(Op::Write, 3);
    assert!(bench.dispatch(0).is_some());
    assert!(bench.dispatch(0).is_none());
    bench.kyber.adopt_depth(Domain::Write, 2);
    assert!(bench.dispatch(0).is_some(), "nothing has come back");
    assert!(bench.dispatch(0).is_none());
}

#[test]
fn a_waiting_hardware_queue_is_run_after_a_wake_batch_and_leaves_the_line_with_a_token() {
    let mut bench: Bench = Bench::new(KyberGeneration::Percentiles, &[0, 1]);
    bench.kyber.adopt_depth(Domain::Read, 32);
    (1..=40).for_each(|n| bench.insert(0, Op::Read, n * 1000));
    bench.insert(1, Op::Read, 99_000);
    let given: Vec<Rq> = std::iter::from_fn(|| bench.dispatch(0)).collect();
    assert!(bench.dispatch(1).is_none());
    assert_eq!((given.len(), bench.kyber.waiting(Domain::Read)), (32, 2));
    // A depth of 32 makes batches of 4.
    let woken: Vec<Vec<HctxId>> = given[..4].iter().map(|rq| bench.finish(rq)).collect();
    assert_eq!(woken, [vec![], vec![], vec![], vec![HctxId(0), HctxId(1)]]);
    assert_eq!(bench.kyber.waiting(Domain::Read), 0);

    // Both ask again; what has not been woken meanwhile leaves the line as soon as it is given a token.
    assert_eq!(bench.drain(0).len(), 4);
    assert!(bench.dispatch(1).is_none());
    assert_eq!(bench.kyber.waiting(Domain::Read), 2);
    bench.finish(&given[4]);
    assert!(bench.dispatch(1).is_some());
    assert_eq!(bench.kyber.waiting(Domain::Read), 1);
}

#[test]
fn a_token_that_comes_back_has_every_hardware_queue_of_a_wait_queue_run_and_each_goes_round_these_by_itself() {
    let hctxs: Vec<u16> = (0..12).collect();
    let mut bench: Bench = Bench::new(KyberGeneration::Windows, &hctxs);
    bench.kyber.adopt_depth(Domain::Read, 1);
    for cpu in 0..12 {
        (1..=3).for_each(|n| bench.insert(cpu, Op::Read, u64::from(cpu) * 100_000 + n * 1000));
    }
    let first = bench.dispatch(0).expect("there is one token");
    assert!(hctxs.iter().all(|&hctx| bench.dispatch(hctx).is_none()));
    let all: Vec<HctxId> = hctxs.iter().copied().map(HctxId).collect();
    assert_eq!(bench.finish(&first), all, "they joined the same one, their first");
    // The first one that runs has the token. All join their second.
    let second = bench.dispatch(7).expect("it has come back");
    assert!(hctxs.iter().all(|&hctx| bench.dispatch(hctx).is_none()));
    assert_eq!(bench.kyber.waiting(Domain::Read), 12);
    assert_eq!(bench.finish(&second).len(), 12);
    // Those that have found no token once more are one wait queue further than this one.
    let third = bench.dispatch(3).expect("it has come back");
    assert!((4..12).all(|hctx| bench.dispatch(hctx).is_none()));
    assert_eq!(bench.finish(&third).len(), 8);
}

#[test]
fn a_token_comes_back_exactly_once_by_completion_or_requeue() {
    let mut bench: Bench = Bench::current();
    bench.insert_many(Op::Discard, 2);
    let (first, second) = (bench.dispatch(0).unwrap(), bench.dispatch(0).unwrap());
    assert_eq!(bench.kyber.tokens_in_use(Domain::Discard), 2);
    bench.finish(&first);
    bench.finish(&first);
    assert_eq!(bench.kyber.tokens_in_use(Domain::Discard), 1);

    // A requeued request has none until it is given out again.
    ElevatorCx::alone(Now::default(), |cx| bench.kyber.on_requeued(&NoMeter, cx, second.id()));
    assert_eq!(bench.kyber.tokens_in_use(Domain::Discard), 0);
    bench.kyber.insert(&NoMeter, std::iter::once(second), Place::Head);
    let again = bench.dispatch(0).unwrap();
    assert_eq!(bench.kyber.tokens_in_use(Domain::Discard), 1);
    bench.finish(&again);
    assert_eq!(bench.kyber.tokens_in_use(Domain::Discard), 0);
}

#[test]
fn a_requeued_request_goes_before_staged_but_after_flushed_requests() {
    let mut bench: Bench = Bench::current();
    bench.insert_many(Op::Read, 3);
    let first = bench.dispatch(0).unwrap();
    ElevatorCx::alone(Now::default(), |cx| bench.kyber.on_requeued(&NoMeter, cx, first.id()));
    bench.insert(0, Op::Read, 9000);
    bench.kyber.insert(&NoMeter, std::iter::once(first), Place::Head);
    assert_eq!(bench.drain(0), names("R2 R3 R1 R9"));
}

#[test]
fn staged_requests_stay_mergeable_while_there_is_no_token() {
    let mut bench: Bench = Bench::current();
    bench.kyber.adopt_depth(Domain::Write, 1);
    bench.insert(0, Op::Write, 1000);
    let first = bench.dispatch(0).unwrap();
    bench.insert(0, Op::Write, 2000);
    assert!(bench.dispatch(0).is_none());
    assert!(bench.merges(0, bio(Op::Write, 2008)), "nothing was flushed");
    assert!(bench.merges(0, bio(Op::Write, 1992)), "at either end");
    assert!(!bench.merges(0, bio(Op::Read, 2016)), "another domain's list is not looked at");
    bench.finish(&first);
    let merged = bench.dispatch(0).unwrap();
    assert_eq!((merged.sector, merged.sectors), (Sector(1992), 24));
}

#[test]
fn a_bio_is_compared_with_the_eight_newest_requests_of_its_cpu_and_domain() {
    let mut bench: Bench = Bench::new(KyberGeneration::Percentiles, &[0, 0]);
    bench.insert_many(Op::Read, 10);
    bench.insert_many(Op::Write, 10);
    assert!(bench.merges(0, bio(Op::Read, 3008)), "the eighth, whatever other domains hold");
    assert!(!bench.merges(0, bio(Op::Read, 2008)), "the ninth");
    assert!(!bench.merges(1, bio(Op::Read, 10_008)), "another CPU's");
}

#[test]
fn a_flush_takes_software_queues_in_ascending_order_and_ends_merging() {
    let mut bench: Bench = Bench::new(KyberGeneration::Percentiles, &[0, 0]);
    // a, b on CPU 0; c, d on CPU 1, in another order of time.
    for (cpu, sector) in [(1, 3000), (0, 1000), (1, 4000), (0, 2000)] {
        bench.insert(cpu, Op::Read, sector);
    }
    assert_eq!(bench.dispatch(0).map(|rq| name(&rq)).as_deref(), Some("R1"));
    bench.insert(0, Op::Read, 5000);
    assert!(!bench.merges(1, bio(Op::Read, 4008)), "d has been flushed");
    bench.insert(1, Op::Read, 6000);
    assert_eq!(bench.drain(0), names("R2 R3 R4 R5 R6"));
}

#[test]
fn in_the_first_generation_all_domains_are_staged_in_one_list_and_flushed_at_once() {
    let mut bench: Bench = Bench::new(KyberGeneration::Windows, &[0]);
    bench.kyber.adopt_depth(Domain::Write, 1);
    bench.insert_many(Op::Write, 2);
    let first = bench.dispatch(0).unwrap();
    // A list that is flushed without a token no longer merges.
    bench.insert(0, Op::Write, 3000);
    (10..18).for_each(|n| bench.insert(0, Op::Discard, n * 1000));
    assert!(!bench.merges(0, bio(Op::Write, 3008)), "eight requests of all domains are looked at");
    assert!(bench.merges(0, bio(Op::Discard, 10_008)));
    assert_eq!(bench.dispatch(0).map(|rq| name(&rq)).as_deref(), Some("D10"));
    assert!(!bench.merges(0, bio(Op::Discard, 17_008)), "the search for reads flushed everything");
    bench.finish(&first);
    assert_eq!(bench.drain(0), names("D11 D12 D13 D14 D15 D16 D17 W2"));
}

#[test]
fn in_4_19_domains_are_staged_apart_under_the_first_controller() {
    let mut bench: Bench = Bench::new(KyberGeneration::StagedWindows, &[0]);
    bench.insert_many(Op::Read, 1);
    bench.insert_many(Op::Discard, 1);
    assert!(bench.dispatch(0).is_some_and(|rq| rq.op == Op::Read));
    assert!(bench.merges(0, bio(Op::Discard, 1008)));
    assert_eq!(bench.kyber.depth(Domain::Other), 64);
}

#[test]
fn async_requests_may_use_three_quarters_of_the_scheduler_tags_and_sync_ones_all() {
    let depth = |shallow, nr_requests| {
        KyberConfig { shallow, nr_requests, ..config(KyberGeneration::Percentiles) }.shallow_depth(nr_requests)
    };
    let by_word = [256, 128, 64, 32, 31].map(|tags| depth(ShallowRule::PerWord, tags));
    assert_eq!(by_word, [48, 24, 12, 6, 3]);
    let by_map = [256, 128, 64, 62].map(|tags| depth(ShallowRule::WholeMap, tags));
    assert_eq!(by_map, [192, 96, 48, 46]);

    let bench: Bench = Bench::current();
    let limit = |op, flags| bench.kyber.limit_depth(&Bio { flags, ..Bio::new(op, Sector(0), 8) });
    assert_eq!(limit(Op::Read, BioFlags::NONE), Depth::Full);
    assert_eq!(limit(Op::Write, BioFlags::SYNC), Depth::Full);
    assert_eq!(limit(Op::Write, BioFlags::NONE), Depth::Shallow(192));
    assert_eq!(limit(Op::Discard, BioFlags::NONE), Depth::Shallow(192));
}

#[test]
fn the_async_limit_follows_nr_requests_except_in_the_first_generation() {
    for (generation, after) in [(KyberGeneration::Percentiles, 96), (KyberGeneration::Windows, 192)] {
        let bench: Bench = Bench::new(generation, &[0]);
        bench.kyber.on_event(SchedulerEvent::Depths { nr_requests: 128, async_depth: None });
        assert_eq!(bench.kyber.min_shallow(), Some(after));
    }
    let tiny = KyberConfig { nr_requests: 1, ..config(KyberGeneration::Percentiles) };
    let kyber: Kyber<Local> = Kyber::new(tiny, &CpuMap::of_one_type(&[HctxId(0)]), 1);
    assert_eq!(kyber.min_shallow(), None, "a limit of 0 would admit nothing");
}

#[test]
fn a_queue_that_gets_a_token_right_after_joining_leaves_the_line_but_not_in_the_first_generation() {
    for (keeps_waiting, left_in_line) in [(false, 0), (true, 1)] {
        let pool: Rc<TokenPool<Watched>> = Rc::new(TokenPool::new(1, 1, 2, keeps_waiting));
        let token = pool.take(&NoMeter, HctxId(0)).unwrap();
        let other = Rc::clone(&pool);
        // The token comes back between the first try and the joining of the line, which takes the line's lock.
        BEFORE_NEXT_LOCK.set(Some(Box::new(move || other.give_back(&NoMeter, token, HctxId(0), |_| {}))));
        assert_eq!(pool.take(&NoMeter, HctxId(1)), Some(token));
        assert_eq!(pool.waiting(), left_in_line);
    }
}

/// Notes which locks are taken.
struct Watched;

struct WatchedLock<T>(RefCell<T>);

thread_local! {
    static TAKEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Something that happens just before the next lock is taken.
    static BEFORE_NEXT_LOCK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

impl Sharing for Watched {
    type Lock<T> = WatchedLock<T>;
    type ReadMostly<T> = crate::ground::sharing::Lent<T>;
    type Word = Cell<u64>;
    type Objects = crate::ground::sharing::OfOneThread;
}

impl<T> Lock<T> for WatchedLock<T> {
    fn new(value: T) -> Self {
        WatchedLock(RefCell::new(value))
    }
    fn with<M: Meter, R>(&self, _: &M, _: Site, body: impl FnOnce(&mut T) -> R) -> R {
        if let Some(event) = BEFORE_NEXT_LOCK.take() {
            event();
        }
        TAKEN.with_borrow_mut(|taken| taken.push(std::ptr::from_ref(self) as *const () as usize));
        body(&mut self.0.borrow_mut())
    }
    fn try_with<M: Meter, R>(&self, meter: &M, site: Site, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        Some(self.with(meter, site, body))
    }
}

#[test]
fn two_hardware_queues_share_no_lock_in_insertion_merge_and_dispatch() {
    let mut bench: Bench<Watched> = Bench::new(KyberGeneration::Percentiles, &[0, 1]);
    let mut locks_of = |cpu: u32| {
        TAKEN.take();
        bench.insert(cpu, Op::Read, 1000);
        assert!(bench.merges(cpu, bio(Op::Read, 1008)));
        let rq = bench.dispatch(cpu as u16).unwrap();
        bench.finish(&rq);
        TAKEN.take()
    };
    let (one, other) = (locks_of(0), locks_of(1));
    assert_eq!(one.len(), 4, "insertion, merge, dispatch and its flush");
    assert!(one.iter().all(|lock| !other.contains(lock)));
}

#[test]
fn a_fresh_kyber_has_the_default_depths_and_targets() {
    let bench: Bench = Bench::current();
    assert_eq!(Domain::ALL.map(|domain| bench.kyber.depth(domain)), [256, 128, 64, 16]);
    let first: Bench = Bench::new(KyberGeneration::Windows, &[0]);
    assert_eq!(Domain::ALL.map(|domain| first.kyber.depth(domain)), [256, 128, 0, 64]);
    for kyber in [&bench.kyber, &first.kyber] {
        assert_eq!(value_of(&kyber.tunables(), "read_lat_nsec"), Ok(2_000_000));
        assert_eq!(value_of(&kyber.tunables(), "write_lat_nsec"), Ok(10_000_000));
    }
}

#[test]
fn targets_are_written_as_64_bit_decimals() {
    use crate::ground::tunables::StoreError;
    let bench: Bench = Bench::current();
    let set = |text| bench.kyber.set_tunable("read_lat_nsec", text);
    assert_eq!(
        (set("18446744073709551615\n"), value_of(&bench.kyber.tunables(), "read_lat_nsec")),
        (Ok(()), Ok(u64::MAX.into()))
    );
    assert_eq!(set("0"), Ok(()));
    assert_eq!(set("18446744073709551616"), Err(StoreError::Range));
    for text in ["", " 1", "0x10", "-1", "1 "] {
        assert_eq!(set(text), Err(StoreError::Invalid));
    }
    assert_eq!(bench.kyber.set_tunable("discard_lat_nsec", "1"), Err(StoreError::Unknown));
}

#[test]
fn a_kyber_that_has_grown_holds_the_tokens_of_its_new_requests() {
    let map = CpuMap::of_one_type(&[HctxId(0)]);
    let mut kyber: Kyber<Local> = Kyber::new(config(KyberGeneration::Percentiles), &map, 1);
    kyber.grow(2);
    let pool: RequestPool<Local> = RequestPool::new(2);
    let mut rq = pool.take(RqId(1));
    rq.found(bio(Op::Read, 8), Instant::ZERO);
    kyber.insert(&NoMeter, std::iter::once(rq), Place::Sorted);
    let given = kyber.dispatch(&NoMeter, HctxId(0)).0.map(|rq| rq.id());
    assert_eq!((given, kyber.token_of(RqId(1)).is_some()), (Some(RqId(1)), true));
}

#[test]
fn a_request_waits_for_the_hardware_queue_of_its_type() {
    // One hardware queue for writes, one for reads.
    let map = CpuMap::new(1, [1, 1, 0]);
    let kyber: Kyber<Local> = Kyber::new(config(KyberGeneration::Percentiles), &map, 2);
    let pool: RequestPool<Local> = RequestPool::new(2);
    for (id, op) in [(0, Op::Read), (1, Op::Write)] {
        let mut rq = pool.take(RqId(id));
        rq.found(bio(op, 8), Instant::ZERO);
        kyber.insert(&NoMeter, std::iter::once(rq), Place::Sorted);
    }
    for kind in [crate::request::cpu_map::QueueType::Read, crate::request::cpu_map::QueueType::Default] {
        let hctx = map.hctx_of(CpuId(0), kind);
        let given = kyber.dispatch(&NoMeter, hctx).0.map(|rq| rq.op);
        let expected = if kind == crate::request::cpu_map::QueueType::Read { Op::Read } else { Op::Write };
        assert_eq!((given, kyber.has_work(hctx)), (Some(expected), false));
    }
}

#[test]
fn a_pool_is_not_dry_if_the_final_check_finds_a_token() {
    let pool: Rc<TokenPool<Watched>> = Rc::new(TokenPool::new(2, 2, 2, false));
    let [one, two] = [(); 2].map(|()| pool.take(&NoMeter, HctxId(0)).unwrap());
    let other = Rc::clone(&pool);
    // Both come back between the first try and the joining of the line.
    BEFORE_NEXT_LOCK.set(Some(Box::new(move || {
        [one, two].into_iter().for_each(|token| other.give_back(&NoMeter, token, HctxId(0), |_| {}));
    })));
    assert!(pool.take(&NoMeter, HctxId(1)).is_some());
    assert!(pool.take(&NoMeter, HctxId(0)).is_some());
    assert_eq!(pool.waiting(), 0, "no queue had to stand in line for the second");
}

#[test]
fn a_hardware_queue_that_left_the_wait_line_rejoins_when_it_finds_no_token() {
    let pool: Rc<TokenPool<Watched>> = Rc::new(TokenPool::new(1, 1, 2, false));
    let token = pool.take(&NoMeter, HctxId(0)).unwrap();
    let other = Rc::clone(&pool);
    BEFORE_NEXT_LOCK.set(Some(Box::new(move || other.give_back(&NoMeter, token, HctxId(0), |_| {}))));
    assert_eq!(pool.take(&NoMeter, HctxId(1)), Some(token));
    assert_eq!((pool.take(&NoMeter, HctxId(1)), pool.waiting()), (None, 1), "nothing else would wake it");
}

#[test]
fn a_queue_refused_without_a_search_begins_its_next_at_the_first_token() {
    let pool: TokenPool<Local> = TokenPool::new(8, 3, 2, false);
    let tokens = [(); 3].map(|()| pool.take(&NoMeter, HctxId(0)).unwrap());
    assert_eq!((pool.take(&NoMeter, HctxId(1)), pool.take(&NoMeter, HctxId(0))), (None, None));
    pool.set_depth(2);
    assert_eq!(tokens, [0, 1, 2]);
    tokens.into_iter().for_each(|token| pool.give_back(&NoMeter, token, HctxId(1), |_| {}));
    assert_eq!(pool.take(&NoMeter, HctxId(0)), Some(0));
}

#[test]
fn a_token_that_is_exchanged_for_the_recorded_one_is_free_again() {
    let pool: TokenPool<Local> = TokenPool::new(4, 4, 1, false);
    let held = pool.take(&NoMeter, HctxId(0)).unwrap();
    assert!(pool.exchange(held, 3, HctxId(0)) && pool.exchange(3, 3, HctxId(0)));
    assert_eq!((pool.in_use(), pool.try_take_exact(held), pool.try_take_exact(3)), (1, true, false));
    assert!(!pool.exchange(3, held, HctxId(0)), "it is taken");
}

#[test]
fn tokens_of_the_first_two_generations_are_numbered_up_to_the_queue_depth_and_256_at_least() {
    let positions = |generation, queue_depth| KyberConfig { queue_depth, ..config(generation) }.positions(64);
    assert_eq!([32, 500].map(|depth| positions(KyberGeneration::Windows, depth)), [256, 500]);
    assert_eq!([32, 500].map(|depth| positions(KyberGeneration::Percentiles, depth)), [64, 64]);
}

#[test]
fn since_7_0_the_async_depth_starts_at_three_quarters_of_scheduler_tags() {
    let depth = |kernel: Kernel| KyberConfig::new(&kernel.generation(), 100, 32).async_depth;
    assert_eq!([Kernel::V7_0, Kernel::V6_18].map(depth), [Some(75), None]);
    let of_bfq = |kernel: Kernel| crate::schedulers::BfqConfig::new(&kernel.generation(), 100, true).async_depth;
    assert_eq!([Kernel::V7_0, Kernel::V6_18].map(of_bfq), [Some(75), None]);
}

#[test]
fn a_domain_of_few_tokens_wakes_at_the_first_that_comes_back_however_many_positions_there_are() {
    let pool: TokenPool<Local> = TokenPool::new(256, 4, 2, false);
    let tokens = [(); 4].map(|()| pool.take(&NoMeter, HctxId(0)).unwrap());
    assert_eq!(pool.take(&NoMeter, HctxId(1)), None);
    let mut woken = Vec::new();
    pool.give_back(&NoMeter, tokens[0], HctxId(0), |hctx| woken.push(hctx));
    assert_eq!(woken, [HctxId(1)]);
}

#[test]
fn requests_staged_by_high_numbered_cpus_are_found() {
    let mut bench: Bench = Bench::new(KyberGeneration::Percentiles, &[0; 130]);
    for cpu in [129, 70, 3] {
        bench.insert(cpu, Op::Read, u64::from(cpu) * 1000);
    }
    assert!(bench.merges(70, bio(Op::Read, 70_008)) && !bench.merges(6, bio(Op::Read, 70_016)));
    assert_eq!(bench.drain(0), names("R3 R70 R129"));
}

/// Counts how often a lock is taken.
struct Entered(Cell<u32>);

impl Meter for Entered {
    fn enter(&self, _: &Held, _: Site) {
        self.0.set(self.0.get() + 1);
    }

    fn try_enter(&self, _: &Held, _: Site) -> bool {
        true
    }

    fn leave(&self, _: &Held, _: Site) {}
}

#[test]
fn a_bio_that_finds_nothing_staged_takes_no_lock() {
    let mut bench = <Bench>::current();
    let locks = |bench: &Bench| {
        let meter = Entered(Cell::new(0));
        bench.kyber.merge_bio(&meter, CpuId(0), &bench.rules, &mut Some(bio(Op::Read, 0)));
        meter.0.get()
    };
    assert_eq!(locks(&bench), 0);
    bench.insert(0, Op::Write, 1000);
    assert_eq!(locks(&bench), 0, "no read");
    bench.insert(0, Op::Read, 1000);
    assert_eq!(locks(&bench), 1);
}

#[test]
fn a_request_without_a_token_stays_staged_and_may_still_merge() {
    let mut bench = <Bench>::current();
    bench.kyber.adopt_depth(Domain::Read, 1);
    bench.insert(0, Op::Read, 1000);
    assert!(bench.dispatch(0).is_some());
    bench.insert(0, Op::Read, 2000);
    assert!(bench.dispatch(0).is_none());
    assert!(bench.merges(0, bio(Op::Read, 2008)));
}

#[test]
fn requests_are_flushed_only_when_none_of_their_domain_are_left_of_the_last_flush() {
    for (generation, op) in [
        (KyberGeneration::Percentiles, Op::Read),
        (KyberGeneration::Percentiles, Op::Write),
        (KyberGeneration::Windows, Op::Read),
        (KyberGeneration::Windows, Op::Write),
    ] {
        let mut bench: Bench = Bench::new(generation, &[0]);
        bench.insert_many(op, 2);
        assert_eq!(bench.dispatch(0).map(|rq| rq.sector.0), Some(1000));
        bench.insert(0, op, 3000);
        assert_eq!(bench.dispatch(0).map(|rq| rq.sector.0), Some(2000), "of the last flush");
        assert!(bench.merges(0, bio(op, 3008)), "{generation:?} {op:?}");
    }
}

#[test]
fn a_slot_remembers_token_domain_and_hardware_queue() {
    use super::super::Held as Slot;
    for (token, domain, hctx) in [(0, Domain::Read, 0), (1 << 20, Domain::Other, 300), (7, Domain::Discard, 0xFFFF)] {
        let held = Slot::unpack(Slot { token, domain, hctx: HctxId(hctx) }.pack()).expect("a token is held");
        assert_eq!((held.token, held.domain, held.hctx), (token, domain, HctxId(hctx)));
    }
    assert!(Slot::unpack(Slot::NOTHING).is_none());
}
