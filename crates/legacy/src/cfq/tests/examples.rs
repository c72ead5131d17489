//! The worked examples: whole runs, turn by turn.
//!
//! Rules: CFQ-49, CFQ-51, CFQ-53, CFQ-76.

use hoistway_blk::bio::PriorityClass;
use hoistway_blk::ground::CgroupId;
use hoistway_blk::policy::{Scheduler, SchedulerEvent};

use super::*;

#[test]
fn three_levels_get_slices_and_turns_by_their_level() {
    let mut bench = Bench::new(1);
    for (pid, level) in [(10, 0), (14, 4), (17, 7)] {
        bench.add(Job::new(pid, 8).level(level));
    }
    bench.run_until(6_500 * MS);
    let expected = [
        (181, 10),
        (283, 14),
        (325, 17),
        (507, 10),
        (609, 14),
        (791, 10),
        (833, 17),
        (935, 14),
        (1117, 10),
        (1219, 14),
        (1261, 17),
    ];
    assert_eq!(bench.turns_ms()[..11], expected);
    assert_eq!([10, 14, 17].map(|pid| bench.count(pid)), [3822, 2090, 588]);
}

#[test]
fn two_streams_alternate_and_each_switch_waits_for_the_tail_of_the_other() {
    let mut bench = Bench::new(31);
    bench.add(Job::new(1, 16));
    bench.add(Job { start: US, ..Job::new(2, 16) });
    bench.run_until(1_000 * MS);
    assert_eq!(bench.turns_ms()[..4], [(101, 1), (205, 2), (309, 1), (413, 2)]);
    assert!(bench.dispatched[..16].iter().all(|&(time, pid)| (time, pid) == (0, 1)), "alone, everything goes out");
}

#[test]
fn late_in_a_slice_fewer_requests_are_out() {
    let mut bench = Bench::new(31);
    bench.add(Job::new(1, 16));
    bench.add(Job { start: US, ..Job::new(2, 16) });
    let mut profile = Vec::new();
    for ms in [102, 106, 148, 153, 161, 169, 177] {
        bench.run_until(ms * MS - 10 * US);
        profile.push(bench.queue(2).in_flight);
    }
    assert_eq!(profile, [4, 8, 8, 7, 6, 5, 4]);
}

#[test]
fn cfq_idles_for_a_reader_that_is_about_to_continue() {
    let mut bench = Bench::new(1);
    bench.add(Job { think: MS, ..Job::new(1, 1) });
    bench.add(Job { start: 100 * US, ..Job::new(2, 8) });
    bench.run_until(1_000 * MS);
    assert_eq!(bench.turns_ms()[..3], [(101, 1), (202, 2), (304, 1)]);
    assert_eq!((bench.count(1), bench.count(2)), (255, 495));
}

#[test]
fn a_slow_thinker_loses_its_idle_window() {
    let mut bench = Bench::new(1);
    bench.add(Job { think: 20 * MS, ..Job::new(1, 1) });
    bench.add(Job { start: 100 * US, ..Job::new(2, 8) });
    bench.run_until(1_200 * MS);
    assert_eq!(bench.turns_ms()[..3], [(9, 1), (110, 2), (120, 1)]);
    let latencies = bench.completed.iter().filter(|(_, pid, _)| *pid == 1).map(|(_, _, latency)| latency / MS);
    assert_eq!(latencies.take(7).collect::<Vec<_>>(), [1, 91, 91, 184, 192, 192, 184]);
    assert!(!bench.queue(1).idle_window);
}

#[test]
fn a_sync_read_preempts_async_writes_but_waits_for_those_that_are_out() {
    let mut bench = Bench::new(31);
    bench.add(Job { count: 40, ..Job::new(1, 40).asynchronous() });
    bench.add(Job { start: 5 * MS, count: 1, ..Job::new(2, 1) });
    bench.run_until(200 * MS);
    let writes_at = |ms: u64| bench.dispatched.iter().filter(|&&(time, pid)| pid == 1 && time / MS == ms).count();
    assert_eq!([0, 1, 2, 3, 4].map(writes_at), [10, 1, 1, 1, 1], "ten at first, then one for one");
    let read = bench.dispatched.iter().find(|(_, pid)| *pid == 2);
    assert_eq!(read, Some(&(14 * MS, 2)));
    assert_eq!(bench.residuals(1), [36_000]);
    assert_eq!(writes_at(23), 10, "the idle timer has come");
    assert_eq!(bench.turns_ms()[..2], [(5, 1), (23, 2)]);
}

#[test]
fn class_idle_gets_nothing_while_other_classes_are_busy() {
    let mut bench = Bench::new(1);
    bench.add(Job::new(1, 4).class(PriorityClass::Idle, 7));
    bench.add(Job { start: 2_500 * US, stop: 1_002_500 * US, ..Job::new(2, 4) });
    bench.run_until(1_100 * MS);
    let runs = bench.dispatch_runs();
    assert_eq!(runs.len(), 3, "{runs:?}");
    assert_eq!((runs[0].0, runs[1].0, runs[2].0), (1, 2, 1));
    assert!(runs[1].1.abs_diff(1_000) <= 4, "{runs:?}");
}

#[test]
fn real_time_takes_the_device_at_once_and_keeps_it() {
    let mut bench = Bench::new(1);
    bench.add(Job::new(1, 4));
    let thinker = Job { start: 10_200 * US, stop: 40 * MS, think: 2 * MS, ..Job::new(2, 1) };
    bench.add(thinker.class(PriorityClass::RealTime, 4));
    bench.run_until(60 * MS);
    let latencies: Vec<u64> = bench.completed.iter().filter(|(_, pid, _)| *pid == 2).map(|done| done.2 / US).collect();
    assert_eq!(latencies, [2800, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000]);
    assert_eq!(bench.turns_ms(), [(10, 1), (48, 2)]);
    assert!(bench.count(1).abs_diff(24) <= 1);
    assert_eq!(bench.residuals(1), [90_800], "what was left of the slice is kept");
}

fn two_groups(mut bench: Bench, job: Job) -> Bench {
    bench.call(|policy, cx| {
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(1), weight: 1000 });
        policy.on_event(cx, SchedulerEvent::Weight { cgroup: CgroupId(2), weight: 500 });
    });
    for pid in [1, 2] {
        bench.add(Job { pid, sector: u64::from(pid) << 24, cgroup: CgroupId(pid), ..job });
    }
    bench.run_until(6_000 * MS);
    bench
}

#[test]
fn groups_share_time_by_weight() {
    let bench = two_groups(Bench::new(31), Job::new(0, 16));
    let expected = [(101, 1), (205, 2), (309, 1), (410, 1), (514, 2), (618, 1)];
    assert_eq!(bench.turns_ms()[..6], expected);
    assert_eq!((bench.count(1), bench.count(2)), (3999, 2001));
}

#[test]
fn groups_share_requests_by_weight_on_flash() {
    let bench = two_groups(Bench::flash(31), Job::new(0, 16));
    assert_eq!((bench.count(1), bench.count(2)), (3971, 2029));
}

#[test]
fn among_noidle_queues_the_newest_arrival_goes_first() {
    let mut bench = Bench::flash(1);
    bench.set("group_idle", "0");
    for (pid, start) in [(1, 0), (2, 10), (3, 20), (4, 300), (5, 1_500)] {
        bench.add(Job { start: start * US, count: 1, sectors: 8, ..Job::new(pid, 1) });
    }
    bench.run_until(20 * MS);
    let order: Vec<u32> = bench.dispatched.iter().map(|&(_, pid)| pid).collect();
    assert_eq!(order, [1, 2, 3, 5, 4]);
}

#[test]
fn async_queues_take_turns_of_capped_length() {
    let mut bench = Bench::new(31);
    bench.add(Job::new(1, 64).level(0).asynchronous());
    bench.add(Job::new(2, 64).level(7).asynchronous());
    bench.run_until(2_000 * MS);
    assert_eq!(bench.dispatch_runs()[..6], [(1, 32), (2, 4), (1, 64), (2, 4), (1, 64), (2, 4)]);
    assert_eq!((bench.count(1), bench.count(2)), (1884, 116));
}

#[test]
fn an_expired_request_is_rescued_at_the_start_of_a_turn() {
    let mut bench = Bench::new(1);
    bench.add(Job::new(1, 8));
    bench.add(Job { start: 500 * US, count: 1, sector: 100, ..Job::new(1, 1) });
    bench.run_until(400 * MS);
    let straggler = bench.completed.iter().find(|(_, _, latency)| *latency > 20 * MS).expect("a straggler");
    // Given out at 202 ms, with one request before it at the device.
    assert_eq!(straggler.0 / MS, 204);
}

#[test]
fn device_queueing_is_judged_by_enough_requests_of_non_idling_queues() {
    let verdict = |depth, readers: u32, random: bool, until: u64| {
        let mut bench = Bench::new(depth);
        for pid in 1..=readers {
            let job = Job::new(pid, 1);
            bench.add(if random { Job { step: 1_000_000, ..job } } else { job });
        }
        bench.run_until(until * MS);
        bench.policy.depth.verdict
    };
    assert_eq!(verdict(31, 1, false, 2_000), None, "one process never has enough");
    assert_eq!(verdict(1, 8, true, 2_000), Some(false));
    assert_eq!(verdict(1, 8, false, 2_000), None, "each of these is waited for");
    assert_eq!(verdict(31, 8, true, 2_000), Some(true));
}

#[test]
fn the_only_queue_of_a_group_is_waited_for_so_that_weights_count() {
    for slice_idle in ["8", "0"] {
        let mut bench = Bench::new(1);
        bench.set("slice_idle", slice_idle);
        let bench = two_groups(bench, Job { think: MS, ..Job::new(0, 1) });
        assert_eq!(bench.turns_ms()[..3], [(98, 1), (196, 2), (294, 1)]);
        assert_eq!((bench.count(1), bench.count(2)), (2009, 991), "slice_idle {slice_idle}");
    }
    let mut bench = Bench::new(1);
    bench.set("slice_idle", "0");
    bench.set("group_idle", "0");
    let bench = two_groups(bench, Job { think: MS, ..Job::new(0, 1) });
    assert_eq!((bench.count(1), bench.count(2)), (3000, 3000), "weights are lost without a backlog");
}

/// When each of 32 writers, which start 5 ms apart, has written its 10 MB to a disk of 110 MB/s. Sorted, ms.
fn dd_test(low_latency: &str) -> Vec<u64> {
    let mut bench = Bench::new(1);
    bench.set("low_latency", low_latency);
    (bench.service, bench.jump, bench.transfer) = (0, 9 * MS, 4_655);
    for pid in 1..=32 {
        let start = u64::from(pid) * 5 * MS;
        let flags = hoistway_blk::bio::BioFlags::SYNC;
        bench.add(Job { start, count: 20, step: 1024, sectors: 1024, flags, ..Job::new(pid, 8).asynchronous() });
    }
    bench.run_until(10_000 * MS);
    let last = |pid| bench.completed.iter().filter(|done| done.1 == pid).map(|done| done.0 / MS).max();
    let mut ends: Vec<u64> = (1..=32).map(|pid| last(pid).expect("it has ended")).collect();
    ends.sort_unstable();
    ends
}

#[test]
fn many_writers_end_together_with_low_latency_and_one_by_one_without() {
    let ends = dd_test("1");
    let (second, median, last) = (ends[1], ends[16], ends[31]);
    // The first one was early because it was alone.
    assert!(10 * (last - second) <= 5 * last && 10 * median >= 8 * last, "{ends:?}");
    let ends = dd_test("0");
    assert!(ends[31] >= 4 * ends[0], "{ends:?}");
    let steps = ends.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(steps.into_iter().all(|step| step.abs_diff(104) <= 21), "{ends:?}");
}
