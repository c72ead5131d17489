//! The current controller: buckets, percentiles, rounds.

use proptest::prelude::*;

use super::super::histogram::{Histogram, Kind, bucket_of};
use super::super::percentiles::{ControllerRound, LatencyReading, Percentiles};
use super::*;
use crate::ground::time::Nanos;

#[test]
fn buckets_are_quarters_of_the_target() {
    let of = |target_ns| move |ns| bucket_of(Nanos(ns), target_ns);
    let latencies =
        [500_000, 500_001, 1_000_000, 1_500_000, 1_500_001, 2_000_000, 2_000_001, 3_000_000, 3_500_000, 3_500_001];
    assert_eq!(latencies.map(of(2_000_000)), [0, 1, 1, 2, 3, 3, 4, 5, 6, 7]);
    assert_eq!(of(2_000_000)(10_000_000), 7);
    assert_eq!([1, 2, 3, 4].map(of(3)), [0, 1, 2, 3]);
    assert_eq!([0, 1, 2, 8, 9].map(of(0)), [0, 0, 1, 7, 7]);
}

#[test]
fn percentiles_have_ceiled_ranks_and_the_last_bucket_by_default() {
    let counts = |counts| Histogram { counts };
    let histogram = counts([400, 50, 30, 10, 5, 3, 1, 1]);
    assert_eq!((histogram.percentile(90), histogram.percentile(99)), (1, 4));
    assert_eq!(counts([495, 0, 0, 0, 5, 0, 0, 0]).percentile(99), 0);
    assert_eq!(counts([494, 0, 0, 0, 6, 0, 0, 0]).percentile(99), 4);
    assert_eq!(counts([0, 0, 0, 0, 0, 0, 0, 1]).percentile(90), 7);
    assert_eq!(counts([1, 0, 0, 0, 0, 0, 0, 0]).percentile(99), 0);
}

/// A controller with enough samples in one bucket for each percentile that is to come out.
fn filled(state: &mut Percentiles, kind: Kind, domain: usize, bucket: Option<u8>) {
    if let Some(bucket) = bucket {
        state.sums[domain][kind as usize].counts[usize::from(bucket)] = 500;
    }
}

#[test]
fn rounds_throttle_the_healthy_domain_while_another_is_congested() {
    let mut state = Percentiles::default();
    let (mut read, mut write) = (256, 128);
    // Round, percentiles of reads and writes (I/O, total), depths afterwards.
    let rounds = [
        ("a", [Some(5), Some(7)], [Some(0), Some(1)], (256, 64)),
        ("b", [Some(2), Some(3)], [Some(0), Some(0)], (256, 64)),
        ("c", [Some(6), Some(6)], [None, None], (256, 16)),
        ("d", [Some(6), Some(6)], [None, None], (256, 16)),
        ("e", [Some(1), Some(2)], [Some(2), Some(5)], (256, 24)),
        ("f", [Some(1), Some(1)], [Some(1), Some(7)], (256, 48)),
        ("g", [Some(1), Some(1)], [Some(1), Some(1)], (256, 48)),
        ("h", [Some(1), Some(1)], [Some(1), Some(1)], (256, 48)),
    ];
    for (n, (name, reads, writes, expected)) in rounds.into_iter().enumerate() {
        for (domain, [io, total]) in [reads, writes].into_iter().enumerate() {
            filled(&mut state, Kind::Io, domain, io);
            filled(&mut state, Kind::Total, domain, total);
        }
        let round = state.round(at_ms(100 * (n as u64 + 1)), Hz(250), [(read, 256), (write, 128), (64, 64)]);
        read = round.depths[0].unwrap_or(read);
        write = round.depths[1].unwrap_or(write);
        assert_eq!((read, write), expected, "round {name}");
        assert_eq!(round.depths[2..], [None, None], "nothing is known of discards, and others are left alone");
    }
}

#[test]
fn a_slow_domain_spends_its_deadline_on_device_latencies() {
    let mut state = Percentiles::default();
    let (mut io, mut total) = (Vec::new(), Vec::new());
    // 100 reads a second, all good; rounds every 100 ms, each 10 reads later.
    for n in 1..=100 {
        for histogram in &mut state.sums[0] {
            histogram.counts[0] += 10;
        }
        let round = state.round(at_ms(100 * n), Hz(250), [(256, 256), (128, 128), (64, 64)]);
        io.extend(round.io[0].map(|reading| (n, reading.samples)));
        total.extend(round.total[0].map(|reading| (n, reading.samples)));
    }
    assert_eq!(io[..5], [(11, 110), (21, 100), (31, 100), (41, 100), (61, 200)]);
    assert_eq!(total, [(50, 500), (100, 500)]);
}

#[test]
fn few_samples_suffice_after_the_deadline() {
    let mut state = Percentiles::default();
    let depths = [(256, 256), (128, 128), (64, 64)];
    filled(&mut state, Kind::Total, 1, Some(6));
    state.sums[1][Kind::Total as usize].counts[6] = 3;
    assert_eq!(state.round(at_ms(0), Hz(250), depths).total[1], None);
    assert_eq!(state.round(at_ms(996), Hz(250), depths).total[1], None);
    let round = state.round(at_ms(1000), Hz(250), depths);
    assert_eq!(round.total[1], Some(LatencyReading { bucket: 6, samples: 3 }));
    assert_eq!(state.round(at_ms(3000), Hz(250), depths), ControllerRound::default());
}

impl Bench {
    /// A request completes at `at_ms`, `io_ns` after its issue and `total_ns` after its allocation. Returns when the
    /// timer is to come, ms, if that was said.
    pub(super) fn complete(&mut self, ms: u64, op: Op, io_ns: u64, total_ns: u64) -> Option<u64> {
        let now = at_ms(ms);
        let mut rq = self.request(0, bio(op, 0));
        self.next -= 1;
        rq.start = Instant(now.at.0 - total_ns);
        rq.issued = Instant(now.at.0 - io_ns);
        let wished = ElevatorCx::alone(now, |cx| {
            self.kyber.on_completed(cx, &rq);
            cx.requested.set_timer
        });
        self.pool.put(rq);
        wished.map(|at| at.0 / 1_000_000)
    }

    pub(super) fn timer(&mut self, ms: u64) -> Option<u64> {
        let wished = ElevatorCx::alone(at_ms(ms), |cx| {
            self.kyber.on_timer(&NoMeter, cx);
            cx.requested.set_timer
        });
        wished.map(|at| at.0 / 1_000_000)
    }
}

#[test]
fn the_timer_comes_100_ms_in_ticks_after_the_first_completion_that_follows_a_round() {
    let mut bench: Bench = Bench::current();
    // A tick is 4 ms: 25 of them are certainly over when the 26th begins.
    assert_eq!(bench.complete(1000, Op::Read, 1, 1), Some(1104));
    assert_eq!(bench.complete(1003, Op::Read, 1, 1), None);
    assert_eq!(bench.complete(1090, Op::Write, 1, 1), None);
    assert_eq!(bench.timer(1104), None, "idle until something completes");
    assert_eq!(bench.complete(5002, Op::Discard, 1, 1), Some(5104));
    assert_eq!(Bench::<Local>::current().complete(1000, Op::WriteZeroes, 1, 1), None, "others are not measured");
}

#[test]
fn p90_is_of_the_device_latency_and_p99_of_the_latency_since_allocation() {
    let mut bench: Bench = Bench::current();
    for n in 0..500 {
        bench.complete(1000 + n / 10, Op::Read, 400_000, 3_900_000);
    }
    bench.timer(1104);
    let round = bench.kyber.last_round().unwrap();
    assert_eq!(round.io[0], Some(LatencyReading { bucket: 0, samples: 500 }));
    assert_eq!(round.total[0], Some(LatencyReading { bucket: 7, samples: 500 }));
}

#[test]
fn congestion_by_reads_cuts_writes_through_the_whole_scheduler() {
    let mut bench: Bench = Bench::current();
    for n in 0..500 {
        bench.complete(1000 + n / 10, Op::Read, 5_000_000, 6_000_000);
        bench.complete(1000 + n / 10, Op::Write, 1_000_000, 2_000_000);
    }
    bench.timer(1104);
    assert_eq!(Domain::ALL.map(|domain| bench.kyber.depth(domain)), [256, 32, 64, 16]);
}

#[test]
fn a_new_target_counts_for_later_samples_and_keeps_the_old_ones() {
    let mut bench: Bench = Bench::current();
    for n in 0..500 {
        if n == 480 {
            bench.kyber.set_tunable("read_lat_nsec", "100000").unwrap();
        }
        bench.complete(1000 + n / 10, Op::Read, 400_000, 400_000);
    }
    bench.timer(1104);
    let round = bench.kyber.last_round().unwrap();
    // 480 in the first bucket and 20 in the last: the 90th percentile is old, the 99th new.
    assert_eq!((round.io[0].map(|r| r.bucket), round.total[0].map(|r| r.bucket)), (Some(0), Some(7)));
}

#[test]
fn a_request_that_never_reached_the_device_is_not_measured() {
    let mut bench: Bench = Bench::current();
    let rq = bench.request(0, bio(Op::Write, 0));
    ElevatorCx::alone(at_ms(1000), |cx| {
        bench.kyber.on_completed(cx, &rq);
        assert_eq!(*cx.requested, RequestedActions::default());
    });
}

#[test]
fn discards_that_miss_their_target_are_congestion_too() {
    let mut state = Percentiles::default();
    filled(&mut state, Kind::Io, 2, Some(4));
    filled(&mut state, Kind::Total, 0, Some(0));
    let round = state.round(at_ms(100), Hz(250), [(256, 256), (128, 128), (64, 64)]);
    assert_eq!(round.depths[0], Some(64));
}

proptest! {
    #[test]
    fn depths_stay_between_1_and_their_maximum(
        rounds in prop::collection::vec(prop::array::uniform6(prop::option::of(0u8..8)), 1..60),
    ) {
        let mut state = Percentiles::default();
        let mut depths = [(256, 256), (128, 128), (64, 64)];
        for (n, buckets) in rounds.into_iter().enumerate() {
            for (index, bucket) in buckets.into_iter().enumerate() {
                filled(&mut state, if index % 2 == 0 { Kind::Io } else { Kind::Total }, index / 2, bucket);
            }
            let round = state.round(at_ms(104 * n as u64), Hz(250), depths);
            for (depth, changed) in depths.iter_mut().zip(round.depths) {
                depth.0 = changed.unwrap_or(depth.0);
                prop_assert!((1..=depth.1).contains(&depth.0));
            }
            prop_assert_eq!(round.depths[3], None);
        }
    }
}
