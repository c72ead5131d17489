//! Write-back throttling on the way of a request: BL-101, BL-102, BL-107, BL-109, BL-115, BL-119 to BL-125.

use super::*;
use crate::sysfs::AttributeError;

const DIRECT: BioFlags = BioFlags::SYNC.with(BioFlags::IDLE);

/// A bio of background write-back: 4 of them may be in flight.
pub(super) fn background(sector: u64) -> Bio {
    Bio { flags: BioFlags::BACKGROUND, ..write(sector) }
}

/// Four of them at the driver, at the sectors 0 to 300.
pub(super) fn four(kernel: Kernel, scheduler: &str) -> Bench {
    let mut bench = Bench::throttled(&config(kernel), scheduler);
    (0..4).for_each(|n| assert_eq!(bench.submit(background(n * 100)), Submitted::Done, "{scheduler}"));
    bench.work();
    assert_eq!(bench.issued(), [0, 100, 200, 300], "{scheduler}");
    bench
}

impl Bench {
    pub(super) fn throttled(config: &QueueConfig, scheduler: &str) -> Bench {
        Bench { queue: Queue::new(config, scheduler).expect("a valid configuration"), ..Bench::with(config, scheduler) }
    }

    /// The end of the window that has been asked for.
    fn window(&mut self) -> Option<Instant> {
        self.work();
        self.agenda.cancel(Due::Window)
    }

    fn target(&self) -> String {
        self.queue.attribute("wbt_lat_usec").unwrap()
    }

    fn set_target(&mut self, text: &str) -> Result<(), AttributeError> {
        let now = Hz(1000).now(self.now);
        let answer = self.queue.set_attribute(now, "wbt_lat_usec", text, &mut self.caller.effects);
        self.work();
        answer
    }
}

#[test]
fn direct_writes_and_reads_overtake_throttled_write_back() {
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let mut bench = four(Kernel::V6_18, scheduler);
        assert_eq!(bench.submit_as(1, background(400)), Submitted::Parked, "{scheduler}");
        for n in 0..10 {
            assert_eq!(bench.submit(Bio { flags: DIRECT, ..write(1000 + n * 100) }), Submitted::Done, "{scheduler}");
            assert_eq!(bench.submit(read(5000 + n * 100)), Submitted::Done, "{scheduler}");
        }
        assert_eq!((bench.queue.throttled_in_flight(), bench.parked.len()), (4, 1), "{scheduler}");
        bench.drain();
        assert_eq!((bench.queue.throttled_in_flight(), bench.ended.len()), (0, 25), "{scheduler}");
    }
}

#[test]
fn under_bfq_and_in_4_4_no_write_back_is_throttled() {
    for (kernel, scheduler) in [(Kernel::V6_18, "bfq"), (Kernel::V4_4, "none")] {
        let mut bench = Bench::throttled(&config(kernel), scheduler);
        (0..20).for_each(|n| assert_eq!(bench.submit(background(n * 100)), Submitted::Done, "{scheduler}"));
        assert_eq!((bench.queue.throttled_in_flight(), bench.window()), (0, None));
        bench.drain();
    }
}

#[test]
fn a_throttled_writer_holds_no_tag_and_continues_when_enough_have_ended() {
    let mut bench = four(Kernel::V6_18, "none");
    for waiter in 1..=3 {
        assert_eq!(bench.submit_as(waiter, background(300 + 100 * u64::from(waiter))), Submitted::Parked);
    }
    assert_eq!(bench.queue.requests_in_use(), 4, "there are tags for 32");
    // The normal limit is 8: more than half of 4 below it.
    bench.complete(0);
    assert_eq!(bench.queue.throttled_in_flight(), 4, "the first of the line is counted already");
    bench.work();
    assert_eq!(bench.issued(), [400]);
    assert_eq!(bench.parked.keys().copied().collect::<Vec<_>>(), [2, 3]);
    bench.drain();
}

#[test]
fn a_throttled_waiter_that_retries_without_a_wake_up_waits_again() {
    let mut bench = four(Kernel::V6_18, "none");
    bench.submit_as(1, background(400));
    let submission = bench.parked.remove(&1).unwrap();
    assert_eq!(bench.make_progress(1, submission), Submitted::Parked);
    assert_eq!((bench.queue.throttled_in_flight(), bench.issued()), (4, vec![]));
    bench.drain();
}

#[test]
fn plugged_requests_are_issued_before_a_throttled_task_sleeps() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = Bench::throttled(&config(Kernel::V6_18), scheduler);
        bench.plug();
        (0..4).for_each(|n| assert_eq!(bench.submit_as(1, background(n * 100)), Submitted::Done));
        assert_eq!(bench.issued(), []);
        assert_eq!(bench.submit_as(1, background(400)), Submitted::Parked);
        bench.work();
        let mut issued = bench.issued();
        issued.sort_unstable();
        assert_eq!(issued, [0, 100, 200, 300], "{scheduler}: else nothing would ever wake it");
        bench.complete_all();
        bench.work();
        bench.unplug();
        bench.drain();
        assert_eq!(bench.ended.len(), 5);
    }
}

#[test]
fn a_merged_bio_is_not_counted_and_an_absorbed_request_no_longer_is() {
    let mut bench = Bench::throttled(&config(Kernel::V6_18), "mq-deadline");
    bench.queue.set_quiesced(true);
    bench.submit(background(0));
    bench.submit(background(8));
    assert_eq!(bench.queue.throttled_in_flight(), 1, "joined the first");
    bench.submit(background(24));
    assert_eq!(bench.queue.throttled_in_flight(), 2);
    bench.submit(background(16));
    assert_eq!((bench.queue.throttled_in_flight(), bench.queue.requests_in_use()), (1, 1), "closes the gap");
    bench.queue.set_quiesced(false);
    bench.run(0);
    bench.drain();
    assert_eq!((bench.queue.throttled_in_flight(), bench.ended.len()), (0, 4));
}

#[test]
fn a_requeued_request_still_counts() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = four(Kernel::V6_18, scheduler);
        let rq = bench.take(100);
        bench.call(|queue, cx, _| queue.requeue(cx, rq));
        assert_eq!(bench.queue.throttled_in_flight(), 4, "{scheduler}");
        bench.work();
        assert_eq!((bench.queue.throttled_in_flight(), bench.issued()), (4, vec![100]), "{scheduler}");
        bench.drain();
        assert_eq!(bench.queue.throttled_in_flight(), 0, "{scheduler}");
    }
}

#[test]
fn a_nowait_write_fails_instead_of_waiting_and_returns_its_count() {
    let nowait = |sector| Bio { flags: BioFlags::BACKGROUND.with(BioFlags::NOWAIT), ..write(sector) };
    let mut bench = four(Kernel::V6_18, "none");
    assert_eq!(bench.submit(nowait(400)), Submitted::Done);
    bench.work();
    assert_eq!(bench.ended, [(400, Status::Again)]);
    bench.drain();

    let mut bench = Bench::throttled(&QueueConfig { queue_depth: 2, ..config(Kernel::V6_18) }, "none");
    bench.occupy(2);
    bench.submit(nowait(0));
    bench.work();
    assert_eq!((bench.ended.clone(), bench.queue.throttled_in_flight()), (vec![(0, Status::Again)], 0));
    bench.drain();
}

#[test]
fn every_part_of_a_split_bio_is_counted() {
    let limits = Limits { max_sectors: 8, ..Limits::default() };
    let mut bench = Bench::throttled(&QueueConfig { limits, merging: Merging::Off, ..config(Kernel::V6_18) }, "none");
    assert_eq!(bench.submit_as(1, Bio { sectors: 48, ..background(0) }), Submitted::Parked);
    assert_eq!((bench.queue.throttled_in_flight(), bench.issued()), (4, vec![0, 8, 16, 24]));
    bench.drain();
    assert_eq!((bench.queue.throttled_in_flight(), bench.ended.len()), (0, 6));
}

#[test]
fn a_durable_write_is_counted_once_through_its_whole_sequence() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = Bench::throttled(&QueueConfig { limits: limits.clone(), ..config(Kernel::V6_18) }, scheduler);
        for (n, flags) in
            [BioFlags::PREFLUSH, BioFlags::FUA, BioFlags::FUA.with(BioFlags::IDLE)].into_iter().enumerate()
        {
            bench.submit(Bio { flags, ..write(n as u64 * 100) });
        }
        assert_eq!(bench.queue.throttled_in_flight(), 3, "{scheduler}");
        bench.drain();
        assert_eq!((bench.queue.throttled_in_flight(), bench.ended.len()), (0, 3), "{scheduler}");
    }
}

#[test]
fn slow_reads_make_the_window_shorter_and_the_limit_smaller() {
    let mut bench = four(Kernel::V6_18, "none");
    assert_eq!(bench.window(), Some(Instant::ZERO + Nanos::from_millis(100)));
    bench.submit(read(5000));
    bench.now = Instant::ZERO + Nanos::from_millis(3);
    bench.complete(5000);
    [0, 100, 200].into_iter().for_each(|sector| bench.complete(sector));
    bench.now = Instant::ZERO + Nanos::from_millis(100);
    bench.call(|queue, cx, _| queue.wbt_window_expired(cx));
    let second = bench.now + Nanos(100_000_000 * 16 / 22);
    assert_eq!(bench.window(), Some(second));
    // One of the four is left, and half as many may be in flight now.
    assert_eq!(bench.submit(background(400)), Submitted::Done);
    assert_eq!(bench.submit_as(1, background(500)), Submitted::Parked);
    bench.drain();
    bench.now = second;
    bench.call(|queue, cx, _| queue.wbt_window_expired(cx));
    assert_eq!(bench.window(), None, "only writes have ended: the step is 0 again, and nothing is in flight");
}

#[test]
fn a_read_that_the_driver_keeps_for_longer_than_the_window_counts_as_slow() {
    let slow = |began_ms| {
        let mut bench = four(Kernel::V6_18, "none");
        bench.window();
        bench.now = Instant::ZERO + Nanos::from_millis(began_ms);
        bench.submit(read(5000));
        bench.now = Instant::ZERO + Nanos::from_millis(100);
        bench.call(|queue, cx, _| queue.wbt_window_expired(cx));
        let window = bench.window().map(|at| at.since(bench.now));
        bench.drain();
        window
    };
    assert_eq!(slow(97), Some(Nanos(100_000_000 * 16 / 22)), "3 ms without an answer, and the target is 2");
    assert_eq!(slow(99), Some(Nanos::from_millis(100)));
}

#[test]
fn the_oldest_read_at_the_driver_is_the_one_checked() {
    let mut bench = four(Kernel::V6_18, "none");
    bench.window();
    for began_ms in [97, 99] {
        bench.now = Instant::ZERO + Nanos::from_millis(began_ms);
        bench.submit(read(5000 + began_ms * 100));
    }
    bench.now = Instant::ZERO + Nanos::from_millis(100);
    bench.call(|queue, cx, _| queue.wbt_window_expired(cx));
    assert_eq!(bench.window(), Some(bench.now + Nanos(100_000_000 * 16 / 22)), "3 ms, and the target is 2");
    bench.drain();
}

#[test]
fn a_read_at_the_driver_lowers_the_limit_of_plain_writes_and_other_writes_do_not() {
    let mut bench = Bench::throttled(&config(Kernel::V6_18), "none");
    for n in 0..8 {
        assert_eq!(bench.submit(write(n * 100)), Submitted::Done);
        bench.work();
    }
    assert_eq!(bench.submit_as(1, write(800)), Submitted::Parked, "8 may be in flight");
    bench.drain();

    let mut bench = Bench::throttled(&config(Kernel::V6_18), "none");
    (0..4).for_each(|n| assert_eq!(bench.submit(write(n * 100)), Submitted::Done));
    assert_eq!(bench.submit(read(5000)), Submitted::Done);
    bench.work();
    assert_eq!(bench.submit_as(1, write(400)), Submitted::Parked, "as background now");
    bench.drain();
}

#[test]
fn a_device_with_a_write_cache_gets_no_more_before_all_have_ended() {
    for (write_cache, parked) in [(false, 0), (true, 1)] {
        let limits = Limits { write_cache, ..Limits::default() };
        let mut bench = Bench::throttled(&QueueConfig { limits, ..config(Kernel::V6_18) }, "none");
        (0..4).for_each(|n| assert_eq!(bench.submit(background(n * 100)), Submitted::Done));
        assert_eq!(bench.submit_as(1, background(400)), Submitted::Parked);
        (0..3).for_each(|n| bench.complete(n * 100));
        bench.work();
        assert_eq!(bench.parked.len(), parked, "write cache: {write_cache}");
        bench.complete(300);
        bench.work();
        assert_eq!(bench.parked.len(), 0);
        bench.drain();
    }
}

#[test]
fn dirty_throttling_raises_the_limit_until_a_second_after_it_ends() {
    let mut bench = four(Kernel::V6_18, "none");
    assert!(bench.window().is_some(), "which does not end here");
    bench.queue.set_dirty_throttled(bench.now, true);
    bench.now = Instant::ZERO + Nanos::from_secs(5);
    (4..16).for_each(|n| assert_eq!(bench.submit(background(n * 100)), Submitted::Done));
    assert_eq!(bench.submit_as(1, background(1600)), Submitted::Parked);
    bench.drain();

    bench.queue.set_dirty_throttled(bench.now, false);
    let note_sequential_read = bench.now;
    bench.now = note_sequential_read + Nanos::from_millis(999);
    (0..5).for_each(|n| assert_eq!(bench.submit(background(n * 100)), Submitted::Done));
    bench.drain();
    bench.now = note_sequential_read + Nanos::from_secs(1);
    (0..4).for_each(|n| assert_eq!(bench.submit(background(n * 100)), Submitted::Done));
    assert_eq!(bench.submit_as(1, background(400)), Submitted::Parked);
    bench.drain();
}

#[test]
fn the_target_is_by_rotation_and_reads_back_as_written() {
    for (rotational, default) in [(false, "2000\n"), (true, "75000\n")] {
        let limits = Limits { rotational, ..Limits::default() };
        let mut bench = Bench::throttled(&QueueConfig { limits, ..config(Kernel::V4_12) }, "none");
        assert_eq!(bench.target(), default);
        for (text, shown) in [("123", "123\n"), ("0\n", "0\n"), ("-1", default)] {
            bench.set_target(text).unwrap();
            assert_eq!(bench.target(), shown);
        }
        for text in ["-2", "", "x", "1.5", "99999999999999999999"] {
            assert_eq!(bench.set_target(text), Err(AttributeError::Invalid), "{text:?}");
        }
        assert_eq!(bench.target(), default);
    }
    let mut old = Bench::throttled(&config(Kernel::V4_4), "none");
    assert_eq!(old.queue.attribute("wbt_lat_usec"), Err(AttributeError::Unknown));
    assert_eq!(old.set_target("0"), Err(AttributeError::Unknown));
}

#[test]
fn bfq_disables_throttling_and_restores_it_unless_a_target_was_written() {
    for (written, under) in
        [(None, ["2000\n", "0\n", "2000\n"]), (Some("-1"), ["2000\n"; 3]), (Some("55"), ["55\n"; 3])]
    {
        let mut bench = Bench::throttled(&config(Kernel::V6_18), "none");
        if let Some(text) = written {
            bench.set_target(text).unwrap();
        }
        for (scheduler, shown) in ["mq-deadline", "bfq", "kyber"].into_iter().zip(under) {
            bench.switch(scheduler).unwrap();
            assert_eq!(bench.target(), shown, "{scheduler} after {written:?}");
        }
    }
}

#[test]
fn throttled_waiters_are_released_when_it_is_disabled_or_the_queue_freezes() {
    let mut bench = four(Kernel::V6_18, "none");
    (1..=6).for_each(|waiter| assert_eq!(bench.submit_as(waiter, background(1000)), Submitted::Parked));
    bench.set_target("0").unwrap();
    assert!(bench.parked.is_empty());
    bench.drain();

    let mut bench = four(Kernel::V6_18, "none");
    (1..=6).for_each(|waiter| assert_eq!(bench.submit_as(waiter, background(1000)), Submitted::Parked));
    bench.switch("mq-deadline").unwrap();
    assert_eq!((bench.ended.len(), bench.parked.len(), bench.queue.throttled_in_flight()), (10, 0, 0));
}

#[test]
fn a_throttled_waiter_finds_its_plug_clock_running_again() {
    let mut bench = four(Kernel::V6_18, "none");
    bench.plug();
    let plugged = |bench: &mut Bench, now: u64| {
        let now = Hz(1000).now(Instant(now));
        bench.call(|queue, _, plug| plug.expect("a plug is open").now(queue.generation(), now).at)
    };
    assert_eq!([5, 9].map(|now| plugged(&mut bench, now)), [Instant(5); 2], "it stands");
    assert_eq!(bench.submit_as(1, background(400)), Submitted::Parked);
    assert_eq!(plugged(&mut bench, 20), Instant(20));
    bench.unplug();
    bench.drain();
}
