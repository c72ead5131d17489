//! The throttle as a whole. Numbers of CG-9 to CG-15.

mod bounds;

use super::*;
use hoistway_blk::bio::{Bio, BioFlags, Op};
use hoistway_blk::ground::{CgroupId, Instant, Nanos, Sector};

const P: CgroupId = CgroupId(1);
const A: CgroupId = CgroupId(2);
const B: CgroupId = CgroupId(3);

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Nanos::from_millis(ms)
}

fn limits(text: &str) -> IoMax {
    let mut limits = IoMax::default();
    limits.update(text).expect(text);
    limits
}

fn bio(op: Op, cgroup: CgroupId, kib: u32, owner: u64) -> Bio {
    Bio { cgroup, owner, ..Bio::new(op, Sector(0), kib * 2) }
}

/// Limits of groups below `P`, which is below the root.
fn throttle(of: &[(CgroupId, &str)]) -> Throttle {
    let mut throttle = Throttle::new(THROTTLE_SLICE);
    throttle.add_group(P, CgroupId::ROOT);
    for child in [A, B] {
        throttle.add_group(child, P);
    }
    for &(cgroup, text) in of {
        throttle.set_limits(Instant::ZERO, cgroup, limits(text));
    }
    throttle
}

/// Everything that is due at `now`, round after round.
fn release_all(throttle: &mut Throttle, now: Instant) -> Vec<Bio> {
    let mut out = Vec::new();
    while throttle.due().is_some_and(|due| due <= now) {
        throttle.release(now, &mut out);
    }
    out
}

/// Submitters that each keep some bios outstanding on a device that takes no time, until `end`: when which went.
fn closed_loop(throttle: &mut Throttle, jobs: &[(Op, CgroupId, u32, u32)], end: Instant) -> Vec<(Instant, Bio)> {
    let mut sent = Vec::new();
    let mut now = Instant::ZERO;
    let mut next: Vec<Bio> = Vec::new();
    for &(op, cgroup, kib, depth) in jobs {
        next.extend((0..depth).map(|_| bio(op, cgroup, kib, 0)));
    }
    loop {
        // Every bio that goes is followed by another one of its submitter.
        while let Some(bio) = next.pop() {
            if let Some(bio) = throttle.submit(now, bio, Charge::Whole) {
                sent.push((now, bio.clone()));
                next.push(bio);
            }
        }
        match throttle.due() {
            Some(due) if due <= end => now = now.max(due),
            _ => return sent,
        }
        throttle.release(now, &mut next);
        sent.extend(next.iter().map(|bio| (now, bio.clone())));
    }
}

/// Bios of the first `seconds`, per second.
fn per_second(sent: &[(Instant, Bio)], seconds: u64) -> f64 {
    sent.iter().filter(|(at, _)| *at < at_ms(1000 * seconds)).count() as f64 / seconds as f64
}

#[test]
fn a_limit_of_1_mib_gives_256_iops_of_4_kib_and_4_mib_take_4_s_within_a_slice() {
    let mut throttle = throttle(&[(P, "rbps=1048576")]);
    let sent = closed_loop(&mut throttle, &[(Op::Read, P, 4, 1)], at_ms(40_000));
    let (last, _) = sent[1023];
    assert!(last > at_ms(3_900) && last <= at_ms(4_000), "{last:?}");
    assert!((per_second(&sent, 40) - 256.0).abs() < 1.0, "{}", per_second(&sent, 40));
}

#[test]
fn the_stricter_of_two_limits_binds_100_operations_and_1_mib_give_16_reads_of_64_kib() {
    let mut throttle = throttle(&[(P, "riops=100 rbps=1048576")]);
    let sent = closed_loop(&mut throttle, &[(Op::Read, P, 64, 4)], at_ms(20_000));
    assert!((per_second(&sent, 20) - 16.0).abs() <= 0.1, "{}", per_second(&sent, 20));
}

#[test]
fn riops_100_gives_100_reads_in_every_second_and_10_in_every_slice() {
    let mut throttle = throttle(&[(P, "riops=100")]);
    let sent = closed_loop(&mut throttle, &[(Op::Read, P, 4, 32)], at_ms(10_000));
    for slice in 0..100 {
        let range = at_ms(slice * 100)..at_ms(slice * 100 + 100);
        assert_eq!(sent.iter().filter(|(at, _)| range.contains(at)).count(), 10, "slice {slice}");
    }
}

#[test]
fn small_limits_that_do_not_divide_into_slices_are_met_exactly() {
    for iops in [2, 3, 7, 15, 105] {
        let mut throttle = throttle(&[(P, &format!("wiops={iops}"))]);
        let sent = closed_loop(&mut throttle, &[(Op::Write, P, 4, 2)], at_ms(20_000));
        assert!((per_second(&sent, 20) - iops as f64).abs() <= 0.1, "{iops}: {}", per_second(&sent, 20));
    }
}

#[test]
fn reads_and_writes_are_limited_independently() {
    let mut throttle = throttle(&[(P, "riops=10 wiops=20")]);
    let sent = closed_loop(&mut throttle, &[(Op::Read, P, 4, 8), (Op::Write, P, 4, 8)], at_ms(10_000));
    let (reads, writes): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(_, bio)| bio.op == Op::Read);
    assert_eq!((per_second(&reads, 10), per_second(&writes, 10)), (10.0, 20.0));

    let mut throttle = self::throttle(&[(P, "rbps=2")]);
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 4, 0), Charge::Whole).is_none());
    assert!(throttle.submit(at_ms(0), bio(Op::Write, P, 4, 0), Charge::Whole).is_some(), "writes have no limit");
}

#[test]
fn e5_children_without_limits_share_the_120_iops_of_their_parent_12_in_each_slice_and_fairly() {
    let mut throttle = throttle(&[(P, "wiops=120")]);
    let sent = closed_loop(&mut throttle, &[(Op::Write, A, 4, 8), (Op::Write, B, 4, 8)], at_ms(10_000));
    for slice in 0..100 {
        let range = at_ms(slice * 100)..at_ms(slice * 100 + 100);
        let of = |child| sent.iter().filter(|(at, bio)| range.contains(at) && bio.cgroup == child).count();
        assert_eq!(of(A) + of(B), 12, "slice {slice}");
        // The first slice is open to the first that comes: fairness is a matter of waiting bios.
        assert!(slice == 0 || of(A) == 6, "slice {slice}: {} and {}", of(A), of(B));
    }
}

#[test]
fn children_alternate_bio_by_bio_however_many_each_of_them_has_waiting() {
    let mut throttle = throttle(&[(P, "riops=40")]);
    for owner in 0..4 {
        assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 4, owner), Charge::Whole).is_some());
    }
    for (cgroup, owners) in [(A, 10..16), (B, 20..22), (P, 30..31)] {
        for owner in owners {
            assert!(throttle.submit(at_ms(0), bio(Op::Read, cgroup, 4, owner), Charge::Whole).is_none());
        }
    }
    let mut order = Vec::new();
    while let Some(due) = throttle.due() {
        order.extend(release_all(&mut throttle, due).iter().map(|bio| bio.owner));
    }
    assert_eq!(order, [10, 20, 30, 11, 21, 12, 13, 14, 15]);
}

#[test]
fn a_bio_must_satisfy_its_own_group_and_every_ancestor() {
    // Each of the three levels is the strictest once.
    for (limits, expected) in [
        ([(P, "riops=20"), (A, "riops=50")], 20.0),
        ([(P, "riops=50"), (A, "riops=20")], 20.0),
        ([(P, "rbps=40960"), (A, "riops=50")], 10.0),
    ] {
        let mut throttle = throttle(&limits);
        let sent = closed_loop(&mut throttle, &[(Op::Read, A, 4, 8)], at_ms(10_000));
        assert!((per_second(&sent, 10) - expected).abs() <= 0.2, "{limits:?}: {}", per_second(&sent, 10));
    }
}

#[test]
fn a_child_that_is_slow_by_itself_leaves_the_rest_to_its_sibling() {
    let mut throttle = throttle(&[(P, "wiops=100"), (A, "wiops=20")]);
    let sent = closed_loop(&mut throttle, &[(Op::Write, A, 4, 8), (Op::Write, B, 4, 8)], at_ms(10_000));
    let (slow, rest): (Vec<_>, Vec<_>) = sent.into_iter().partition(|(_, bio)| bio.cgroup == A);
    assert!((per_second(&slow, 10) - 20.0).abs() <= 0.5, "{}", per_second(&slow, 10));
    assert!((per_second(&rest, 10) - 80.0).abs() <= 0.5, "{}", per_second(&rest, 10));
}

#[test]
fn equal_limits_at_two_levels_make_a_long_bio_wait_once() {
    let mut one = throttle(&[(A, "rbps=1048576")]);
    let mut both = throttle(&[(P, "rbps=1048576"), (A, "rbps=1048576")]);
    for throttle in [&mut one, &mut both] {
        assert!(throttle.submit(at_ms(0), bio(Op::Read, A, 1024, 0), Charge::Whole).is_none());
        let due = throttle.due().unwrap();
        assert_eq!((due, release_all(throttle, due).len()), (at_ms(1_000), 1));
    }
}

#[test]
fn an_idle_device_lifts_no_limit() {
    let mut throttle = throttle(&[(P, "riops=10")]);
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 4, 0), Charge::Whole).is_some());
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 4, 1), Charge::Whole).is_none());
    assert!(release_all(&mut throttle, Instant(at_ms(100).0 - 1)).is_empty());
    assert_eq!(throttle.due(), Some(at_ms(100)));
}

#[test]
fn unused_time_is_worth_no_more_than_one_slice() {
    for idle_until in [at_ms(199), at_ms(200), at_ms(5_000)] {
        let mut throttle = throttle(&[(P, "riops=50")]);
        assert!(throttle.submit(at_ms(99), bio(Op::Read, P, 4, 0), Charge::Whole).is_some());
        let passed = (0..20)
            .filter(|&owner| throttle.submit(idle_until, bio(Op::Read, P, 4, owner), Charge::Whole).is_some())
            .count();
        assert_eq!(passed, 5);
    }
}

/// The rule rounds the time that has elapsed up, so "one slice" cannot be promised to a group that was idle.
#[test]
fn two_slices_worth_can_go_within_a_moment_at_the_border_of_slices() {
    let mut throttle = throttle(&[(P, "riops=100")]);
    let mut passed = |ms| {
        (0..20).filter(|&owner| throttle.submit(at_ms(ms), bio(Op::Read, P, 4, owner), Charge::Whole).is_some()).count()
    };
    assert_eq!((passed(0), passed(1)), (10, 0));
    let mut throttle = self::throttle(&[(P, "riops=100")]);
    let mut passed = |ms, count| {
        (0..count).filter(|_| throttle.submit(at_ms(ms), bio(Op::Read, P, 4, 0), Charge::Whole).is_some()).count()
    };
    assert_eq!((passed(0, 1), passed(99, 9), passed(100, 10)), (1, 9, 10));
}

#[test]
fn a_shorter_slice_makes_shorter_bursts_of_the_same_rate() {
    let mut throttle = Throttle::new(THROTTLE_SLICE_WITH_LOW_LIMIT);
    throttle.set_limits(Instant::ZERO, P, limits("riops=100"));
    let sent = closed_loop(&mut throttle, &[(Op::Read, P, 4, 8)], at_ms(10_000));
    assert_eq!(sent.iter().filter(|(at, _)| *at < at_ms(20)).count(), 2);
    assert_eq!(per_second(&sent, 10), 100.0);
}

#[test]
fn removed_limits_let_everything_go_at_once_and_in_order() {
    let mut throttle = throttle(&[(P, "wbps=2")]);
    for owner in 0..100 {
        assert!(throttle.submit(at_ms(0), bio(Op::Write, A, 4, owner), Charge::Whole).is_none());
    }
    assert_eq!(throttle.waiting(), 100);
    throttle.set_limits(at_ms(50), P, limits("wbps=max"));
    assert_eq!(throttle.limits(P), IoMax::default());
    let owners: Vec<u64> = release_all(&mut throttle, at_ms(50)).iter().map(|bio| bio.owner).collect();
    assert_eq!(owners, (0..100).collect::<Vec<_>>());
    assert!(throttle.is_empty() && throttle.due().is_none());
}

#[test]
fn a_waiting_bio_keeps_its_accrued_credit_when_the_limits_change() {
    let mut throttle = throttle(&[(P, "rbps=1048576")]);
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 1024, 0), Charge::Whole).is_none());
    assert_eq!(throttle.due(), Some(at_ms(1_000)));
    // Half is saved; the other half takes a quarter of a second at twice the rate.
    throttle.set_limits(at_ms(500), P, limits("rbps=2097152"));
    assert_eq!(throttle.due(), Some(at_ms(750)));
    throttle.set_limits(at_ms(600), P, limits("rbps=104857"));
    assert!(throttle.due().is_some_and(|due| due > at_ms(3_000)), "{:?}", throttle.due());
}

#[test]
fn a_burst_is_not_forgotten_by_writing_the_same_limits_again() {
    let mut throttle = throttle(&[(P, "riops=100")]);
    let mut passed = 0;
    for ms in 0..1_000 {
        throttle.set_limits(at_ms(ms), P, limits("riops=100"));
        while throttle.submit(at_ms(ms), bio(Op::Read, P, 4, 0), Charge::Whole).is_some() {
            passed += 1;
        }
        release_all(&mut throttle, at_ms(ms));
    }
    assert!(passed <= 120, "{passed}");
}

#[test]
fn a_discard_costs_512_bytes_regardless_of_length() {
    let mut throttle = throttle(&[(P, "wbps=10240")]);
    for _ in 0..2 {
        assert!(throttle.submit(at_ms(0), bio(Op::Discard, P, 1 << 20, 0), Charge::Whole).is_some());
    }
    assert!(throttle.submit(at_ms(0), bio(Op::Discard, P, 4, 0), Charge::Whole).is_none());
}

#[test]
fn parts_of_a_split_bio_cost_an_operation_each_but_their_bytes_once() {
    let mut throttle = throttle(&[(P, "rbps=1048576 riops=40")]);
    // A slice is worth 102.4 KiB and 4 operations.
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 100, 0), Charge::Whole).is_some());
    for _ in 0..3 {
        assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 75, 0), Charge::Part).is_some());
    }
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 25, 0), Charge::Part).is_none(), "the fifth operation");
    assert_eq!(throttle.due(), Some(at_ms(100)));
}

#[test]
fn a_bio_that_will_be_cut_goes_when_all_its_parts_may_and_costs_an_operation_for_each() {
    let mut throttle = throttle(&[(A, "riops=100")]);
    let large = |owner| bio(Op::Read, A, 64, owner);
    assert!(throttle.submit(at_ms(0), large(0), Charge::Parts(8)).is_some());
    assert!(throttle.submit(at_ms(0), large(1), Charge::Parts(8)).is_none(), "10 in a slice");
    assert_eq!(throttle.due(), Some(at_ms(100)), "16 are allowed in two slices");
    assert_eq!(release_all(&mut throttle, at_ms(100)).len(), 1);
}

#[test]
fn metadata_and_swap_pass_at_once_and_the_others_pay_their_debt() {
    for flag in [BioFlags::META, BioFlags::SWAP] {
        let mut throttle = throttle(&[(P, "wbps=1048576")]);
        let urgent = Bio { flags: flag, ..bio(Op::Write, A, 1024, 0) };
        assert!(throttle.submit(at_ms(0), urgent.clone(), Charge::Whole).is_some());
        // A debt of a second is not forgotten with the slice in which it was made.
        assert!(throttle.submit(at_ms(500), bio(Op::Write, A, 4, 1), Charge::Whole).is_none());
        let due = throttle.due().unwrap();
        assert!(due > at_ms(900) && due < at_ms(1_010), "{due:?}");
        // One that overtakes a waiting bio makes it wait longer.
        assert!(throttle.submit(at_ms(600), urgent, Charge::Whole).is_some());
        assert_eq!(throttle.due(), Some(due + Nanos::from_secs(1)));
    }
}

#[test]
fn a_bio_that_overtakes_takes_nothing_that_a_waiting_one_has_saved() {
    let mut throttle = throttle(&[(P, "wbps=1048576")]);
    assert!(throttle.submit(at_ms(0), bio(Op::Write, P, 1024, 0), Charge::Whole).is_none());
    let empty = Bio { flags: BioFlags::META, ..bio(Op::Write, P, 0, 1) };
    assert!(throttle.submit(at_ms(500), empty, Charge::Whole).is_some());
    assert_eq!(throttle.due(), Some(at_ms(1_000)));
}

#[test]
fn a_round_takes_6_reads_and_2_writes_of_a_group_in_turn_and_32_in_all() {
    let mut throttle = Throttle::new(THROTTLE_SLICE);
    let groups: Vec<CgroupId> = (1..=5).map(CgroupId).collect();
    for &group in &groups {
        throttle.set_limits(at_ms(0), group, limits("riops=2 wiops=2"));
        for owner in 0..20 {
            for op in [Op::Read, Op::Write] {
                assert!(throttle.submit(at_ms(0), bio(op, group, 4, owner), Charge::Whole).is_none());
            }
        }
        throttle.set_limits(at_ms(0), group, IoMax::default());
    }
    let mut out = Vec::new();
    throttle.release(at_ms(0), &mut out);
    assert_eq!(out.len(), THROTTLE_ROUND);
    for (turn, group) in out.chunks(8).zip(&groups) {
        let ops: Vec<Op> = turn.iter().map(|bio| bio.op).collect();
        assert!(turn.iter().all(|bio| bio.cgroup == *group));
        assert_eq!(ops, [[Op::Read; 6].as_slice(), &[Op::Write; 2]].concat());
    }
    assert_eq!(throttle.due(), Some(at_ms(0)), "there is another round");
    out.clear();
    throttle.release(at_ms(0), &mut out);
    assert_eq!(out[0].cgroup, groups[4], "whose turn did not come");
}

#[test]
fn groups_go_by_earliest_release_time() {
    let mut throttle = throttle(&[(A, "rbps=1048576"), (B, "rbps=1048576")]);
    for (cgroup, kib) in [(A, 800), (B, 400), (CgroupId(9), 4)] {
        let passed = throttle.submit(at_ms(0), bio(Op::Read, cgroup, kib, 0), Charge::Whole).is_some();
        assert_eq!(passed, cgroup == CgroupId(9), "an unknown cgroup has no limits");
    }
    let order: Vec<CgroupId> = release_all(&mut throttle, at_ms(2_000)).iter().map(|bio| bio.cgroup).collect();
    assert_eq!(order, [B, A]);
}

#[test]
fn bios_that_were_kept_are_counted_in_their_own_group_by_direction() {
    let mut throttle = throttle(&[(P, "wiops=10")]);
    for _ in 0..3 {
        let _ = throttle.submit(at_ms(0), bio(Op::Write, A, 4, 0), Charge::Whole);
        let _ = throttle.submit(at_ms(0), bio(Op::Read, A, 4, 0), Charge::Whole);
    }
    release_all(&mut throttle, at_ms(10_000));
    assert_eq!((throttle.throttled(A), throttle.throttled(P)), ([0, 2], [0, 0]));
}

#[test]
#[should_panic(expected = "root cgroup has no io.max")]
fn the_root_takes_no_limits() {
    Throttle::<Bio>::new(THROTTLE_SLICE).set_limits(at_ms(0), CgroupId::ROOT, IoMax::default());
}

#[test]
fn the_largest_rates_and_times_do_not_overflow() {
    let mut throttle = throttle(&[(P, "rbps=18446744073709551614 riops=4294967294")]);
    assert!(throttle.submit(at_ms(0), bio(Op::Read, P, 4, 0), Charge::Whole).is_some());
    assert!(throttle.submit(Instant(u64::MAX - 1), bio(Op::Read, P, 1 << 20, 0), Charge::Whole).is_some());
    let mut throttle = self::throttle(&[(P, "rbps=2 riops=2")]);
    let late = Instant(u64::MAX - 1);
    for _ in 0..3 {
        assert!(throttle.submit(late, bio(Op::Read, P, 1 << 20, 0), Charge::Whole).is_none());
    }
    assert_eq!(throttle.due(), Some(Instant::NEVER));
}
