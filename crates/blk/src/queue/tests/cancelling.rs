//! Clients that depart: a submission can be taken back wherever it waits, and no other waits for it then.

use super::wbt::{background, four};
use super::*;
use crate::caller::block_queue::Submission as _;
use crate::caller::submitter::Submitter;

fn depth(queue_depth: u32) -> QueueConfig {
    QueueConfig { queue_depth, ..config(Kernel::V6_18) }
}

impl Bench {
    /// The client behind this waiter departs; returns what it gets back: first sector, and length.
    fn depart(&mut self, waiter: u32) -> Option<(u64, u32)> {
        let mut submission = self.parked.remove(&waiter).expect("it waits");
        let bio = self.call(|queue, cx, _| queue.cancel(cx, &mut submission));
        assert_eq!(
            self.call(|queue, cx, _| queue.submit(cx, &mut submission, None)),
            Submitted::Done,
            "nothing is left"
        );
        bio.map(|bio| (bio.sector.0, bio.sectors))
    }

    /// A freeze begins and must end with what is at the driver.
    fn assert_freeze_ends(&mut self, what: &str) {
        self.call(|queue, cx, _| queue.freeze(cx));
        self.work();
        while !self.driver.in_flight.is_empty() {
            self.complete_all();
            self.work();
        }
        assert!(self.queue.is_drained(), "{what}");
        self.call(|queue, cx, _| queue.unfreeze(cx));
        self.drain();
    }
}

#[test]
fn an_unsubmitted_bio_is_withdrawn_once_and_a_parked_one_only_cancelled() {
    let withdrawn = |submission: &mut QueueSubmission| submission.withdraw().map(|bio| bio.sector.0);
    let mut fresh = QueueSubmission::new(read(8), Waiter(1));
    assert_eq!([withdrawn(&mut fresh), withdrawn(&mut fresh)], [Some(8), None]);
    let mut bench = Bench::with(&depth(1), "none");
    bench.occupy(1);
    assert_eq!(bench.submit_as(1, read(100)), Submitted::Parked);
    assert_eq!(withdrawn(bench.parked.get_mut(&1).unwrap()), None);
    assert_eq!(bench.depart(1), Some((100, 8)));
    bench.drain();
}

#[test]
fn with_none_at_depth_1_a_sleeper_that_departs_after_its_wake_up_wakes_the_next_one() {
    let mut bench = Bench::with(&depth(1), "none");
    bench.occupy(1);
    for waiter in [1, 2] {
        assert_eq!(bench.submit_as(waiter, read(u64::from(waiter) * 100)), Submitted::Parked);
    }
    bench.complete(1_000_000);
    assert_eq!(bench.asked(), ["end 1000000", "wake 1"]);
    assert_eq!(bench.depart(1), Some((100, 8)));
    assert_eq!(bench.asked(), ["wake 2"]);
    let submission = bench.parked.remove(&2).unwrap();
    assert_eq!(bench.make_progress(2, submission), Submitted::Done);
    bench.drain();
    assert_eq!(bench.ended, [(1_000_000, Status::Ok), (200, Status::Ok)]);
}

#[test]
fn a_sleeper_that_departs_before_its_wake_up_leaves_that_to_the_next_one() {
    let mut bench = Bench::with(&depth(1), "none");
    bench.occupy(1);
    for waiter in [1, 2] {
        bench.submit_as(waiter, read(u64::from(waiter) * 100));
    }
    assert_eq!(bench.depart(1), Some((100, 8)));
    bench.complete(1_000_000);
    assert_eq!(bench.asked(), ["end 1000000", "wake 2"]);
}

#[test]
fn a_freeze_ends_after_a_departure_under_every_scheduler() {
    for scheduler in SCHEDULERS {
        for is_woken in [false, true] {
            let mut bench = Bench::with(&QueueConfig { nr_requests: Some(4), ..depth(4) }, scheduler);
            bench.queue.set_quiesced(true);
            let sleeper = (1..).find(|&n| bench.submit_as(n, read(u64::from(n) * 100)) == Submitted::Parked).unwrap();
            bench.queue.set_quiesced(false);
            bench.run(0);
            if is_woken {
                bench.complete_all();
            }
            assert_eq!(bench.depart(sleeper), Some((u64::from(sleeper) * 100, 8)), "{scheduler}");
            bench.assert_freeze_ends(scheduler);
        }
    }
}

#[test]
fn a_waiter_that_departs_during_a_freeze_is_not_woken_at_unfreeze() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.call(|queue, cx, _| queue.freeze(cx));
    for waiter in [1, 2] {
        assert_eq!(bench.submit_as(waiter, read(u64::from(waiter) * 100)), Submitted::Parked);
    }
    assert_eq!(bench.depart(1), Some((100, 8)));
    bench.asked();
    bench.call(|queue, cx, _| queue.unfreeze(cx));
    assert_eq!(bench.asked(), ["wake 2"]);
    assert_eq!(bench.depart(2), Some((200, 8)), "let in, and not there yet");
    bench.assert_freeze_ends("none is inside");
}

#[test]
fn a_departed_write_back_waiter_no_longer_counts() {
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let mut bench = four(Kernel::V6_18, scheduler);
        for waiter in 1..=3 {
            assert_eq!(bench.submit_as(waiter, background(300 + 100 * u64::from(waiter))), Submitted::Parked);
        }
        assert_eq!(bench.depart(1), Some((400, 8)), "{scheduler}: not woken");
        bench.complete(0);
        assert!(bench.asked().contains(&"wake 2".to_owned()), "{scheduler}");
        assert_eq!(bench.queue.throttled_in_flight(), 4, "{scheduler}: the woken one counts");
        assert_eq!(bench.depart(2), Some((500, 8)), "{scheduler}");
        assert_eq!(bench.queue.throttled_in_flight(), 4, "{scheduler}: the last one has its place");
        bench.work();
        assert!(bench.parked.is_empty(), "{scheduler}");
        bench.assert_freeze_ends(scheduler);
        assert_eq!(bench.queue.throttled_in_flight(), 0, "{scheduler}");
    }
}

#[test]
fn write_back_that_departs_while_it_sleeps_for_a_tag_no_longer_counts() {
    let mut bench = Bench::throttled(&depth(2), "none");
    bench.occupy(2);
    assert_eq!(bench.submit_as(1, background(100)), Submitted::Parked);
    assert_eq!(bench.queue.throttled_in_flight(), 1);
    assert_eq!(bench.submit_as(2, background(200)), Submitted::Parked);
    assert_eq!(bench.depart(1), Some((100, 8)));
    assert_eq!(bench.asked(), ["wake 2"], "who waited for it to end");
    assert_eq!(bench.depart(2), Some((200, 8)));
    assert_eq!(bench.queue.throttled_in_flight(), 0);
    bench.assert_freeze_ends("two are at the driver");
}

#[test]
fn the_unsubmitted_rest_of_a_cancelled_bio_is_returned_in_one_piece() {
    let limits = Limits { max_sectors: 8, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..depth(1) }, "none");
    assert_eq!(bench.submit_as(1, Bio::new(Op::Write, Sector(0), 28)), Submitted::Parked);
    let mut submission = bench.parked.remove(&1).unwrap();
    let left = bench.call(|queue, cx, _| queue.cancel(cx, &mut submission)).unwrap();
    assert_eq!((left.sector.0, left.sectors, left.flags), (8, 20, BioFlags::NONE));
    bench.drain();
    assert_eq!(bench.ended, [(0, Status::Ok)]);
    // It can be handed in again, with the same submission.
    submission.begin(left);
    bench.make_progress(1, submission);
    bench.drain();
    assert_eq!(bench.ended, [0, 8, 16, 24].map(|sector| (sector, Status::Ok)));
}

#[test]
fn cancelling_returns_a_bio_not_yet_entered_but_not_one_submitted() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    let mut submission = QueueSubmission::new(read(8), Waiter(1));
    assert_eq!(bench.call(|queue, cx, _| queue.cancel(cx, &mut submission)), Some(read(8)));
    submission.begin(read(16));
    bench.call(|queue, cx, _| queue.submit(cx, &mut submission, None));
    assert_eq!(bench.call(|queue, cx, _| queue.cancel(cx, &mut submission)), None);
    bench.assert_freeze_ends("one is at the driver");
    assert_eq!(bench.ended, [(16, Status::Ok)]);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "submission of waiter 1 is dropped")]
fn a_submission_that_is_dropped_while_it_waits_inside_is_reported() {
    let mut bench = Bench::with(&depth(1), "none");
    bench.occupy(1);
    bench.submit_as(1, read(100));
    bench.parked.clear();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "submission of waiter 1 is dropped")]
fn a_submission_dropped_while_the_queue_is_frozen_is_reported() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.call(|queue, cx, _| queue.freeze(cx));
    bench.submit_as(1, read(100));
    bench.parked.clear();
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "request 0 is dropped")]
fn a_request_that_a_driver_drops_is_reported() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.occupy(1);
    bench.driver.in_flight.clear();
}

#[test]
fn a_submitter_returns_a_bio_that_it_has_not_submitted() {
    let mut bench = Bench::with(&depth(1), "none");
    let mut submitter = Submitter::new(&bench.queue, Waiter(1));
    submitter.begin(read(8));
    let withdrawn = |submitter: &mut Submitter<Queue<Local>>| submitter.withdraw().map(|bio| bio.sector.0);
    assert_eq!([withdrawn(&mut submitter), withdrawn(&mut submitter)], [Some(8), None]);
    bench.occupy(1);
    submitter.begin(read(100));
    assert_eq!(bench.call(|queue, cx, _| submitter.make_progress(queue, cx)), Submitted::Parked);
    assert_eq!(withdrawn(&mut submitter), None, "it sleeps with it");
    assert_eq!(bench.call(|queue, cx, _| submitter.cancel(queue, cx)).map(|bio| bio.sector.0), Some(100));
    bench.drain();
}
