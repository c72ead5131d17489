//! What is measured: think time, seeks, I/O-boundness, queueing, peak rate (BFQ-52 to BFQ-56, BFQ-64 to BFQ-70).

use super::super::io_bound::IoBound;
use super::super::ncq::Ncq;
use super::super::rate::{PeakRate, Sample};
use super::super::vtime::{delta, is_after};
use super::super::{BfqConfig, BfqVariant};
use super::machine::{MS, Machine, config};
use crate::ground::kernel::Kernel;
use crate::schedulers::process_queue::ThinkTime;

#[test]
fn virtual_time_is_sectors_by_weight_with_22_bits_behind_the_point_and_wraps() {
    let deltas = [(8, 40), (10_922, 40), (16_384, 40), (24, 40), (8, 1200)].map(|(s, w)| delta(s, w));
    assert_eq!(deltas, [838_860, 1_145_254_707, 1_717_986_918, 2_516_582, 27_962]);
    assert!(is_after(5, u64::MAX - 5) && !is_after(u64::MAX - 5, 5) && !is_after(7, 7));
}

#[test]
fn a_first_elapsed_time_of_minus_one_counts_as_the_cap_and_as_endless_idling() {
    let mut think = ThinkTime::new(101);
    (0..3).for_each(|_| think.arrived(100, 8 * MS as i64));
    assert_eq!(think.trusted_mean().map(|mean| mean / MS as i64), Some(16), "the cap");
    let mut bound = IoBound::new(100);
    bound.arrival(100, Some(u64::MAX), true);
    assert!(bound.is, "the first arrival decides nothing");
    bound.arrival(2 * MS, None, false);
    assert!(!bound.is);
    bound.arrival(4 * MS, Some(1), false);
    assert!(bound.is, "the next gap wraps the sum back");
}

#[test]
fn twenty_far_requests_of_32_make_a_queue_seeky_and_five_in_4_12() {
    for (variant, most) in [(Kernel::V6_18, 19), (Kernel::V4_12, 4)] {
        let variant = BfqVariant::of(variant);
        let mut machine = Machine::new(BfqConfig { variant, ..config(true) });
        machine.read(1, 8, 8);
        let q = machine.sync_queue(1);
        let mut seeky = |far: u32| {
            (0..32).for_each(|at| machine.bfq.queues[q].seeks.push(at < far));
            (machine.bfq.is_seeky(q), machine.bfq.queues[q].is_totally_seeky())
        };
        assert_eq!(
            [seeky(most), seeky(most + 1), seeky(31), seeky(32)],
            [(false, false), (true, false), (true, false), (true, true)]
        );
    }
}

#[test]
fn the_33rd_loaded_sample_decides_whether_the_device_queues_and_yes_is_final() {
    let mut ncq = Ncq::default();
    assert!(ncq.queues(), "undecided counts as yes");
    ncq.note(3);
    assert!(!ncq.sample(3, false, 3), "too little around");
    for _ in 0..32 {
        assert!(!ncq.sample(4, false, 3));
    }
    assert!(!ncq.sample(4, true, 3), "a thinker's load does not count");
    assert!(ncq.sample(4, false, 3) && !ncq.queues());
    ncq.note(4);
    (0..33).for_each(|_| {
        ncq.sample(4, false, 3);
    });
    assert!(ncq.queues() && !ncq.sample(4, false, 3));
}

/// Dispatches of `sectors`, `near` of them near, over `interval` ns.
fn window(rotational: bool, dispatches: u64, near: u64, sectors: u64, interval: u64) -> PeakRate {
    let mut rate = PeakRate::new(rotational);
    rate.completed(0);
    for at in 0..dispatches {
        // Only the last one comes late enough for an evaluation.
        let now = if at + 1 == dispatches { interval } else { 990 * MS * at / dispatches };
        rate.dispatched(Sample { now, sectors, near: at <= near, in_driver: 1 });
        if at > 0 && at + 1 < dispatches {
            rate.last_completion = now;
        }
    }
    rate
}

#[test]
fn the_peak_rate_follows_sequential_windows_and_otherwise_only_rises() {
    assert_eq!((PeakRate::new(true).rate, PeakRate::new(false).rate), (9333, 22_000));
    assert_eq!(window(true, 400, 380, 512, 1_050 * MS).rate, 11_057);
    assert_eq!(window(true, 1000, 10, 8, 1_000_500_000).rate, 9333, "slow and not sequential");
    assert_eq!(window(false, 1000, 900, 512, 1_000_200_000).rate, 27_773);
    assert_eq!(window(true, 31, 31, 512, 1_050 * MS).rate, 9333, "too few samples");
    assert!(window(true, 32, 32, 512, 1_050 * MS).rate < 9333, "just enough");
}

#[test]
fn a_completion_that_took_too_long_for_its_size_discards_the_window() {
    let gap = |ns| {
        let mut rate = PeakRate::new(true);
        rate.completed(0);
        rate.dispatched(Sample { now: 0, sectors: 8, near: true, in_driver: 0 });
        rate.completed(ns).reset
    };
    assert!(!gap(8_192_000) && gap(8_194_000), "8 sectors may take 8.19 ms");
}

#[test]
fn the_derived_numbers_of_a_fresh_device_are_those_of_section_4() {
    let mut rotational = Machine::new(config(true));
    rotational.set("max_budget", 0);
    assert_eq!(rotational.bfq.max_budget, 17_801);
    assert_eq!(rotational.bfq.interactive_duration(), 10_500);
    let flash = Machine::new(config(false));
    assert_eq!((flash.bfq.auto_max_budget(), flash.bfq.interactive_duration()), (41_961, 3_750));
}

#[test]
fn a_request_is_far_beyond_800_sectors_on_disks_and_if_it_is_short_on_flash() {
    let mut machine = Machine::new(config(true));
    let mut far = |rotational, sector, sectors| {
        machine.bfq.config.rotational = rotational;
        machine.bfq.is_far(sector, sectors, 10_000)
    };
    assert_eq!([far(true, 10_800, 8), far(true, 10_801, 8), far(true, 9_199, 1024)], [false, true, true]);
    assert_eq!([far(false, 10_801, 63), far(false, 10_801, 64), far(false, 10_800, 8)], [true, false, false]);
    assert!(!machine.bfq.is_far(1 << 40, 8, 0), "nothing was before");
}

#[test]
fn a_queue_idle_for_more_than_a_fifth_of_its_time_is_not_io_bound() {
    let bound = |gap: u64| {
        let mut bound = IoBound::new(0);
        // 10 ms of which `gap` are spent without any request.
        bound.arrival(10 * MS, Some(gap), false);
        bound.is
    };
    assert!(bound(2 * MS) && !bound(2 * MS + 1));
    let mut bound = IoBound::new(0);
    bound.arrival(100 * MS, Some(60 * MS), false);
    assert!(!bound.is);
    bound.arrival(201 * MS, None, false);
    bound.arrival(210 * MS, None, false);
    assert!(!bound.is, "half of the window counts on: 30 of 109 ms");
    bound.arrival(300 * MS, None, false);
    assert!(bound.is, "30 of 199 ms");
}

#[test]
fn a_window_needs_300_ms_and_a_faster_one_counts_even_if_it_is_not_sequential() {
    let rate_after = |sectors, ms: u64, near| {
        let mut rate = PeakRate::new(true);
        rate.completed(0);
        for at in 0..100 {
            rate.dispatched(Sample { now: at * ms * MS / 99, sectors, near, in_driver: 1 });
        }
        rate.last_completion = ms * MS;
        // The silence before this one closes the window.
        rate.dispatched(Sample { now: (ms + 101) * MS, sectors, near, in_driver: 0 });
        rate.rate
    };
    // 22369, a part of 8 by its length and its order.
    assert_eq!((rate_after(1024, 300, true), rate_after(1024, 299, true)), (9333 * 7 / 8 + 22_369 / 8, 9333));
    assert_eq!(rate_after(1024, 300, false), 9333 * 9 / 10 + 22_369 / 10);
    assert_eq!(rate_after(8, 300, false), 9333);
}

#[test]
fn a_dispatch_continues_a_stream_if_something_is_in_the_device_or_left_it_less_than_2_ms_ago() {
    let streams = |in_driver, now| {
        let mut rate = PeakRate::new(true);
        rate.completed(0);
        rate.dispatched(Sample { now: 0, sectors: 8, near: true, in_driver: 0 });
        rate.dispatched(Sample { now, sectors: 8, near: true, in_driver });
        rate.sequential == 1
    };
    assert_eq!([streams(0, 2 * MS - 1), streams(0, 2 * MS), streams(1, 2 * MS)], [true, false, true]);
}

#[test]
fn the_largest_request_is_forgotten_at_each_32nd_sample() {
    let closes = |samples| {
        let mut rate = PeakRate::new(true);
        rate.completed(0);
        for at in 0..samples {
            let sectors = if at == 0 { 512 } else { 8 };
            rate.dispatched(Sample { now: 0, sectors, near: true, in_driver: 1 });
        }
        rate.completed(9 * MS).reset
    };
    assert!(!closes(31) && closes(32), "9 ms are long for 8 sectors, not for 512");
    let mut rate = PeakRate::new(true);
    rate.completed(0);
    assert!(!rate.completed(2 * MS).reset, "nothing is late within 2 ms");
}

#[test]
fn a_thinker_with_less_than_three_requests_says_nothing_about_the_device() {
    let counts = |short_think, others: u64, in_driver| {
        let mut machine = Machine::new(config(true));
        machine.read(1, 8, 8);
        machine.dispatch();
        let q = machine.sync_queue(1);
        machine.now = 700 * MS;
        for at in 0..others {
            machine.read(1, 800 * at, 8);
        }
        machine.bfq.in_service = Some(q);
        machine.bfq.queues[q].short_think = short_think;
        machine.bfq.in_driver = in_driver;
        machine.bfq.queued = 9;
        let before = format!("{:?}", machine.bfq.ncq);
        machine.bfq.sample_ncq();
        machine.bfq.ncq.max_in_driver = 0;
        before != format!("{:?}", machine.bfq.ncq)
    };
    assert!(!counts(true, 1, 1), "two requests of a process that thinks shortly");
    assert!(counts(false, 1, 1) && counts(true, 2, 1) && counts(true, 1, 3));
}

#[test]
fn three_quarters_in_order_make_a_slow_window_count() {
    let falls = |near| window(true, 32, near, 512, 1_050 * MS).rate < 9333;
    assert!(falls(24) && !falls(23));
}

#[test]
fn a_rate_of_20_sectors_a_microsecond_is_believed_and_a_higher_one_is_not() {
    let rate_after = |sectors| window(false, 400, 0, sectors, 1_000 * MS).rate;
    // 400 dispatches in a second, the tenth part of which counts as nothing is in order.
    assert_eq!((rate_after(50_000), rate_after(50_001)), (22_000 * 9 / 10 + (20 << 16) / 10, 22_000));
}

#[test]
fn a_window_that_is_not_sequential_updates_only_a_smaller_rate() {
    let updated = |known| {
        let mut rate = PeakRate::new(true);
        rate.rate = known;
        rate.completed(0);
        for at in 0..100 {
            rate.dispatched(Sample { now: at * 300 * MS / 99, sectors: 1024, near: false, in_driver: 1 });
        }
        rate.last_completion = 300 * MS;
        rate.dispatched(Sample { now: 401 * MS, sectors: 1024, near: false, in_driver: 0 }).updated
    };
    // 22369 is what it has seen.
    assert_eq!([22_368, 22_369, 22_370].map(updated), [true, false, false]);
}

#[test]
fn a_rate_window_that_ends_after_a_second_is_followed_by_a_new_one() {
    let mut rate = PeakRate::new(true);
    rate.completed(0);
    let mut reset = |now| rate.dispatched(Sample { now, sectors: 8, near: true, in_driver: 1 }).reset;
    assert_eq!([0, 999, 1_000, 1_001, 1_999, 2_000].map(|ms| reset(ms * MS)), [true, false, true, false, false, true]);
}
