//! BL-21 to BL-26, BL-28, BL-29.

use super::*;

#[test]
fn requests_in_a_plug_are_invisible_until_it_is_flushed() {
    for scheduler in SCHEDULERS {
        let mut bench = Bench::new(Kernel::V6_18, scheduler);
        bench.plug();
        bench.submit_all([read(0), read(1000)]);
        assert!(!bench.queue.has_pending(HctxId(0)), "{scheduler}");
        bench.run(0);
        assert!(bench.issued().is_empty(), "{scheduler}");
        bench.unplug();
        assert_eq!(bench.issued(), [0, 1000], "{scheduler}");
        bench.drain();
    }
}

#[test]
fn the_33rd_request_flushes_the_first_32() {
    let letters = |kernel, requests| {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 64, ..config(kernel) }, "none");
        bench.plug();
        bench.submit_all((0..requests).map(|n| read(n * 1000)));
        let plugged = bench.plug.as_ref().unwrap().len();
        (bench.letters(), bench.issued().len(), plugged)
    };
    for (kernel, limit) in [(Kernel::V4_19, 16), (Kernel::V5_10, 16), (Kernel::V6_3, 32), (Kernel::V6_18, 32)] {
        let (_, issued, plugged) = letters(kernel, limit);
        assert_eq!((issued, plugged), (0, limit as usize), "{kernel}: a full plug waits");
        let (trace, issued, plugged) = letters(kernel, limit + 1);
        assert_eq!((issued, plugged), (limit as usize, 1), "{kernel}");
        let flush = format!("Q G U{limit} ");
        assert!(trace.contains(&flush) && trace.ends_with(" P"), "{kernel}: {trace}");
    }
}

#[test]
fn a_plug_is_flushed_before_the_next_request_once_its_newest_has_128_kib() {
    let plugged = |merging| {
        let config = QueueConfig { merging, ..config(Kernel::V6_12) };
        let mut bench = Bench::with(&config, "none");
        bench.plug();
        bench.submit(Bio { segments: 16, ..Bio::new(Op::Write, Sector(0), 128) });
        bench.submit(Bio { segments: 16, ..Bio::new(Op::Write, Sector(128), 128) });
        bench.submit(write(10_000));
        bench.plug.as_ref().unwrap().len()
    };
    assert_eq!(plugged(Merging::Full), 1, "it grew to 128 KiB and went");
    assert_eq!(plugged(Merging::Simple), 1);
    assert_eq!(plugged(Merging::Off), 3);
}

#[test]
fn a_plug_that_is_flushed_before_sleeping_is_inserted_and_run_by_a_worker() {
    for (scheduler, insertions) in [("none", 4), ("mq-deadline", 8)] {
        let mut bench = Bench::with(&QueueConfig { queue_depth: 4, ..config(Kernel::V6_12) }, scheduler);
        bench.plug();
        bench.submit_all((0..insertions).map(|n| read(n * 1000)));
        bench.forget();
        assert_eq!(bench.submit_as(3, read(9000)), Submitted::Parked, "{scheduler}");
        let inserted = " I".repeat(insertions as usize);
        assert_eq!(bench.letters(), format!("Q U{insertions}{inserted}"), "{scheduler}: nothing is issued");
        assert_eq!(bench.asked(), ["run 0"], "{scheduler}");
        bench.run(0);
        assert_eq!(bench.issued().len(), 4, "{scheduler}");
        bench.drain_with_plug();
    }
}

#[test]
fn an_explicit_flush_without_a_scheduler_issues_directly() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.plug();
    bench.submit_all([read(0), read(1000)]);
    bench.forget();
    bench.unplug();
    assert_eq!(bench.events(), "U2 D0 D1000");
}

#[test]
fn from_4_19_to_5_15_a_plug_is_issued_directly_only_while_its_hardware_queue_is_not_busy() {
    let unplugged = |kernel, was_busy| {
        let mut bench = Bench::with(&QueueConfig { hw_queues: 2, ..config(kernel) }, "none");
        bench.hctx(0).update_busy(was_busy);
        bench.plug();
        bench.submit_all([read(0), read(1000)]);
        bench.forget();
        bench.unplug();
        let letters = bench.letters();
        bench.drain();
        letters
    };
    let (directly, by_insertion) = ("U2 D D", "U2 I I D D");
    for (kernel, expected) in [
        (Kernel::V4_12, [by_insertion, by_insertion]),
        (Kernel::V5_10, [directly, by_insertion]),
        (Kernel::V6_12, [directly, directly]),
    ] {
        assert_eq!([false, true].map(|was_busy| unplugged(kernel, was_busy)), expected, "{kernel}");
    }
}

#[test]
fn a_direct_issue_that_is_refused_runs_the_hardware_queue_of_its_request() {
    for kernel in [Kernel::V6_12, Kernel::V6_18] {
        let mut bench = Bench::with(&QueueConfig { hw_queues: 2, ..config(kernel) }, "none");
        bench.plug();
        bench.on(0).submit(read(0));
        bench.on(3).submit(read(1000));
        bench.refuse([Some(Refusal::Busy)]);
        bench.unplug();
        let mut taken: Vec<u64> = bench.calls().iter().filter(|call| call.taken).map(|call| call.sector).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1000], "{kernel}");
        bench.drain();
    }
}

#[test]
fn an_explicit_flush_with_a_scheduler_inserts_each_group_at_once_and_runs_it() {
    let config = QueueConfig { hw_queues: 2, ..config(Kernel::V6_18) };
    let mut bench = Bench::with(&config, "mq-deadline");
    bench.plug();
    for (cpu, sector) in [(0, 0), (3, 5000), (0, 1000), (3, 6000)] {
        bench.on(cpu).submit(read(sector));
    }
    bench.forget();
    bench.unplug();
    assert_eq!(bench.events(), "U4 I0 I1000 D0 D1000 I5000 I6000 D5000 D6000");
    assert!(bench.asked().is_empty(), "no worker is needed");
}

#[test]
fn until_4_20_a_plug_is_inserted_by_software_queue_and_sector() {
    for kernel in [Kernel::V4_12, Kernel::V4_19] {
        let mut bench = Bench::new(kernel, "mq-deadline");
        bench.plug();
        for (cpu, sector) in [(1, 300), (0, 200), (1, 100), (0, 50)] {
            bench.on(cpu).submit(read(sector));
        }
        bench.forget();
        bench.unplug();
        let insertions: Vec<String> =
            bench.events().split(' ').filter(|event| event.starts_with('I')).map(String::from).collect();
        assert_eq!(insertions, ["I50", "I200", "I100", "I300"], "{kernel}");
    }
}

#[test]
fn a_plug_event_comes_once_per_fill_and_unplug_events_carry_the_count() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 64, ..config(Kernel::V6_18) }, "none");
    bench.plug();
    bench.submit_all((0..40).map(|n| read(n * 1000)));
    bench.unplug();
    let plugs: Vec<String> =
        bench.letters().split(' ').filter(|l| l.starts_with(['P', 'U'])).map(String::from).collect();
    assert_eq!(plugs, ["P", "U32", "P", "U8"]);
    bench.plug();
    bench.unplug();
    assert_eq!(bench.letters(), "", "an empty plug says nothing");
}

#[test]
fn the_clock_stands_still_under_a_plug_since_6_9() {
    let starts = |kernel| {
        let mut bench = Bench::new(kernel, "none");
        bench.plug();
        bench.submit(read(0));
        bench.now = Instant(5000);
        bench.submit(read(1000));
        bench.unplug();
        let mut starts: Vec<u64> = bench.driver.in_flight.iter().map(|rq| rq.start.0).collect();
        starts.sort_unstable();
        starts
    };
    assert_eq!(starts(Kernel::V6_3), [0, 5000]);
    assert_eq!(starts(Kernel::V6_12), [0, 0]);
}

impl Bench {
    /// Serves everything, flushing the plug whenever nothing else happens.
    fn drain_with_plug(&mut self) {
        self.work();
        while !self.driver.in_flight.is_empty() || self.plug.as_ref().is_some_and(|plug| !plug.is_empty()) {
            self.complete_all();
            self.work();
            if self.plug.is_some() {
                self.unplug();
                self.plug();
            }
        }
        self.drain();
    }
}

#[test]
fn a_stepwise_plug_flush_may_be_finished_at_once() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.plug();
    bench.submit_all([read(0), read(1000), read(2000)]);
    let mut plug = bench.plug.take().unwrap();
    bench.call(|queue, cx, _| {
        let mut flush = queue.begin_flush(cx, &mut plug, true);
        flush.step(queue, cx);
        flush.finish(queue, cx);
    });
    assert_eq!(bench.issued(), [0, 1000, 2000]);
    bench.drain();
}

#[test]
fn a_stepwise_plug_flush_names_the_request_of_its_next_step() {
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.plug();
    bench.submit_all([read(0), read(1000)]);
    bench.call(|queue, cx, plug| {
        let mut flush = queue.begin_flush(cx, plug.unwrap(), true);
        let next = |flush: &PlugFlush| flush.next().map(|rq| rq.sector.0);
        assert_eq!(next(&flush), Some(0));
        flush.step(queue, cx);
        assert_eq!(next(&flush), Some(1000));
        flush.step(queue, cx);
        assert_eq!(next(&flush), None);
        flush.finish(queue, cx);
    });
    assert_eq!(bench.issued(), [0, 1000]);
    bench.plug = None;
    bench.drain();
}

#[test]
fn a_sleeper_with_an_empty_plug_sees_the_clock_advance() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 1, ..config(Kernel::V6_18) }, "none");
    bench.occupy(1);
    bench.plug();
    assert_eq!(bench.submit_as(1, read(8)), Submitted::Parked);
    bench.now += Nanos::from_millis(5);
    bench.complete(1_000_000);
    bench.work();
    assert_eq!(bench.plug.as_ref().unwrap().list[0].start, bench.now);
    bench.unplug();
    bench.drain();
}
