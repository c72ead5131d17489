//! Flush and FUA: BL-5 to BL-8, BL-71, BL-72, BL-108, BL-110 to BL-115.

use super::*;

const PRE: BioFlags = BioFlags::PREFLUSH;
const FUA: BioFlags = BioFlags::FUA;

/// A queue over a device with a write cache, or with FUA support too.
fn cached(kernel: Kernel, scheduler: &str, fua: bool) -> Bench {
    let limits = Limits { write_cache: true, fua, ..Limits::default() };
    Bench::with(&QueueConfig { limits, ..config(kernel) }, scheduler)
}

fn fsync() -> Bio {
    Bio { sectors: 0, flags: PRE.with(BioFlags::SYNC), ..write(0) }
}

fn durable(sector: u64, flags: BioFlags) -> Bio {
    Bio { flags, ..write(sector) }
}

impl Bench {
    /// What is at the driver: `F` for a flush command, else the sector, with `!` for FUA.
    fn at_driver(&self) -> Vec<String> {
        let show = |rq: &Rq| match rq.op {
            Op::Flush => "F".to_string(),
            _ => format!("{}{}", rq.sector.0, if rq.flags.contains(FUA) { "!" } else { "" }),
        };
        self.driver.in_flight.iter().map(show).collect()
    }

    /// Ends the oldest request at the driver and does what follows.
    fn end_oldest(&mut self, status: Status) {
        let rq = self.driver.in_flight.pop_front().expect("something is at the driver");
        self.call(|queue, cx, _| queue.complete(cx, rq, status));
        self.work();
    }

    fn start(&mut self, bio: Bio) {
        self.submit(bio);
        self.work();
    }
}

const ALL: [(Kernel, &str); 6] = [
    (Kernel::V6_18, "none"),
    (Kernel::V6_18, "mq-deadline"),
    (Kernel::V6_18, "kyber"),
    (Kernel::V6_18, "bfq"),
    (Kernel::V6_3, "mq-deadline"),
    (Kernel::V4_12, "none"),
];

#[test]
fn a_bio_that_ends_at_the_capacity_passes_and_one_sector_more_never_reaches_the_queue() {
    let limits = Limits { capacity: Sector(1008), ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "none");
    bench.submit_all([read(1000), read(1001), Bio { sectors: 8, ..read(u64::MAX - 3) }]);
    bench.drain();
    let failed = Status::IoError;
    assert_eq!(bench.ended, [(1001, failed), (u64::MAX - 3, failed), (1000, Status::Ok)]);
    assert_eq!(bench.letters().matches('Q').count(), 1);
}

#[test]
fn without_a_write_cache_an_fsync_ends_at_once_and_data_loses_its_flags() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        bench.start(fsync());
        assert_eq!(bench.ended, [(0, Status::Ok)]);
        assert_eq!(bench.letters(), "", "no request is made");
        bench.start(durable(64, PRE.with(FUA)));
        assert_eq!(bench.at_driver(), ["64"], "{scheduler}");
        bench.drain();
    }
}

#[test]
fn unsupported_operations_fail_before_the_queue() {
    let limits = Limits { max_discard_sectors: 0, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, ..config(Kernel::V6_18) }, "none");
    for (bio, status) in [
        (bio(Op::Discard, 0), Status::NotSupported),
        (bio(Op::WriteZeroes, 8), Status::NotSupported),
        (Bio { sectors: 0, ..bio(Op::Flush, 16) }, Status::NotSupported),
        (Bio { flags: PRE, ..read(24) }, Status::IoError),
    ] {
        let sector = bio.sector.0;
        bench.start(bio);
        assert_eq!(bench.ended.pop(), Some((sector, status)));
    }
    assert_eq!(bench.letters(), "");
}

#[test]
fn an_fsync_is_one_flush_command_that_never_meets_the_scheduler() {
    for (kernel, scheduler) in ALL {
        let mut bench = cached(kernel, scheduler, false);
        bench.start(fsync());
        assert_eq!(bench.at_driver(), ["F"], "{kernel} {scheduler}");
        assert!(!bench.letters().contains('I'), "a flush command has no insertion event");
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.ended, [(0, Status::Ok)]);
        bench.drain();
    }
}

#[test]
fn a_flush_command_goes_before_everything_that_waits() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    let depth_one = QueueConfig { limits, queue_depth: 1, nr_requests: Some(8), ..config(Kernel::V6_18) };
    let mut bench = Bench::with(&depth_one, "mq-deadline");
    bench.submit_all([read(0), read(100), read(200)]);
    bench.start(fsync());
    bench.end_oldest(Status::Ok);
    // One read had been dispatched before and waited for its tag in the dispatch list: the flush passed it too.
    assert_eq!(bench.at_driver(), ["F"]);
    bench.drain();
}

#[test]
fn a_write_that_is_flushed_before_and_after_takes_three_steps() {
    for (kernel, scheduler) in ALL {
        let mut bench = cached(kernel, scheduler, false);
        bench.start(durable(64, PRE.with(FUA)));
        assert_eq!(bench.at_driver(), ["F"]);
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.at_driver(), ["64"], "{kernel} {scheduler}: the data without flags");
        bench.end_oldest(Status::Ok);
        assert_eq!((bench.at_driver(), bench.ended.len()), (vec!["F".to_string()], 0));
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.ended, [(64, Status::Ok)]);
        bench.drain();
    }
}

#[test]
fn the_scheduler_sees_a_request_end_with_its_data_not_with_its_flush() {
    let mut bench = cached(Kernel::V6_18, "kyber", false);
    bench.start(durable(64, PRE.with(FUA)));
    bench.end_oldest(Status::Ok);
    // kyber asks for its timer when it has a latency to look at.
    assert_eq!((bench.at_driver(), bench.agenda.cancel(Due::Timer)), (vec!["64".to_string()], None));
    bench.end_oldest(Status::Ok);
    assert!(bench.agenda.cancel(Due::Timer).is_some());
    assert_eq!((bench.at_driver(), bench.ended.len()), (vec!["F".to_string()], 0));
    bench.drain();
}

#[test]
fn with_fua_support_the_data_carries_it_and_no_flush_follows() {
    for (kernel, scheduler) in ALL {
        let mut bench = cached(kernel, scheduler, true);
        bench.start(durable(64, PRE.with(FUA)));
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.at_driver(), ["64!"]);
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.ended, [(64, Status::Ok)], "{kernel} {scheduler}");
        bench.drain();
    }
}

#[test]
fn the_data_of_a_sequence_goes_to_the_head_of_the_scheduler_from_6_5_on_and_past_it_before() {
    for (kernel, inserted) in [(Kernel::V6_18, true), (Kernel::V6_3, false)] {
        let mut bench = cached(kernel, "mq-deadline", true);
        bench.start(durable(64, PRE));
        // What has come meanwhile waits behind the data.
        bench.queue.set_quiesced(true);
        bench.submit_all([write(8), write(24)]);
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.events().contains("I64"), inserted, "{kernel}");
        bench.queue.set_quiesced(false);
        bench.run(0);
        assert_eq!(bench.at_driver(), ["64", "8", "24"], "{kernel}");
        bench.drain();
    }
}

#[test]
fn a_pure_fua_write_on_a_fua_device_is_an_ordinary_write_from_6_5_on() {
    for (kernel, scheduled) in [(Kernel::V6_18, true), (Kernel::V6_3, false)] {
        let mut bench = cached(kernel, "mq-deadline", true);
        bench.start(durable(64, FUA));
        assert_eq!(bench.at_driver(), ["64!"]);
        assert_eq!(bench.events().contains("I64"), scheduled, "{kernel}");
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.ended, [(64, Status::Ok)]);
        bench.drain();
    }
}

#[test]
fn a_8_four_fsyncs_at_once_cost_two_flushes() {
    for (kernel, scheduler) in ALL {
        let mut bench = cached(kernel, scheduler, false);
        for _ in 0..4 {
            bench.start(fsync());
        }
        assert_eq!(bench.at_driver(), ["F"], "never more than one");
        bench.end_oldest(Status::Ok);
        assert_eq!((bench.ended.len(), bench.at_driver()), (1, vec!["F".to_string()]));
        bench.end_oldest(Status::Ok);
        assert_eq!((bench.ended.len(), bench.at_driver().len()), (4, 0), "{kernel} {scheduler}");
        bench.drain();
    }
}

#[test]
fn a_9_the_flush_after_a_write_waits_for_another_write_that_will_need_one_too() {
    let mut bench = cached(Kernel::V6_18, "mq-deadline", false);
    bench.start(durable(64, FUA));
    bench.start(durable(128, FUA));
    bench.end_oldest(Status::Ok);
    assert_eq!(bench.at_driver(), ["128"]);
    bench.end_oldest(Status::Ok);
    assert_eq!((bench.at_driver(), bench.ended.len()), (vec!["F".to_string()], 0));
    bench.end_oldest(Status::Ok);
    assert_eq!(bench.ended, [(64, Status::Ok), (128, Status::Ok)]);
    bench.drain();
}

#[test]
fn a_flush_waits_for_data_no_longer_than_five_seconds() {
    let mut bench = cached(Kernel::V6_18, "none", false);
    bench.start(durable(64, FUA));
    bench.start(durable(128, FUA));
    bench.end_oldest(Status::Ok);
    bench.now = Instant::ZERO + Nanos::from_millis(4_999);
    bench.start(fsync());
    assert_eq!(bench.at_driver(), ["128"]);
    bench.now = Instant::ZERO + Nanos::from_millis(5_000);
    bench.start(fsync());
    assert_eq!(bench.at_driver(), ["128", "F"]);
    bench.drain();
}

#[test]
fn before_5_0_a_flush_with_a_scheduler_does_not_wait_for_data() {
    for (scheduler, waits) in [("mq-deadline", false), ("none", true)] {
        let mut bench = cached(Kernel::V4_19, scheduler, false);
        bench.start(durable(64, FUA));
        bench.start(durable(128, FUA));
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.at_driver().contains(&"F".to_string()), !waits, "{scheduler}");
        bench.drain();
    }
}

#[test]
fn a_failed_flush_fails_all_its_waiters_and_no_others() {
    for (kernel, scheduler) in ALL {
        let mut bench = cached(kernel, scheduler, false);
        bench.start(durable(64, PRE));
        bench.start(fsync());
        bench.end_oldest(Status::IoError);
        assert_eq!(bench.ended, [(64, Status::IoError)], "its data is not written");
        bench.end_oldest(Status::Ok);
        assert_eq!(bench.ended.last(), Some(&(0, Status::Ok)), "{kernel} {scheduler}");
        bench.drain();
    }
}

#[test]
fn a_failed_write_ends_without_its_second_flush() {
    let mut bench = cached(Kernel::V6_18, "bfq", false);
    bench.start(durable(64, FUA));
    bench.end_oldest(Status::Medium);
    assert_eq!((bench.ended.as_slice(), bench.at_driver().len()), ([(64, Status::Medium)].as_slice(), 0));
    bench.drain();
}

#[test]
fn without_a_scheduler_the_flush_command_needs_no_tag_of_its_own() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    let mut bench = Bench::with(&QueueConfig { limits, queue_depth: 1, ..config(Kernel::V6_18) }, "none");
    bench.start(fsync());
    assert_eq!((bench.at_driver(), bench.queue.driver_tags_in_use()), (vec!["F".to_string()], 1));
    bench.drain();
}

#[test]
fn many_fsyncs_in_a_closed_loop_cost_no_more_than_two_flushes_for_all_of_them() {
    let mut bench = cached(Kernel::V6_18, "mq-deadline", false);
    let tasks = 16;
    for _ in 0..tasks {
        bench.start(fsync());
    }
    let mut flushes = 0;
    while bench.ended.len() < 100 * tasks {
        let ended = bench.ended.len();
        bench.end_oldest(Status::Ok);
        flushes += 1;
        for _ in ended..bench.ended.len() {
            bench.start(fsync());
        }
    }
    assert!(flushes <= 200, "{flushes} flushes for {} fsyncs", bench.ended.len());
    bench.drain();
}

#[test]
fn a_tag_freed_by_the_data_of_a_flush_sequence_restarts_the_queue() {
    let limits = Limits { write_cache: true, ..Limits::default() };
    let config = QueueConfig { limits, queue_depth: 2, ..config(Kernel::V6_18) };
    let mut bench = Bench::with(&config, "mq-deadline");
    bench.start(durable(100, FUA));
    bench.end_oldest(Status::Ok);
    bench.start(durable(200, FUA));
    assert_eq!(bench.at_driver(), ["F", "200"]);
    bench.start(read(300));
    assert_eq!(bench.driver.in_flight.len(), 2, "both tags are taken");
    // Its flush has to wait for the one that is under way: nothing of its own runs the queue.
    let rq = bench.take(200);
    bench.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
    bench.work();
    assert_eq!(bench.at_driver(), ["F", "300"]);
    bench.drain();
}

#[test]
fn actions_requested_at_the_end_of_flush_sequence_data_are_performed() {
    let mut bench = cached(Kernel::V6_18, "kyber", false);
    bench.start(durable(100, FUA));
    bench.now = Instant::ZERO + Nanos::from_millis(3);
    let rq = bench.take(100);
    bench.call(|queue, cx, _| queue.complete(cx, rq, Status::Ok));
    assert!(bench.asked().contains(&"set timer".to_owned()), "its latency has been measured");
    bench.call(|queue, cx, _| queue.kick_requeue(cx));
    bench.drain();
}
