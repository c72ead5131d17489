//! LQ-29 to LQ-31: what must be durable goes past the elevator, and many share a flush.

use super::*;

const PRE: BioFlags = BioFlags::PREFLUSH;
const FUA: BioFlags = BioFlags::FUA;

/// A device with a write cache that can do FUA or not, and other things beside a flush or not.
fn device(fua: bool, flush_queueable: bool) -> LegacyConfig {
    let limits = Limits { write_cache: true, fua, flush_queueable, ..Limits::default() };
    LegacyConfig { limits, ..config(Kernel::V4_12) }
}

fn with_flags(words: &str, flags: BioFlags) -> Bio {
    Bio { flags, ..bio(words) }
}

fn fsync() -> Bio {
    Bio { sectors: 0, flags: PRE, ..bio("W0") }
}

impl Bench {
    /// Ends the oldest request at the driver and does what follows. Returns what the driver was given then.
    fn end_oldest(&mut self, status: Status) -> String {
        let rq = self.driver.in_flight.pop_front().expect("something is at the driver");
        self.call(|queue, cx, _| queue.complete(cx, rq, status));
        self.calls()
    }

    /// The bios that have ended since the last look; carries out what else there is to do.
    fn ended(&mut self) -> Vec<(u64, Status)> {
        let mut ended = Vec::new();
        self.caller.effects.pop_ended(|bio, status| ended.push((bio.sector.0, status)));
        self.work();
        ended
    }
}

#[test]
fn the_flush_command_goes_to_the_tail_and_the_data_to_the_head_of_the_dispatch_queue() {
    let mut bench = Bench::with(device(false, true), "deadline");
    bench.queue.set_stopped(true);
    bench.submit("R100 R200");
    bench.submit_as(1, with_flags("W500", PRE.with(FUA)));
    bench.submit_as(2, with_flags("W900", BioFlags::NONE));
    bench.queue.set_stopped(false);
    bench.run();
    // The elevator was not asked before the dispatch queue was empty: the flush overtook what it held.
    assert_eq!(bench.calls(), "F R100+8 R200+8 W900+8");
    assert_eq!(bench.end_oldest(Status::Ok), "W500+8");
    assert_eq!(bench.ended(), []);
    for _ in 0..3 {
        bench.end_oldest(Status::Ok);
    }
    bench.ended();
    assert_eq!((bench.end_oldest(Status::Ok), bench.ended()), ("F".to_owned(), vec![]));
    bench.end_oldest(Status::Ok);
    assert_eq!(bench.ended(), [(500, Status::Ok)]);
    bench.assert_empty();
}

#[test]
fn a_fua_write_on_a_fua_device_by_passes_the_elevator() {
    for scheduler in LEGACY_SCHEDULERS {
        let mut bench = Bench::with(device(true, true), scheduler);
        bench.queue.set_stopped(true);
        bench.submit("R100 R200");
        bench.submit_as(1, with_flags("W500", FUA));
        assert_eq!(bench.dispatch_queue(), [500]);
        bench.queue.set_stopped(false);
        bench.run();
        assert!(bench.calls().starts_with("W500+8"), "{scheduler}");
        while !bench.driver.in_flight.is_empty() {
            bench.end_oldest(Status::Ok);
        }
    }
}

#[test]
fn nothing_leaves_the_elevator_beside_a_flush_that_a_device_does_alone() {
    for (queueable, beside) in [(true, "R100+8"), (false, "")] {
        let mut bench = Bench::with(device(false, queueable), "noop");
        bench.submit_as(1, fsync());
        assert_eq!(bench.ended(), []);
        assert_eq!(bench.calls(), "F");
        bench.submit("R100");
        assert_eq!(bench.calls(), beside, "queueable: {queueable}");
        let after = bench.end_oldest(Status::Ok);
        assert_eq!(after, if queueable { "" } else { "R100+8" });
        assert_eq!(bench.ended(), [(0, Status::Ok)]);
    }
}

#[test]
fn three_fsyncs_that_arrive_during_a_flush_share_the_next_one() {
    for scheduler in LEGACY_SCHEDULERS {
        let mut bench = Bench::with(device(false, false), scheduler);
        for task in 0..4 {
            bench.submit_as(task, fsync());
            bench.ended();
        }
        assert_eq!(bench.calls(), "F");
        assert_eq!((bench.end_oldest(Status::Ok).as_str(), bench.ended().len()), ("F", 1));
        assert_eq!((bench.end_oldest(Status::Ok).as_str(), bench.ended().len()), ("", 3), "{scheduler}");
        bench.assert_empty();
    }
}

#[test]
fn a_failed_flush_fails_those_that_waited_for_it() {
    let mut bench = Bench::with(device(false, true), "cfq");
    bench.submit_as(1, with_flags("W500", PRE));
    bench.ended();
    bench.end_oldest(Status::IoError);
    assert_eq!(bench.ended(), [(500, Status::IoError)]);
    bench.assert_empty();
}

#[test]
fn without_a_write_cache_a_flush_costs_nothing() {
    let mut bench = Bench::with(LegacyConfig { limits: Limits::default(), ..config(Kernel::V4_4) }, "noop");
    bench.submit_as(1, fsync());
    assert_eq!((bench.ended(), bench.calls()), (vec![(0, Status::Ok)], String::new()));
    bench.submit_as(1, with_flags("W500", PRE.with(FUA)));
    assert_eq!(bench.calls(), "W500+8");
}
