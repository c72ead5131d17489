//! LQ-17, NOOP-2 to NOOP-5, DL-6 to DL-8: merging.

use hoistway_blk::bio::{IoPriority, PriorityClass};
use hoistway_blk::ground::CgroupId;

use super::*;

/// What noop makes of bios that arrive while the device is busy.
fn noop(merging: Merging, words: &str) -> String {
    let mut bench = Bench::with(LegacyConfig { merging, ..config(Kernel::V4_12) }, "noop");
    bench.queue.set_stopped(true);
    bench.submit(words);
    let served = bench.serve();
    bench.assert_empty();
    served
}

#[test]
fn first_in_first_out_with_a_back_merge() {
    assert_eq!(noop(Merging::Full, "R500 W100 R20 W108"), "R500+8 W100+16 R20+8");
}

#[test]
fn cache_and_hash() {
    assert_eq!(noop(Merging::Full, "W100 W500 W108 W92 W508 W492"), "W92+24 W492+24");
}

#[test]
fn a_front_merge_only_into_the_request_merged_or_added_last() {
    assert_eq!(noop(Merging::Full, "R200 R300 R192 R292"), "R192+16 R300+8 R292+8");
}

#[test]
fn two_requests_join_only_as_neighbours_in_arrival_order() {
    assert_eq!(noop(Merging::Full, "R100 R116 R108"), "R100+24");
    assert_eq!(noop(Merging::Full, "R100 R900 R116 R108"), "R100+16 R900+8 R116+8");
}

#[test]
fn nomerges_leaves_the_cache_or_nothing() {
    let bios = "R100 R900 R108 R908";
    assert_eq!(noop(Merging::Full, bios), "R100+16 R900+16");
    assert_eq!(noop(Merging::Simple, bios), "R100+16 R900+8 R908+8");
    assert_eq!(noop(Merging::Off, bios), "R100+8 R900+8 R108+8 R908+8");
}

#[test]
fn a_merged_request_is_served_at_the_place_of_its_oldest_part() {
    assert_eq!(noop(Merging::Full, "W500 R100 W508 R300 W516"), "W500+24 R100+8 R300+8");
}

#[test]
fn without_merging_noop_always_keeps_arrival_order() {
    let bios = "R500 W500 D20 R8 W16 R492 D28 W0";
    let expected = "R500+8 W500+8 D20+8 R8+8 W16+8 R492+8 D28+8 W0+8";
    assert_eq!(noop(Merging::Off, bios), expected);
}

#[test]
fn among_several_that_end_there_the_one_hashed_last_is_taken() {
    // W1000 is cached first, so that the cache does not decide.
    assert_eq!(noop(Merging::Full, "W1000 W100+8 W96+12 W108"), "W1000+8 W100+8 W96+20");
}

#[test]
fn an_insertion_merge_continues_with_the_merged_request() {
    let mut bench = Bench::stopped("noop");
    bench.plug();
    bench.submit("W108");
    let plugged = bench.plug.take();
    // Meanwhile others queue these; W900 is cached, so that W92 is not tried as a front merge.
    bench.submit("W900 W100 R5 W92 W116");
    bench.plug = plugged;
    bench.unplug();
    assert_eq!(bench.serve(), "W900+8 R5+8 W92+24 W116+8", "what is behind is not looked for");
    bench.assert_empty();
}

#[test]
fn requests_of_different_priority_merge_and_the_smaller_value_holds() {
    let prio = |class, text| Bio { ioprio: IoPriority::new(class, 3), ..bio(text) };
    for scheduler in LEGACY_SCHEDULERS {
        let mut bench = Bench::stopped(scheduler);
        bench.submit_as(1, prio(PriorityClass::BestEffort, "W100"));
        bench.submit_as(1, prio(PriorityClass::RealTime, "W108"));
        bench.submit_as(1, prio(PriorityClass::Idle, "W116"));
        bench.queue.set_stopped(false);
        bench.run();
        let rq = bench.driver.in_flight.front().unwrap();
        assert_eq!((rq.sectors, rq.ioprio), (24, IoPriority::new(PriorityClass::RealTime, 3)), "{scheduler}");
    }
}

#[test]
fn requests_of_different_cgroups_merge_but_under_cfq() {
    for (scheduler, requests) in [("noop", 1), ("deadline", 1), ("cfq", 2)] {
        let mut bench = Bench::stopped(scheduler);
        // Both async: one queue for all of a cgroup.
        bench.submit_as(1, bio("W100"));
        bench.submit_as(2, Bio { cgroup: CgroupId(1), ..bio("W108") });
        assert_eq!(bench.queue.requests_in_use(), requests, "{scheduler}");
    }
}

#[test]
fn at_insertion_cfq_joins_requests_of_one_queue_only() {
    for (task, expected) in [(1, "R100+16"), (2, "R100+8 R108+8")] {
        let mut bench = Bench::stopped("cfq");
        bench.submit_as(1, bio("R100"));
        bench.plug();
        bench.submit_as(task, bio("R108"));
        bench.unplug();
        bench.queue.set_stopped(false);
        bench.run();
        bench.complete_oldest();
        bench.pass(100);
        bench.call(|queue, cx, _| queue.timer(cx));
        bench.work();
        bench.run();
        assert_eq!(bench.calls(), expected);
    }
}

#[test]
fn a_request_in_the_dispatch_queue_never_merges() {
    for scheduler in ["noop", "deadline"] {
        let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, scheduler);
        // The second one has been looked at and waits for room at the device.
        bench.submit("W5000 W100");
        assert_eq!(bench.dispatch_queue(), [100]);
        bench.submit("W108 W92");
        assert_eq!(bench.serve(), "W5000+8 W100+8 W108+8 W92+8", "{scheduler}");
    }
}

#[test]
fn merging_keeps_the_earlier_place() {
    for (front_merges, expected) in [("1", "W92+24 W492+16"), ("0", "W92+24 W492+16")] {
        let mut bench = Bench::stopped("deadline");
        let now = bench.moment();
        bench.queue.set_tunable(now, "front_merges", front_merges, &mut bench.caller.effects).unwrap();
        bench.submit("W100 W500 W108 W492 W92");
        let served = bench.serve();
        if front_merges == "1" {
            assert_eq!(served, expected);
        } else {
            assert_eq!(served, "W92+24 W492+8 W500+8", "W100 is cached");
        }
    }
    let mut bench = Bench::stopped("deadline");
    for (bio, pause) in [("R116", 5), ("R900", 5), ("R100", 10), ("R108", 0)] {
        bench.submit(bio);
        bench.pass(pause);
    }
    assert_eq!(bench.serve(), "R100+24 R900+8");
}
