//! Tests of the charges for sections under locks and for delegated requests.

use super::*;

const COST: SectionCost = SectionCost {
    section: Nanos(100),
    beside: Nanos::ZERO,
    handover: Nanos(40),
    far_handover: Nanos(40),
    contended_handover: Nanos(40),
    cache_cpus: 64,
    waiter: Nanos(10),
    list: Nanos(7),
    list_handover: Nanos(3),
};

#[test]
fn a_cpu_that_finds_a_lock_held_spins_and_pays_for_the_hand_over() {
    let (meter, lock) = (LockMeter::new(3), Held::default());
    let pass = |at, cpu| {
        meter.begin(Instant(at), CpuId(cpu), COST);
        meter.enter(&lock, Site::Insert);
        meter.leave(&lock, Site::Insert);
        meter.spent().0
    };
    assert_eq!(pass(1000, 0), 100, "no CPU had it");
    assert_eq!(pass(1050, 0), 100, "the same CPU comes after itself, and needs no hand-over");
    assert_eq!(pass(1150, 1), 50 + 40 + 100);
    assert_eq!(pass(1150, 2), 190 + 40 + 10 + 100, "one waits before it");
    assert_eq!(pass(9000, 2), 100);
    meter.begin(Instant(9050), CpuId(0), COST);
    meter.enter(&lock, Site::Merge);
    meter.enter(&lock, Site::Insert);
    assert_eq!(meter.spent().0, 50 + 140 + 140, "another that spins has it between two sections");
    let (held, waited) = (Nanos(100 + 100 + 140 + 150 + 100 + 280), Nanos(50 + 190 + 50));
    assert_eq!(meter.used(), LockUse { elevators: held, held, waited, taken: 7, lists_taken: 0 });
}

#[test]
fn a_free_lock_call_is_late_only_after_a_costly_one_on_its_cpu() {
    let (meter, lock) = (LockMeter::new(2), Held::default());
    let pass = |at, cpu, cost| {
        meter.begin(Instant(at), CpuId(cpu), cost);
        meter.enter(&lock, Site::Insert);
        meter.leave(&lock, Site::Insert);
        (meter.spent().0, meter.delay(Instant(at)).0)
    };
    assert_eq!(pass(1000, 0, SectionCost::default()), (0, 0));
    assert_eq!(pass(1000, 0, COST), (100, 100));
    assert_eq!(pass(1050, 0, SectionCost::default()), (0, 50));
    assert_eq!(pass(1050, 1, SectionCost::default()), (0, 0));
}

#[test]
fn work_beside_a_lock_costs_only_the_caller() {
    let cost = SectionCost { beside: Nanos(30), ..COST };
    let (meter, lock) = (LockMeter::new(3), Held::default());
    meter.begin(Instant(1000), CpuId(0), cost);
    meter.enter(&lock, Site::Insert);
    meter.another();
    meter.leave(&lock, Site::Insert);
    assert_eq!(meter.spent(), Nanos(2 * 130), "two requests");
    meter.begin(Instant(1100), CpuId(1), cost);
    meter.enter(&lock, Site::Insert);
    assert_eq!(meter.spent(), Nanos(100 + 40 + 130), "it waits for 1200");
    meter.begin(Instant(1150), CpuId(0), cost);
    meter.enter(&lock, Site::Dispatch);
    assert_eq!(meter.spent(), Nanos(80 + 40 + 130), "its own time goes on at 1260, and the other one leaves at 1340");
}

#[test]
fn a_hold_grows_per_request_and_a_caller_meanwhile_leaves_it_to_the_holder() {
    let (meter, lock) = (LockMeter::new(3), Held::default());
    meter.begin(Instant(1000), CpuId(2), COST);
    assert!(meter.may_become_dispatcher(&lock));
    meter.enter(&lock, Site::Dispatch);
    meter.another();
    meter.another();
    meter.leave(&lock, Site::Dispatch);
    assert_eq!(meter.spent(), Nanos(300), "three requests under one hold");
    meter.begin(Instant(1100), CpuId(1), COST);
    meter.enter(&lock, Site::Insert);
    assert!(meter.may_become_dispatcher(&lock), "it has waited until the other one was done");
    meter.begin(Instant(1299), CpuId(0), COST);
    assert!(!meter.may_become_dispatcher(&lock));
    assert!(meter.take_delegated_work().is_some_and(|left| left.dispatcher == Some((CpuId(2), Instant(1300)))));
    assert!(meter.take_delegated_work().is_none());
    meter.begin(Instant(1299), CpuId(0), SectionCost::default());
    assert!(meter.may_become_dispatcher(&lock), "no CPU asks for long where nothing costs");
}

#[test]
fn sections_of_a_call_follow_each_other_and_other_locks_cost_nothing() {
    let (meter, lock) = (LockMeter::new(3), Held::default());
    meter.begin(Instant(1000), CpuId(0), COST);
    for site in [Site::Merge, Site::TagWaiters, Site::Dispatch] {
        meter.enter(&lock, site);
    }
    assert_eq!(meter.spent(), Nanos(200));
    meter.begin(Instant(1100), CpuId(1), COST);
    assert!(!meter.try_enter(&lock, Site::Merge), "it is held until 1200");
    meter.begin(Instant(1100), CpuId(1), SectionCost::default());
    assert!(meter.try_enter(&lock, Site::Merge), "nothing is held where nothing costs");
    assert_eq!(meter.spent(), Nanos::ZERO);
}

#[test]
fn work_left_to_an_inserter_prolongs_its_hold_and_its_cpu_pays() {
    let (meter, lock, bucket) = (LockMeter::new(3), Held::default(), Held::default());
    meter.begin(Instant(1000), CpuId(0), COST);
    assert!(!meter.is_accepting_delegated_work(&lock));
    assert!(meter.try_enter(&lock, Site::Insert));
    meter.accepts_delegated_work();
    meter.another();
    meter.leave(&lock, Site::Insert);
    assert_eq!(meter.spent(), Nanos(200), "two requests");
    meter.begin(Instant(1150), CpuId(1), COST);
    assert!(!meter.try_enter(&lock, Site::Insert) && meter.is_accepting_delegated_work(&lock));
    meter.enter(&bucket, Site::Leave);
    meter.another();
    meter.leave(&bucket, Site::Leave);
    meter.join(&lock);
    meter.enter(&bucket, Site::Take);
    meter.leave(&bucket, Site::Take);
    meter.count_delegated_request(CpuId(1));
    meter.count_delegated_request(CpuId(1));
    meter.leave(&lock, Site::Insert);
    assert_eq!(meter.spent(), Nanos(2 * 7), "a CPU that leaves two requests waits for none");
    // The wait for the list's lock, then its hand-over and section.
    let took = Nanos(14 + 7 + 3 + 200);
    let left = meter.take_delegated_work().unwrap();
    assert_eq!((left.inserter, left.dispatcher.is_none()), (Some((CpuId(0), took)), true));
    assert_eq!(lock.until.get(), Instant(1200) + took);
    meter.begin(Instant(1201), CpuId(2), COST);
    assert!(meter.is_accepting_delegated_work(&lock), "it still inserts");
    meter.begin(Instant(1200) + took, CpuId(2), COST);
    assert!(!meter.is_accepting_delegated_work(&lock));
    assert_eq!(meter.used().lists_taken, 2);
}

#[test]
fn a_dispatcher_holds_its_lock_for_list_items_and_list_users_do_not_wait() {
    let (meter, lock, list) = (LockMeter::new(3), Held::default(), Held::default());
    meter.begin(Instant(1000), CpuId(0), COST);
    meter.enter(&lock, Site::Dispatch);
    meter.leave(&lock, Site::Dispatch);
    meter.begin(Instant(1050), CpuId(1), COST);
    meter.enter(&list, Site::Leave);
    meter.leave(&list, Site::Leave);
    assert_eq!(meter.spent(), Nanos(7), "the lock is another one");
    meter.begin(Instant(2000), CpuId(0), COST);
    meter.enter(&lock, Site::Dispatch);
    meter.enter(&list, Site::Take);
    meter.leave(&list, Site::Take);
    meter.count_delegated_request(CpuId(1));
    meter.count_delegated_request(CpuId(0));
    meter.leave(&lock, Site::Dispatch);
    let spent = Nanos(100 + 7 + 3 + 100 + 2 * 3 + 100);
    assert_eq!(
        meter.spent(),
        spent,
        "it asks, takes the list over, and inserts what was there, of which one is its own"
    );
    assert_eq!(lock.until.get(), Instant(2316));
    let used = meter.used();
    assert_eq!((used.taken, used.lists_taken, used.held, used.elevators), (2, 2, Nanos(423), Nanos(416)));
}

#[test]
fn without_calls_no_time_is_spent_and_no_cpu_is_late() {
    let (meter, lock) = (LockMeter::new(3), Held::default());
    let cost = SectionCost { beside: Nanos(30), ..COST };
    meter.begin(Instant(1000), CpuId(0), cost);
    meter.enter(&lock, Site::Insert);
    assert_eq!((meter.spent(), meter.delay(Instant(1000))), (Nanos(130), Nanos(100)));
    meter.reset(Instant(5000));
    assert_eq!((meter.spent(), meter.delay(Instant(5000))), (Nanos::ZERO, Nanos::ZERO));
}

#[test]
fn waiters_are_counted_by_the_time_they_take_from_each_other() {
    let cost = |waiter| SectionCost { waiter: Nanos(waiter), ..COST };
    for waiter in [0, 1, 10, 100] {
        for n in [0, 1, 2, 31, 1000] {
            let wait = Nanos(n * (140 + waiter * n));
            assert_eq!(cost(waiter).waiters_during(wait, 1), n, "{waiter}");
            assert_eq!(cost(waiter).waiters_during(Nanos(3 * wait.0), 3), n, "{waiter}: calls of three sections");
        }
    }
    // An overloaded lock: the number of waiters stays bounded by the CPUs.
    let (meter, lock) = (LockMeter::new(4), Held::default());
    for round in 0..1000 {
        for cpu in 0..4 {
            meter.begin(Instant(1000 + 100 * round), CpuId(cpu), cost(50));
            meter.enter(&lock, Site::Merge);
        }
    }
    assert!(lock.until.get() <= Instant(1000) + Nanos(4000 * (140 + 4 * 50)));
}

#[test]
fn every_section_of_a_call_that_has_waited_costs_more_with_each_cpu_that_waits() {
    // The longest time between two calls, of three sections each, that CPUs make one after the other.
    let interval = |cpus: u32, waiter: u64| {
        let (meter, lock) = (LockMeter::new(cpus as u16), Held::default());
        let mut until = Instant(1000);
        for call in 0..100 * cpus {
            meter.begin(Instant(1000), CpuId(call % cpus), SectionCost { waiter: Nanos(waiter), ..COST });
            for site in [Site::Merge, Site::Insert, Site::Dispatch] {
                meter.enter(&lock, site);
                meter.leave(&lock, site);
            }
            until = lock.until.get();
        }
        until.since(Instant(1000)).0 / u64::from(100 * cpus)
    };
    assert_eq!(interval(1, 10), 3 * 100, "no CPU waits");
    for (cpus, waiters) in [(2, 1), (4, 3), (10, 9)] {
        assert!(interval(cpus, 0).abs_diff(3 * 140) < 10, "{cpus}");
        let dearer = 3 * (140 + 10 * (waiters - 1)) - 5..3 * (140 + 10 * waiters) + 5;
        assert!(dearer.contains(&interval(cpus, 10)), "{cpus}: {} is not in {dearer:?}", interval(cpus, 10));
    }
}

#[test]
fn only_a_cpu_that_drains_buckets_is_found_while_it_holds_the_lock() {
    let (meter, locks) = (LockMeter::new(4), [Held::default(), Held::default(), Held::default()]);
    let hold = |at, cpu, lock: &Held, accepts_delegated_work| {
        meter.begin(Instant(at), CpuId(cpu), COST);
        meter.enter(lock, Site::Insert);
        if accepts_delegated_work {
            meter.accepts_delegated_work();
        }
        meter.another();
        meter.leave(lock, Site::Insert);
    };
    let found = |at| {
        meter.begin(Instant(at), CpuId(3), COST);
        locks.each_ref().map(|lock| meter.is_accepting_delegated_work(lock))
    };
    hold(1000, 0, &locks[0], true);
    assert_eq!(found(1150), [true, false, false]);
    hold(1150, 1, &locks[1], true);
    hold(1160, 2, &locks[2], false);
    assert_eq!(
        found(1199),
        [true, true, false],
        "one does not hide the other, and an insertion of its own concerns no other"
    );
    assert_eq!(found(1200), [false, true, false]);
    assert_eq!(found(1350), [false; 3]);
}

#[test]
fn leaving_several_requests_pays_for_the_list_and_beside_it_for_each() {
    let (meter, list) = (LockMeter::new(1), Held::default());
    meter.begin(Instant(1000), CpuId(0), SectionCost { beside: Nanos(30), ..COST });
    meter.enter(&list, Site::Leave);
    (0..3).for_each(|_| meter.another());
    meter.leave(&list, Site::Leave);
    assert_eq!((meter.spent(), list.until.get()), (Nanos(4 * (7 + 30)), Instant(1000 + 4 * 7)));
    assert_eq!(meter.used().held, Nanos(4 * 7));
}

#[test]
fn a_call_has_waited_from_its_first_wait_on_and_so_has_the_next_of_its_cpu_that_comes_right_behind() {
    let (meter, lock) = (LockMeter::new(2), Held::default());
    let has_waited_for_lock = |at, cpu| {
        meter.begin(Instant(at), CpuId(cpu), COST);
        let before = meter.has_waited_for_lock();
        meter.enter(&lock, Site::Insert);
        [before, meter.has_waited_for_lock()]
    };
    assert_eq!(has_waited_for_lock(1000, 0), [false, false]);
    assert_eq!(has_waited_for_lock(1050, 1), [false, true]);
    assert_eq!(has_waited_for_lock(1100, 1), [true, true]);
    assert_eq!(has_waited_for_lock(5000, 1), [false, false]);
}

#[test]
fn a_cpu_sees_a_request_until_it_has_been_taken_and_asks_in_vain() {
    let (meter, lock) = (LockMeter::new(3), Held::default());
    let sees = |at, cpu| {
        meter.begin(Instant(at), CpuId(cpu), COST);
        meter.sees_work_being_taken(&lock)
    };
    let ask = || {
        meter.enter(&lock, Site::Dispatch);
        meter.leave(&lock, Site::Dispatch);
        meter.spent().0
    };
    assert!(!sees(1000, 0));
    assert_eq!(ask(), 100);
    assert!(!sees(1050, 0), "a CPU's calls follow each other");
    assert!(sees(1060, 1));
    assert_eq!(ask(), 40 + 40 + 100, "it waits, and gets the lock from the other");
    assert!(!sees(1101, 2), "what is in vain takes no request");
    meter.enter(&lock, Site::Insert);
    assert!(!meter.sees_work_being_taken(&lock));
}

#[test]
fn only_a_call_that_has_waited_leaves_its_run_to_a_later_one_at_its_end() {
    let (meter, lock) = (LockMeter::new(2), Held::default());
    let postpones = |at, cpu, cost| {
        meter.begin(Instant(at), CpuId(cpu), cost);
        meter.enter(&lock, Site::Insert);
        let postpones = meter.postpones_run(HctxId(3));
        (postpones, meter.take_delegated_work().and_then(|left| left.postponed))
    };
    assert_eq!(postpones(1000, 0, SectionCost::default()), (false, None));
    assert_eq!(postpones(1000, 0, COST), (false, None));
    assert_eq!(postpones(1050, 1, COST), (true, Some((CpuId(1), HctxId(3), Instant(1240)))));
    assert_eq!(postpones(5000, 0, COST), (false, None));
    meter.begin(Instant(5050), CpuId(0), COST);
    assert!(!meter.postpones_run(HctxId(3)), "it comes after another call of its CPU, which has not waited either");
}
