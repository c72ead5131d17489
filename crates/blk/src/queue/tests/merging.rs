//! BL-34 to BL-45, BL-48, through the queue. The device is quiesced, so that requests wait where they were put: in
//! mq-deadline, or without a scheduler in the software queues.

use super::*;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::CgroupId;

fn quiesced(config: &QueueConfig, scheduler: &str) -> Bench {
    let bench = Bench::with(config, scheduler);
    bench.queue.set_quiesced(true);
    bench
}

fn waiting(scheduler: &str) -> Bench {
    quiesced(&config(Kernel::V6_18), scheduler)
}

/// Lets everything go; returns start and length of each request that reached the driver.
fn release(bench: &mut Bench) -> Vec<(u64, u32)> {
    bench.queue.set_quiesced(false);
    for hctx in 0..bench.queue.hw_queues() {
        bench.run(hctx);
    }
    let extents = bench.calls().into_iter().map(|call| (call.sector, call.sectors)).collect();
    bench.drain();
    extents
}

#[test]
fn bios_merge_at_the_back_and_at_the_front_wherever_requests_wait() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = waiting(scheduler);
        bench.submit_all([write(100), write(108), write(92)]);
        assert_eq!(bench.letters(), "Q G P U1 I Q M Q F", "{scheduler}");
        assert_eq!(bench.queue.requests_in_use(), 1, "{scheduler}");
        assert_eq!(release(&mut bench), [(92, 24)], "{scheduler}");
        assert_eq!(bench.ended.iter().map(|end| end.0).collect::<Vec<_>>(), [92, 100, 108], "{scheduler}");
    }
}

#[test]
fn a_different_operation_priority_cgroup_or_hint_keeps_bios_apart() {
    let rt = IoPriority::new(PriorityClass::RealTime, 0);
    for scheduler in ["none", "mq-deadline"] {
        for other in [
            Bio { op: Op::Read, ..write(108) },
            Bio { ioprio: rt, ..write(108) },
            Bio { cgroup: CgroupId(1), ..write(108) },
            Bio { write_hint: 3, ..write(108) },
        ] {
            let mut bench = waiting(scheduler);
            bench.submit_all([write(100), other.clone()]);
            assert_eq!(bench.queue.requests_in_use(), 2, "{scheduler} {other:?}");
            bench.plug();
            bench.submit_all([write(1000), Bio { sector: Sector(1008), ..other.clone() }]);
            bench.unplug();
            assert_eq!(bench.queue.requests_in_use(), 4, "{scheduler} {other:?}, in a plug");
            release(&mut bench);
        }
    }
}

#[test]
fn a_bio_that_is_charged_to_the_root_joins_no_request_that_is_not() {
    for scheduler in ["none", "mq-deadline"] {
        for flags in [BioFlags::META, BioFlags::SWAP] {
            let mut bench = waiting(scheduler);
            bench.submit_all([write(100), Bio { flags, ..write(108) }]);
            assert_eq!(bench.queue.requests_in_use(), 2, "{scheduler} {flags:?}");
            release(&mut bench);
        }
    }
}

#[test]
fn until_4_20_priorities_merge_and_until_5_17_cgroups_do() {
    let rt = IoPriority::new(PriorityClass::RealTime, 0);
    let requests = |kernel, second: Bio| {
        let mut bench = quiesced(&config(kernel), "mq-deadline");
        bench.submit_all([write(100), second]);
        bench.queue.requests_in_use()
    };
    for (kernel, by_priority, by_cgroup) in [(Kernel::V4_12, 1, 1), (Kernel::V5_10, 2, 1), (Kernel::V6_3, 2, 2)] {
        assert_eq!(requests(kernel, Bio { ioprio: rt, ..write(108) }), by_priority, "{kernel}");
        assert_eq!(requests(kernel, Bio { cgroup: CgroupId(1), ..write(108) }), by_cgroup, "{kernel}");
    }
}

#[test]
fn a_sync_bio_joins_an_async_request_which_stays_async() {
    let mut bench = waiting("mq-deadline");
    bench.submit_all([write(100), Bio { flags: BioFlags::SYNC, ..write(108) }]);
    bench.queue.set_quiesced(false);
    bench.run(0);
    assert_eq!(bench.driver.in_flight.len(), 1);
    assert!(!bench.driver.in_flight[0].is_sync());
}

#[test]
fn a_request_that_would_grow_too_long_never_merges_again() {
    for scheduler in ["none", "mq-deadline"] {
        for limits in [Limits { max_sectors: 12, ..Limits::default() }, Limits { max_segments: 1, ..Limits::default() }]
        {
            let mut bench = quiesced(&QueueConfig { limits, ..config(Kernel::V6_18) }, scheduler);
            bench.submit_all([write(100), write(108)]);
            let small = Bio { sectors: 4, segments: 0, ..write(96) };
            bench.submit(small);
            assert_eq!(bench.queue.requests_in_use(), 3, "{scheduler}: not even what would fit");
        }
    }
}

#[test]
fn no_request_grows_over_a_chunk_boundary() {
    let limits = Limits { chunk_sectors: 128, ..Limits::default() };
    let mut bench = quiesced(&QueueConfig { limits, ..config(Kernel::V6_18) }, "mq-deadline");
    bench.submit_all([write(120), write(128)]);
    assert_eq!(release(&mut bench), [(120, 8), (128, 8)]);
}

#[test]
fn preflush_fua_and_nomerge_bios_and_write_zeroes_stay_alone() {
    for scheduler in ["none", "mq-deadline"] {
        for flags in [BioFlags::PREFLUSH, BioFlags::FUA, BioFlags::NOMERGE] {
            let limits = Limits { write_cache: true, fua: true, ..Limits::default() };
            let mut bench = quiesced(&QueueConfig { limits, ..config(Kernel::V6_18) }, scheduler);
            let special = |sector| Bio { flags, ..write(sector) };
            bench.submit_all([write(100), special(108), write(116), special(92)]);
            assert_eq!(bench.queue.requests_in_use(), 4, "{scheduler} {flags:?}");
        }
        let limits = Limits { max_write_zeroes_sectors: 1000, ..Limits::default() };
        let mut bench = quiesced(&QueueConfig { limits, ..config(Kernel::V6_18) }, scheduler);
        bench.submit_all([bio(Op::WriteZeroes, 100), bio(Op::WriteZeroes, 108)]);
        assert_eq!(bench.queue.requests_in_use(), 2, "{scheduler}");
    }
}

#[test]
fn a_dispatched_request_is_not_found_for_merging() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 4, ..config(Kernel::V6_18) }, "mq-deadline");
    bench.occupy(4);
    bench.submit(write(100));
    assert!(bench.hctx(0).has_dispatch_list(), "it was dispatched, but got no driver tag");
    bench.submit_all([write(108), write(92)]);
    assert_eq!(bench.letters(), "Q G P U1 I Q G P U1 I Q G P U1 I");
    bench.drain();
}

#[test]
fn a_bio_that_closes_a_gap_makes_one_request_of_three() {
    let mut bench = waiting("mq-deadline");
    bench.now = Instant(7000);
    bench.submit(write(116));
    bench.now = Instant(9000);
    bench.submit(write(100));
    bench.submit(write(108));
    assert_eq!(bench.queue.requests_in_use(), 1, "one request is freed");
    bench.queue.set_quiesced(false);
    bench.run(0);
    let rq = &bench.driver.in_flight[0];
    assert_eq!((rq.sector.0, rq.sectors, rq.start), (100, 24, Instant(7000)), "the earlier start");
    bench.drain();
    assert_eq!(bench.ended.len(), 3);
}

#[test]
fn in_a_plug_only_the_newest_request_is_tried_since_5_16() {
    for (kernel, requests) in [(Kernel::V5_10, 2), (Kernel::V6_3, 3), (Kernel::V6_18, 3)] {
        let mut bench = Bench::new(kernel, "none");
        bench.plug();
        bench.submit_all([write(100), write(1000), write(108)]);
        assert_eq!(bench.plug.as_ref().unwrap().len(), requests, "{kernel}");
        bench.unplug();
        bench.drain();
    }
}

#[test]
fn a_bio_is_compared_with_the_8_newest_requests_of_its_cpu() {
    let mut bench = waiting("none");
    bench.submit_all((0..10).map(|n| write(n * 1000)));
    bench.forget();
    bench.submit_all([write(9008), write(2008), write(1008)]);
    assert_eq!(bench.letters(), "Q M Q M Q G P U1 I", "the ninth is out of sight");
    bench.on(1).submit(write(9016));
    assert_eq!(bench.letters(), "Q G P U1 I", "and so is another CPU's");
}

#[test]
fn nomerges_1_leaves_plug_software_queue_and_one_hit_cache() {
    let cheap = QueueConfig { merging: Merging::Simple, ..config(Kernel::V6_18) };
    let mut bench = quiesced(&cheap, "mq-deadline");
    bench.submit_all([write(100), write(1000), write(108)]);
    assert_eq!(bench.queue.requests_in_use(), 2, "the first request is cached");
    bench.submit_all([write(1008), write(992)]);
    assert_eq!(bench.queue.requests_in_use(), 4, "neither the hash nor the tree is looked at");
    let mut bench = quiesced(&cheap, "none");
    bench.submit_all([write(100), write(1000), write(108)]);
    assert_eq!(bench.queue.requests_in_use(), 2, "the software queue is");
    let mut bench = Bench::with(&cheap, "none");
    bench.plug();
    bench.submit_all([write(100), write(108)]);
    assert_eq!(bench.plug.as_ref().unwrap().len(), 1, "and the plug");
    bench.unplug();
}

#[test]
fn nomerges_2_leaves_nothing() {
    for scheduler in ["none", "mq-deadline"] {
        let mut bench = quiesced(&QueueConfig { merging: Merging::Off, ..config(Kernel::V6_18) }, scheduler);
        bench.plug();
        bench.submit_all([write(100), write(108)]);
        bench.unplug();
        bench.submit_all([write(116), write(92)]);
        assert_eq!(bench.queue.requests_in_use(), 4, "{scheduler}");
    }
}

#[test]
fn halves_on_two_cpus_merge_with_mq_deadline_only() {
    for (scheduler, requests) in [("none", 2), ("mq-deadline", 1)] {
        let mut bench = waiting(scheduler);
        bench.on(0).submit(write(100));
        bench.on(1).submit(write(108));
        assert_eq!(bench.queue.requests_in_use(), requests, "{scheduler}");
        release(&mut bench);
    }
}

#[test]
fn discards_that_do_not_touch_form_one_request_up_to_the_ranges_of_a_command() {
    let limits = Limits { max_discard_segments: 4, ..Limits::default() };
    for scheduler in ["none", "mq-deadline", "bfq"] {
        let mut bench = Bench::with(&QueueConfig { limits: limits.clone(), ..config(Kernel::V6_18) }, scheduler);
        bench.plug();
        bench.submit_all((0..5).map(|n| bio(Op::Discard, 10_000 - n * 1000)));
        bench.unplug();
        bench.work();
        let calls: Vec<(u64, u32)> = bench.calls().into_iter().map(|call| (call.sector, call.sectors)).collect();
        assert_eq!(calls.iter().map(|call| call.1).sum::<u32>(), 40, "{scheduler}");
        assert!(calls.contains(&(10_000, 32)) && calls.contains(&(6000, 8)), "{scheduler}: {calls:?}");
        bench.drain();
        assert_eq!(bench.ended.len(), 5);
    }
    let mut bench = Bench::new(Kernel::V6_18, "none");
    bench.plug();
    bench.submit_all((0..3).map(|n| bio(Op::Discard, n * 1000)));
    bench.unplug();
    assert_eq!(bench.issued().len(), 3, "a device with one range");
    bench.drain();
}

#[test]
fn the_survivor_of_a_closed_gap_becomes_the_one_hit_cache() {
    let cheap = QueueConfig { merging: Merging::Simple, ..config(Kernel::V6_18) };
    let mut bench = quiesced(&cheap, "mq-deadline");
    // The second one grows at its front, and the first absorbs it.
    bench.submit_all([write(116), write(100), write(108), write(124)]);
    assert_eq!(release(&mut bench), [(100, 32)]);
}
