//! LQ-16, LQ-18, LQ-19, LQ-21, LQ-22, LQ-28, NOOP-7, DL-13, DL-14: the dispatch queue, and when the elevator is asked.

use hoistway_blk::ground::RqId;
use hoistway_blk::request::RequestPool;

use super::*;

/// Requests for a dispatch queue that nothing else touches.
struct Sorting {
    queue: DispatchQueue,
    pool: RequestPool<Local>,
    made: u32,
}

impl Sorting {
    fn from(end_sector: u64) -> Self {
        let mut sorting = Sorting { queue: DispatchQueue::default(), pool: RequestPool::new(16), made: 0 };
        let boundary = sorting.request(&format!("R{}", end_sector.saturating_sub(8)));
        sorting.queue.add_tail(boundary);
        sorting.queue.peek_head();
        sorting.queue.pop();
        sorting
    }

    fn request(&mut self, text: &str) -> Rq {
        let mut rq = self.pool.take(RqId(self.made));
        self.made += 1;
        rq.found(bio(text), Instant::ZERO);
        rq
    }

    fn sorted(&mut self, words: &str) -> Vec<u64> {
        for word in words.split_whitespace() {
            let rq = self.request(word);
            self.queue.add_sorted(rq);
        }
        self.queue.sectors()
    }
}

#[test]
fn sorted_dispatch_from_sector_1000_gives_1500_2000_100_500() {
    assert_eq!(Sorting::from(1000).sorted("R500 R2000 R1500 R100"), [1500, 2000, 100, 500]);
}

#[test]
fn equal_sectors_keep_their_order_of_arrival() {
    let mut sorting = Sorting::from(0);
    sorting.sorted("R100+8 R100+16 R50 R100+24");
    let lengths: Vec<u32> = std::iter::from_fn(|| sorting.queue.pop()).map(|rq| rq.sectors).collect();
    assert_eq!(lengths, [8, 8, 16, 24]);
}

#[test]
fn sorting_passes_no_started_request_no_barrier_and_no_other_kind() {
    for mark in [Marks::STARTED, Marks::SOFT_BARRIER] {
        let mut sorting = Sorting::from(0);
        let mut fixed = sorting.request("R500");
        fixed.marks.set(mark);
        sorting.queue.push_back(fixed);
        assert_eq!(sorting.sorted("R100 R50"), [500, 50, 100]);
    }
    assert_eq!(Sorting::from(0).sorted("R500 W400 R300 R200"), [500, 400, 200, 300]);
    assert_eq!(Sorting::from(0).sorted("W500 D400 W300"), [500, 400, 300]);
}

#[test]
fn tail_dispatch_keeps_order_and_moves_the_boundary() {
    let mut sorting = Sorting::from(0);
    for text in ["R500", "R100", "R300"] {
        let rq = sorting.request(text);
        sorting.queue.add_tail(rq);
    }
    assert_eq!((sorting.queue.sectors(), sorting.queue.end_sector()), (vec![500, 100, 300], Sector(308)));
    // Looking at what is not the boundary leaves it where it is.
    sorting.queue.peek_head();
    assert_eq!(sorting.queue.end_sector(), Sector(308));
    assert_eq!(sorting.sorted("R50 R400"), [400, 500, 50, 100, 300], "the sweep begins at 308");
}

#[test]
fn the_boundary_moves_with_each_look_of_the_driver() {
    let mut sorting = Sorting::from(0);
    sorting.sorted("R500 R600");
    sorting.queue.peek_head().unwrap().marks.set(Marks::STARTED);
    assert_eq!(sorting.queue.end_sector(), Sector(508));
    assert_eq!(sorting.sorted("R550 R10"), [500, 550, 600, 10]);
}

#[test]
fn the_elevator_is_asked_only_when_the_dispatch_queue_is_empty() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "noop");
    bench.submit("R100");
    bench.events();
    bench.submit("R200");
    assert_eq!(bench.events(), "Q200 G200 I200 ask:200 D200", "it is taken out and looked at, but there is no room");
    bench.submit("R300 R400");
    assert_eq!(bench.events(), "Q300 G300 I300 Q400 G400 I400", "none is asked while it waits");
    bench.complete_oldest();
    assert_eq!(bench.events(), "C100 ask:300 D300");
}

#[test]
fn the_issue_event_comes_once_at_the_first_look_and_again_after_a_requeue() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "noop");
    bench.submit("R100 R200");
    bench.run();
    bench.run();
    assert_eq!(bench.events().matches("D200").count(), 1);
    bench.complete_oldest();
    let rq = bench.driver.in_flight.pop_front().unwrap();
    bench.call(|queue, cx, _| queue.requeue(cx, rq));
    assert_eq!(bench.take_effects(), "run");
    bench.run();
    assert_eq!(bench.events(), "C100 ask:- R200 I200 D200 ask:-");
}

#[test]
fn a_requeued_request_is_at_the_head_and_nothing_is_sorted_past_it() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "noop");
    bench.submit("R500 R400 R300");
    bench.queue.set_stopped(true);
    let rq = bench.driver.in_flight.pop_front().unwrap();
    bench.call(|queue, cx, _| queue.requeue(cx, rq));
    assert_eq!(bench.dispatch_queue(), [500, 400]);
    bench.calls();
    assert_eq!(bench.serve(), "R500+8 R400+8 R300+8");
}

#[test]
fn a_back_insertion_drains_the_elevator_in_runs_of_one_direction() {
    let mut bench = Bench::stopped("noop");
    bench.submit("R300 R100 W50 R200");
    // A request without a manager, as during a change of scheduler, is inserted at the back.
    bench.queue.locked.aside(|queue| queue.bypasses = 1);
    bench.submit("W7000");
    assert_eq!(bench.dispatch_queue(), [100, 300, 50, 200, 7000]);
    bench.submit("R1");
    assert_eq!(bench.dispatch_queue(), [100, 300, 50, 200, 7000, 1], "nothing passes a barrier");
}

#[test]
fn a_back_insertion_empties_every_elevator_and_runs_the_queue_at_once() {
    for scheduler in LEGACY_SCHEDULERS {
        let mut bench = Bench::stopped(scheduler);
        for task in 1..6 {
            bench.submit_as(task, bio(&format!("R{}", 1000 - 100 * task)));
        }
        bench.queue.locked.aside(|queue| queue.bypasses = 1);
        bench.queue.set_stopped(false);
        bench.submit("W5");
        let calls = bench.calls();
        assert!(calls.split(' ').count() == 6 && calls.ends_with("W5+8"), "{scheduler}: {calls}");
    }
}

#[test]
fn a_sweep_and_a_restart() {
    let mut bench = Bench::with(LegacyConfig { queue_depth: 1, ..config(Kernel::V4_12) }, "deadline");
    bench.queue.set_stopped(true);
    bench.submit("R100 R50 R200 R150");
    assert_eq!(bench.serve(), "R100+8 R150+8 R200+8 R50+8");
}

#[test]
fn deadline_needs_no_timer_and_noop_no_tunable() {
    let mut bench = Bench::stopped("deadline");
    bench.submit("R100 W200 R300");
    bench.pass(10_000);
    bench.serve();
    assert_eq!(bench.take_effects(), "");
    let mut bench = Bench::new("noop");
    assert!(bench.queue.tunables().is_empty());
    let now = bench.moment();
    let set = bench.queue.set_tunable(now, "fifo_batch", "1", &mut bench.caller.effects);
    assert_eq!(set, Err(StoreError::Unknown));
}

#[test]
fn deadlines_files_are_the_five_of_the_legacy_scheduler_and_values_are_clamped() {
    let mut bench = Bench::new("deadline");
    let files: Vec<&str> = bench.queue.tunables().iter().map(|tunable| tunable.name).collect();
    assert_eq!(files, ["read_expire", "write_expire", "writes_starved", "front_merges", "fifo_batch"]);
    let now = bench.moment();
    for (text, value) in [("-5", 0), ("garbage", 0), ("12 and more", 12)] {
        bench.queue.set_tunable(now, "fifo_batch", text, &mut bench.caller.effects).unwrap();
        assert_eq!(bench.queue.tunable("fifo_batch"), Ok(value), "{text}");
    }
}
