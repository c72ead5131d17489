//! The first controller: windows, statuses, adjustments.

use super::super::windows::{CpuMeans, WindowEnd, end_of_window};
use super::*;
use crate::ground::time::Nanos;

const MAXIMA: [u32; 4] = [256, 128, 0, 64];
const TARGETS_NS: [u64; 2] = [2_000_000, 10_000_000];

/// The depths of reads, sync writes and others, and windows that are judged one after another.
struct Windows {
    depths: [u32; 4],
    goes_on: bool,
}

impl Windows {
    fn new() -> Self {
        Windows { depths: MAXIMA, goes_on: false }
    }

    fn with(read: u32, write: u32) -> Self {
        Windows { depths: [read, write, 0, 64], goes_on: false }
    }

    /// Judges a window by means in us; returns the new depths.
    fn end(&mut self, read: Option<u64>, write: Option<u64>, other: Option<u64>) -> (u32, u32, u32) {
        let means = [read, write, None, other].map(|mean| mean.map(Nanos::from_micros));
        let depths = [0, 1, 2, 3].map(|index| (self.depths[index], MAXIMA[index]));
        let WindowEnd { depths, goes_on } = end_of_window(means, TARGETS_NS, depths);
        (self.depths, self.goes_on) = (depths, goes_on);
        (depths[0], depths[1], depths[3])
    }
}

#[test]
fn reads_that_suffer_halve_the_sync_writes_each_window_and_these_do_not_come_back() {
    let mut windows = Windows::new();
    for write in [64, 32, 16, 8, 4, 2, 1] {
        assert_eq!(windows.end(Some(5000), Some(3000), None), (256, write, 64));
        assert!(windows.goes_on);
    }
    assert_eq!(windows.end(Some(1500), Some(3000), None), (256, 1, 64));
    assert!(!windows.goes_on, "none is bad: the controller sleeps");
}

#[test]
fn writes_alone_throttle_the_others() {
    let mut windows = Windows::new();
    assert_eq!(windows.end(None, Some(12_000), Some(1)), (256, 128, 48));
    assert_eq!(windows.end(None, Some(25_000), Some(1)), (256, 128, 24));
    assert_eq!(windows.end(None, Some(4000), Some(1)), (256, 128, 26));
    assert!(windows.goes_on, "because others have fewer tokens than they may");
}

#[test]
fn reads_and_writes_face_each_other() {
    let mut windows = Windows::new();
    assert_eq!(windows.end(Some(3000), Some(15_000), Some(1)), (256, 128, 48));
    assert_eq!(windows.end(Some(5000), Some(30_000), Some(1)), (256, 128, 24));
    assert_eq!(windows.end(Some(900), Some(30_000), Some(1)), (128, 128, 26));
    assert_eq!(windows.end(Some(1500), Some(11_000), None), (112, 128, 26));
    assert_eq!(windows.end(None, None, None), (112, 128, 28));
}

#[test]
fn a_mean_at_the_target_is_good_at_half_of_it_great_and_at_twice_awful() {
    // What an awful partner takes away tells the status: half of great's depth, a quarter of good's.
    let read_against_awful = |mean| Windows::with(100, 100).end(Some(mean), Some(20_000), None).0;
    assert_eq!([1000, 1001, 2000, 2001].map(read_against_awful), [50, 75, 75, 100]);
    // And what a great partner gives: bad gains 1, awful 2.
    let read_against_great = |mean| Windows::with(100, 100).end(Some(mean), Some(5000), None).0;
    assert_eq!([2000, 2001, 3999, 4000].map(read_against_great), [100, 101, 101, 102]);
}

#[test]
fn the_table_of_adjustments_holds_in_every_cell() {
    let (great, good, bad, awful) = (Some(1000), Some(2000), Some(3000), Some(4000));
    let table = [
        (great, [101, 100, 100, 75, 50]),
        (good, [101, 100, 100, 88, 75]),
        (bad, [101, 101, 101, 100, 100]),
        (awful, [101, 101, 102, 100, 100]),
        (None, [100, 100, 100, 100, 100]),
    ];
    let partners = [None, Some(10_000), Some(5000), Some(15_000), Some(20_000)];
    for (this, expected) in table {
        let depths = partners.map(|that| Windows::with(100, 100).end(this, that, None).0);
        assert_eq!(depths, expected, "{this:?}");
    }
    assert_eq!(Windows::with(1, 1).end(great, Some(20_000), None).0, 1, "never below 1");
}

impl Bench {
    fn window_complete(&mut self, ms: u64, op: Op, io_ns: u64) -> Option<u64> {
        self.complete(ms, op, io_ns, io_ns + 50_000_000)
    }
}

#[test]
fn a_window_of_10_ms_is_opened_by_one_violation_and_others_of_100_ms_follow() {
    let mut bench: Bench = Bench::new(KyberGeneration::Windows, &[0]);
    assert_eq!(bench.window_complete(1000, Op::Read, 2_000_000), None, "at the target: no violation");
    assert_eq!(bench.window_complete(1000, Op::Discard, 900_000_000), None, "others have no target");
    assert_eq!(bench.window_complete(1000, Op::Read, 2_000_001), Some(1010));
    assert_eq!(bench.window_complete(1005, Op::Read, 5_000_000), None, "a window is open");
    bench.window_complete(1006, Op::Write, 3_000_000);
    assert_eq!(bench.timer(1010), Some(1110), "reads are bad, so the next window opens at once");
    assert_eq!(bench.kyber.depth(Domain::Write), 64);

    bench.window_complete(1050, Op::Read, 1_500_000);
    assert_eq!(bench.timer(1110), None);
    assert_eq!(bench.kyber.depth(Domain::Write), 64);
    assert_eq!(bench.timer(1500), None, "a late timer changes nothing while no window is open");
    assert_eq!(bench.window_complete(2000, Op::Write, 10_000_001), Some(2010));
    assert_eq!(bench.kyber.last_round(), None);
}

#[test]
fn the_time_that_requests_wait_in_the_first_kyber_does_not_count() {
    let mut bench: Bench = Bench::new(KyberGeneration::Windows, &[0]);
    assert_eq!(bench.complete(1000, Op::Read, 1_000_000, 999_000_000), None);
}

#[test]
fn a_mean_is_taken_over_the_samples_of_all_cpus_since_the_last_one() {
    let means = CpuMeans::<Local>::new(2);
    for (cpu, us) in [(0, 100), (1, 200), (1, 600)] {
        means.add(CpuId(cpu), Domain::Read, Nanos::from_micros(us));
    }
    means.add(CpuId(1), Domain::Other, Nanos::from_micros(7));
    let [read, other] = [300, 7].map(|us| Some(Nanos::from_micros(us)));
    assert_eq!(means.take(), [read, None, None, other]);
    assert_eq!(means.take(), [None; 4]);
}

#[test]
fn others_gain_one_while_the_better_of_the_two_is_good() {
    let others = |read, write| {
        let mut windows = Windows { depths: [100, 100, 0, 40], goes_on: false };
        windows.end(read, write, Some(1)).2
    };
    assert_eq!(others(Some(2000), None), 41);
    assert_eq!(others(Some(2000), Some(15_000)), 41);
    assert_eq!(others(Some(1000), Some(10_000)), 42);
}

#[test]
fn samples_of_more_cpus_than_were_known_count_as_well() {
    let means = CpuMeans::<Local>::new(2);
    means.add(CpuId(5), Domain::Write, Nanos(10));
    means.add(CpuId(0), Domain::Write, Nanos(20));
    assert_eq!(means.take()[Domain::Write.index()], Some(Nanos(15)));
}
