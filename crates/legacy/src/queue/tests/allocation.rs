//! LQ-8 to LQ-13: which task may have a request.

use std::sync::{Arc, Mutex};

use hoistway_blk::policy::MayQueue;

use super::hooks::{Diary, Recorder};
use super::*;

/// Async writes by a process of their own for each, far from each other; returns the last one's fate.
fn write_as(bench: &mut Bench, task: u32) -> Submitted {
    let sector = 1000 * u64::from(task) + bench.queue.requests_in_use() as u64 * 16;
    bench.submit_as(task, Bio::new(Op::Write, Sector(sector), 8))
}

/// Has this many async requests, each by a process of its own. The last one's process is number `count`.
fn with_async(count: u32) -> Bench {
    let mut bench = Bench::stopped("noop");
    for task in 1..=count {
        assert_eq!(write_as(&mut bench, task), Submitted::Done);
    }
    bench
}

/// Ends `count` requests, oldest first.
fn end(bench: &mut Bench, count: u32) {
    bench.queue.set_stopped(false);
    bench.run();
    (0..count).for_each(|_| bench.complete_oldest());
    bench.queue.set_stopped(true);
}

#[test]
fn with_128_async_requests_an_async_one_blocks_and_a_sync_one_does_not() {
    let mut bench = with_async(128);
    assert_eq!(write_as(&mut bench, 500), Submitted::Parked);
    assert_eq!(bench.submit_as(501, bio("R8000000")), Submitted::Done);
    let sync_write = Bio { flags: BioFlags::SYNC, ..bio("W9000000") };
    assert_eq!(bench.submit_as(502, sync_write), Submitted::Done);
}

#[test]
fn a_nowait_bio_fails_instead_of_waiting() {
    let mut bench = with_async(128);
    let hasty = Bio { flags: BioFlags::NOWAIT, ..bio("W9000000") };
    assert_eq!(bench.submit_as(500, hasty), Submitted::Done);
    assert!(matches!(bench.caller.effects.pop(), Some(Effect::EndBio { status: Status::Again, .. })));
}

#[test]
fn a_class_is_congested_from_its_113th_request_until_102_remain() {
    let mut bench = with_async(112);
    assert!(!bench.queue.is_congested(CgroupId::ROOT, SyncClass::Async));
    write_as(&mut bench, 113);
    assert!(
        bench.queue.is_congested(CgroupId::ROOT, SyncClass::Async)
            && !bench.queue.is_congested(CgroupId::ROOT, SyncClass::Sync)
    );
    end(&mut bench, 10);
    assert!(bench.queue.is_congested(CgroupId::ROOT, SyncClass::Async), "103 remain");
    end(&mut bench, 1);
    assert!(!bench.queue.is_congested(CgroupId::ROOT, SyncClass::Async), "102 remain");
}

#[test]
fn the_task_that_fills_the_list_may_have_31_more_within_20_ms() {
    let mut bench = with_async(128);
    for more in 0..31 {
        assert_eq!(write_as(&mut bench, 128), Submitted::Done, "{more} more");
    }
    assert_eq!(write_as(&mut bench, 128), Submitted::Parked);
    assert_eq!(bench.queue.requests_in_use(), 159);
    let mut late = with_async(128);
    late.pass(20);
    assert_eq!(write_as(&mut late, 128), Submitted::Parked);
}

#[test]
fn a_class_never_has_more_than_192_requests() {
    let mut bench = with_async(128);
    // Three bursts of 32 would be too many.
    for task in 501..=503 {
        bench.queue.locked.aside(|queue| queue.batchers.grant(Now::default(), IoContextId(task)));
        while write_as(&mut bench, task) == Submitted::Done {}
    }
    assert_eq!(bench.queue.requests_in_use(), 192);
}

#[test]
fn sleepers_are_woken_first_come_first_one_for_each_request_that_is_freed() {
    let mut bench = with_async(128);
    for task in [503, 501, 502] {
        assert_eq!(write_as(&mut bench, task), Submitted::Parked);
    }
    end(&mut bench, 2);
    assert_eq!(bench.take_effects(), "wake 503, wake 501");
}

#[test]
fn a_woken_task_has_a_credit_of_32() {
    let mut bench = with_async(128);
    assert_eq!(write_as(&mut bench, 500), Submitted::Parked);
    end(&mut bench, 1);
    bench.work();
    assert!(!bench.parked.contains_key(&500), "it has one");
    for more in 0..31 {
        assert_eq!(write_as(&mut bench, 500), Submitted::Done, "{more} more");
    }
    assert_eq!(write_as(&mut bench, 500), Submitted::Parked);
}

#[test]
fn a_task_that_goes_to_sleep_flushes_its_plug_and_leaves_the_run_to_a_worker() {
    let mut bench = with_async(127);
    bench.queue.set_stopped(false);
    bench.driver.refusals.push_back(Some(Refusal::Busy));
    bench.plug();
    assert_eq!(write_as(&mut bench, 500), Submitted::Done);
    bench.queue.locked.aside(|queue| queue.batchers.forget(IoContextId(500)));
    bench.events();
    assert_eq!(write_as(&mut bench, 500), Submitted::Parked);
    assert!(bench.events().contains("I502032 U1"));
    assert_eq!((bench.take_effects(), bench.calls()), ("run".to_owned(), String::new()));
}

#[test]
fn nr_requests_1_becomes_4_and_a_change_wakes_waiters_that_fit() {
    let mut bench = Bench::stopped("noop");
    assert!(bench.queue.set_nr_requests(1, &mut bench.caller.effects).is_ok());
    assert_eq!(bench.queue.nr_requests(), 4);
    (1..=4).for_each(|task| assert_eq!(write_as(&mut bench, task), Submitted::Done));
    assert_eq!(write_as(&mut bench, 5), Submitted::Parked);
    assert!(bench.queue.is_congested(CgroupId::ROOT, SyncClass::Async));
    assert!(bench.queue.set_nr_requests(128, &mut bench.caller.effects).is_ok());
    assert!(!bench.queue.is_congested(CgroupId::ROOT, SyncClass::Async));
    assert_eq!(bench.take_effects(), "wake 5");
    assert!(
        bench.queue.set_nr_requests(2048, &mut bench.caller.effects).is_ok(),
        "slots are made when they are needed"
    );
    assert!(bench.queue.set_nr_requests(2049, &mut bench.caller.effects).is_err());
}

#[test]
fn may_queue_must_passes_a_full_list_up_to_one_and_a_half_times_it() {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let mut bench = Recorder::bench(&diary);
    bench.queue.set_stopped(true);
    (1..=128).for_each(|task| assert_eq!(write_as(&mut bench, task), Submitted::Done));
    assert_eq!(write_as(&mut bench, 500), Submitted::Parked);
    diary.lock().unwrap().may_queue = MayQueue::Must;
    (1..=64).for_each(|task| assert_eq!(write_as(&mut bench, 500 + task), Submitted::Done));
    assert_eq!(write_as(&mut bench, 600), Submitted::Parked);
}

#[test]
fn a_task_refused_only_by_the_scheduler_is_woken_by_the_other_class() {
    let diary = Arc::new(Mutex::new(Diary::default()));
    let mut bench = Recorder::bench(&diary);
    bench.queue.set_stopped(true);
    assert_eq!(bench.submit_as(1, bio("R8000000")), Submitted::Done);
    diary.lock().unwrap().may_queue = MayQueue::No;
    assert_eq!(write_as(&mut bench, 2), Submitted::Parked);
    end(&mut bench, 1);
    assert_eq!(bench.take_effects(), "wake 2");
}

#[test]
fn each_cgroup_has_a_full_request_list_and_sleeps_for_its_own_requests() {
    for scheduler in ["noop", "deadline", "cfq"] {
        let mut bench = Bench::stopped(scheduler);
        let write = |cgroup: u32, task: u32| {
            let sector = Sector(u64::from(cgroup) << 30 | u64::from(task) << 10);
            Bio { cgroup: CgroupId(cgroup), ..Bio::new(Op::Write, sector, 8) }
        };
        for cgroup in 0..4 {
            let task = |n: u32| 1000 * cgroup + n;
            for n in 0..128 {
                assert_eq!(bench.submit_as(task(n), write(cgroup, n)), Submitted::Done, "{scheduler}");
            }
            assert!(bench.queue.is_congested(CgroupId(cgroup), SyncClass::Async));
            assert_eq!(bench.submit_as(task(500), write(cgroup, 500)), Submitted::Parked, "{scheduler}");
        }
        assert_eq!(bench.queue.requests_in_use(), 4 * 128, "more slots than the queue was made with");
        bench.queue.set_stopped(false);
        bench.run();
        while !bench.parked.is_empty() {
            bench.complete_oldest();
            bench.work();
        }
        assert!(bench.queue.requests_in_use() > 0, "{scheduler}: each was woken by a request of its own cgroup");
    }
}
