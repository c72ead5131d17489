//! The controller as a whole. Numbers of IC-1 to IC-23.

mod bounds;

use super::*;
use hoistway_blk::bio::{Bio, BioFlags, Op};
use hoistway_blk::ground::{CgroupId, Instant, Nanos, Sector};

/// A random read of 4 KiB takes 10 us, a sequential one 5 us; likewise writes 20 and 10 us; a byte takes 1 ns.
const MODEL: CostModel = CostModel {
    rbps: 1_000_000_000,
    rseqiops: 200_000,
    rrandiops: 100_000,
    wbps: 1_000_000_000,
    wseqiops: 100_000,
    wrandiops: 50_000,
};

/// The rate of device time is always 100 %.
const EXACT: &str = "enable=1 rpct=0 wpct=0 min=100 max=100";

fn at_us(us: u64) -> Instant {
    Instant::ZERO + Nanos::from_micros(us)
}

/// A device with these settings, and groups with parents and weights.
fn device(settings: &str, groups: &[(u32, u32, u32)]) -> IoCost {
    let mut parsed = IoCostSettings::default();
    parsed.update(settings).expect(settings);
    let mut cost = IoCost::new(parsed.qos, &MODEL);
    for &(group, parent, weight) in groups {
        cost.add_group(CgroupId(group), CgroupId(parent));
        cost.set_weight(CgroupId(group), weight);
    }
    cost
}

/// A random read of 4 KiB: each begins far from the one before.
fn read(group: u32, number: u64) -> Bio {
    Bio { cgroup: CgroupId(group), ..Bio::new(Op::Read, Sector((number * 7919 % 1000 + 1) << 20), 8) }
}

/// A closed loop of a group: bios in flight, the bio for each number, and the time from a completion to the next bio.
struct Loop {
    depth: u32,
    bio: fn(u64) -> Bio,
    think: Nanos,
}

/// Runs loops on a device that serves each bio in `service` and any number at once, until `end`. Returns when each bio passed.
fn run(cost: &mut IoCost, loops: &[Loop], service: Nanos, end: Instant) -> Vec<(Instant, Bio)> {
    let mut numbers = vec![0_u64; loops.len()];
    let mut passed = Vec::new();
    // Arrivals and completions; a completion has a bio.
    let mut events: Vec<(Instant, usize, Option<Bio>)> = Vec::new();
    for (number, submitter) in loops.iter().enumerate() {
        events.extend((0..submitter.depth).map(|_| (Instant::ZERO, number, None)));
    }
    let mut released = Vec::new();
    loop {
        let next = events.iter().enumerate().min_by_key(|(_, (at, ..))| *at).map(|(index, &(at, ..))| (at, index));
        let now = match (next, cost.due()) {
            (Some((at, index)), due) if due.is_none_or(|due| at <= due) => {
                if at > end {
                    return passed;
                }
                let (_, number, bio) = events.swap_remove(index);
                match bio {
                    Some(bio) => {
                        cost.ended(bio.cgroup, bio.op, bio.sectors);
                        cost.completed(at, bio.op, bio.sectors, service);
                        events.push((at + loops[number].think, number, None));
                    }
                    None => {
                        numbers[number] += 1;
                        let bio = Bio { owner: number as u64, ..(loops[number].bio)(numbers[number]) };
                        released.extend(cost.submit(at, bio));
                    }
                }
                at
            }
            (_, Some(due)) => {
                if due > end {
                    return passed;
                }
                cost.release(due, &mut released);
                due
            }
            _ => unreachable!("a bio is in flight or waits"),
        };
        for bio in released.drain(..) {
            passed.push((now, bio.clone()));
            events.push((now + service, bio.owner as usize, Some(bio)));
        }
    }
}

fn saturating(bio: fn(u64) -> Bio) -> Loop {
    Loop { depth: 32, bio, think: Nanos::ZERO }
}

/// Device time of each group, as parts of the sum.
fn parts<const N: usize>(cost: &IoCost, end: Instant, groups: [u32; N]) -> [f64; N] {
    let times = groups.map(|group| cost.group_cost(end, CgroupId(group)).device_time.as_secs_f64());
    let sum: f64 = times.iter().sum();
    times.map(|time| time / sum)
}

fn assert_near<const N: usize>(measured: [f64; N], expected: [f64; N], tolerance: f64) {
    for (measured, expected) in measured.iter().zip(expected) {
        assert!((measured / expected - 1.0).abs() <= tolerance, "{measured} is not near {expected}");
    }
}

const SERVICE: Nanos = Nanos::from_micros(80);

#[test]
fn saturating_groups_share_device_time_by_weight() {
    let mut cost = device(EXACT, &[(1, 0, 100), (2, 0, 200), (3, 0, 400), (4, 0, 800)]);
    let end = at_us(500_000);
    let loops = [|n| read(1, n), |n| read(2, n), |n| read(3, n), |n| read(4, n)].map(saturating);
    let passed = run(&mut cost, &loops, SERVICE, end);
    assert_near(parts(&cost, end, [1, 2, 3, 4]), [1.0 / 15.0, 2.0 / 15.0, 4.0 / 15.0, 8.0 / 15.0], 0.01);
    assert_near([passed.len() as f64], [50_000.0], 0.01);
}

#[test]
fn equal_weights_are_equal_times_whatever_the_size() {
    fn large(number: u64) -> Bio {
        Bio { cgroup: CgroupId(2), ..Bio::new(Op::Read, Sector(number * 256), 256) }
    }
    let mut cost = device(EXACT, &[(1, 0, 100), (2, 0, 100)]);
    let end = at_us(500_000);
    let passed = run(&mut cost, &[saturating(|n| read(1, n)), saturating(large)], SERVICE, end);
    assert_near(parts(&cost, end, [1, 2]), [0.5, 0.5], 0.01);
    // A quarter of a second each: 10 us a read of 4 KiB; 5 us and a nanosecond for each byte beyond 4 KiB.
    let count = |group| passed.iter().filter(|(_, bio)| bio.cgroup == CgroupId(group)).count() as f64;
    assert_near([count(1), count(2)], [25_000.0, 0.25 / (131_072.0 - 4096.0 + 5000.0) * 1e9], 0.02);
}

#[test]
fn three_levels_of_groups_share_by_the_products_of_their_parts() {
    let groups = [(1, 0, 100), (2, 0, 300), (3, 1, 100), (4, 1, 100), (5, 4, 200), (6, 4, 100)];
    let mut cost = device(EXACT, &groups);
    let end = at_us(500_000);
    let loops = [|n| read(2, n), |n| read(3, n), |n| read(5, n), |n| read(6, n)].map(saturating);
    run(&mut cost, &loops, SERVICE, end);
    let expected = [0.75, 0.125, 0.125 * 2.0 / 3.0, 0.125 / 3.0];
    assert_near(parts(&cost, end, [2, 3, 5, 6]), expected, 0.01);
}

#[test]
fn what_a_group_does_not_use_goes_to_the_others() {
    // The first wants a tenth of its quarter: a read of 10 us every 400 us.
    let mut cost = device(EXACT, &[(1, 0, 100), (2, 0, 100), (3, 0, 100), (4, 0, 100)]);
    let end = at_us(1_000_000);
    let slow = Loop { depth: 1, bio: |n| read(1, n), think: Nanos::from_micros(320) };
    let loops = [slow, saturating(|n| read(2, n)), saturating(|n| read(3, n)), saturating(|n| read(4, n))];
    let passed = run(&mut cost, &loops, SERVICE, end);
    let others = passed.iter().filter(|(_, bio)| bio.cgroup != CgroupId(1)).count();
    assert!(others >= 95_000, "{others}");
    let slow = cost.group_cost(end, CgroupId(1));
    assert_near([slow.device_time.as_secs_f64()], [0.025], 0.02);
    assert!(slow.throttled < Nanos::from_millis(5), "{slow:?}");
}

#[test]
fn a_lender_takes_its_share_back_within_a_period() {
    let mut cost = device(EXACT, &[(1, 0, 100), (2, 0, 100)]);
    let loops = [Loop { depth: 1, bio: |n| read(1, n), think: Nanos::from_micros(920) }, saturating(|n| read(2, n))];
    run(&mut cost, &loops, SERVICE, at_us(100_000));
    let before = cost.group_cost(at_us(100_000), CgroupId(1)).device_time;
    // From now on it wants everything: in the next period of 10 ms it has half of the device.
    let mut passed = 0;
    let mut out = Vec::new();
    let mut number = 1_000_000;
    for _ in 0..600 {
        number += 1;
        passed += usize::from(cost.submit(at_us(100_001), read(1, number)).is_some());
    }
    while let Some(due) = cost.due().filter(|&due| due <= at_us(110_001)) {
        cost.release(due, &mut out);
        let own = out.iter().filter(|bio| bio.cgroup == CgroupId(1)).count();
        passed += own;
        // The other group's bios end at once and are followed by others.
        for bio in out.drain(..).filter(|bio| bio.cgroup == CgroupId(2)) {
            cost.ended(bio.cgroup, bio.op, bio.sectors);
            number += 1;
            assert!(cost.submit(due, read(2, number)).is_none());
        }
    }
    assert!((480..=600).contains(&passed), "{passed} reads of 10 us in 10 ms");
    assert!(before < Nanos::from_millis(2), "{before:?}");
}

#[test]
fn a_group_returns_from_idleness_without_credit() {
    let mut cost = device(EXACT, &[(1, 0, 100), (2, 0, 100)]);
    run(&mut cost, &[saturating(|n| read(2, n))], SERVICE, at_us(200_000));
    // It shares the device from the start, however long it was idle: one passes, as it is not ahead yet.
    let mut passed = 0;
    for number in 0..100 {
        passed += usize::from(cost.submit(at_us(200_000), read(1, number)).is_some());
    }
    assert_eq!(passed, 1);
    let mut out = Vec::new();
    while let Some(due) = cost.due().filter(|&due| due <= at_us(201_000)) {
        cost.release(due, &mut out);
    }
    let own = out.iter().filter(|bio| bio.cgroup == CgroupId(1)).count();
    assert!((48..=50).contains(&own), "{own} of 20 us each in 1 ms");
}

#[test]
fn one_that_is_alone_has_the_whole_device_at_once() {
    let mut cost = device(EXACT, &[(1, 0, 1), (2, 0, 10_000)]);
    let passed = run(&mut cost, &[saturating(|n| read(1, n))], SERVICE, at_us(100_000));
    assert_near([passed.len() as f64], [10_000.0], 0.01);
}

#[test]
fn metadata_and_swap_pass_and_the_group_pays_before_anything_else() {
    for flag in [BioFlags::META, BioFlags::SWAP] {
        let mut cost = device(EXACT, &[(1, 0, 100), (2, 0, 100)]);
        assert!(cost.submit(at_us(0), read(1, 1)).is_some());
        assert!(cost.submit(at_us(0), read(1, 2)).is_none(), "ahead by 10 us");
        for number in 3..8 {
            let urgent = Bio { flags: flag, ..Bio::new(Op::Write, Sector(number << 30), 8) };
            assert!(cost.submit(at_us(0), Bio { cgroup: CgroupId(1), ..urgent }).is_some(), "{flag:?}");
        }
        // 10 us for the read, 20 us for each of five writes.
        assert_eq!(cost.due(), Some(at_us(110)));
        assert!(cost.submit(at_us(0), read(2, 1)).is_some(), "the debt is the group's own");
        assert_eq!(cost.due(), Some(at_us(220)), "it owes the same device time, and has half of it from now on");
        let mut out = Vec::new();
        cost.release(Instant(at_us(220).0 - 1), &mut out);
        assert!(out.is_empty());
        cost.release(at_us(220), &mut out);
        assert_eq!(out.len(), 1);
    }
}

#[test]
fn without_enable_everything_passes_at_once() {
    let mut cost = device("enable=0 min=1 max=1", &[(1, 0, 1)]);
    for number in 0..1000 {
        assert!(cost.submit(at_us(0), read(1, number)).is_some());
    }
    assert_eq!((cost.due(), cost.waiting()), (None, 0));
}

#[test]
fn bios_of_the_root_flushes_and_discards_are_not_controlled() {
    let mut cost = device(EXACT, &[(1, 0, 100)]);
    for number in 0..100 {
        assert!(cost.submit(at_us(0), read(0, number)).is_some());
        for (op, sectors) in [(Op::Flush, 0), (Op::Discard, 1 << 20)] {
            let bio = Bio { cgroup: CgroupId(1), ..Bio::new(op, Sector(number), sectors) };
            assert!(cost.submit(at_us(0), bio).is_some());
        }
    }
    assert!(cost.submit(at_us(0), read(1, 1)).is_some());
}

/// The rate after each of the periods in which everything takes `latency`, with a group that waits or without.
fn rates(settings: &str, latency: Nanos, waits: bool, tags: bool, periods: u64) -> Vec<u32> {
    let mut cost = device(settings, &[(1, 0, 100)]);
    let mut out = Vec::new();
    (0..periods)
        .map(|period| {
            let now = at_us(period * 10_000);
            for number in 0..if waits { 5000 } else { 1 } {
                let _ = cost.submit(now, read(1, number));
            }
            cost.completed(now, Op::Read, 8, latency);
            if tags {
                cost.tags_ran_out();
            }
            cost.release(at_us(period * 10_000 + 10_000), &mut out);
            cost.rate().0
        })
        .collect()
}

#[test]
fn device_time_slows_on_late_requests_and_on_tags_and_quickens_for_those_that_wait() {
    let qos = "enable=1 rpct=95 rlat=1000 wpct=0 min=50 max=150";
    let (fast, slow) = (Nanos::from_micros(900), Nanos::from_micros(1100));
    assert_eq!(rates(qos, slow, true, false, 2), [9500, 9025], "late, although a group waits");
    assert_eq!(*rates(qos, slow, false, false, 40).last().unwrap(), 5000, "not below min");
    assert_eq!(rates(qos, fast, false, true, 2), [9900, 9801], "tags ran out");
    assert_eq!(rates(qos, fast, true, false, 2), [10_100, 10_201]);
    assert_eq!(*rates(qos, fast, true, false, 60).last().unwrap(), 15_000, "not above max");
    assert_eq!(rates(qos, fast, false, false, 2), [10_000, 10_000]);
    let unseen = "enable=1 rpct=0 rlat=1000 wpct=0 min=50 max=150";
    assert_eq!(rates(unseen, slow, false, false, 2), [10_000, 10_000], "a percentile of 0 looks at nothing");
}

#[test]
fn device_time_returns_to_the_model_when_nothing_happens() {
    let mut cost = device("enable=1 rpct=95 rlat=1000 wpct=0 min=50 max=150", &[(1, 0, 100)]);
    for period in 0..5 {
        cost.completed(at_us(period * 10_000), Op::Read, 8, Nanos::from_millis(2));
    }
    assert!(cost.rate() < Percent(9_000));
    cost.completed(at_us(10_000_000), Op::Read, 8, Nanos::ZERO);
    assert_eq!(cost.rate(), Percent::WHOLE);
}

#[test]
fn the_time_of_the_data_does_not_count_as_latency() {
    // IC-19: 4 KiB and 1 MiB take 1.5 ms; 1 MiB is half a millisecond or more of data by the model.
    let rate_after = |sectors| {
        let mut cost = device("enable=1 rpct=95 rlat=1000 wpct=0 min=50 max=150", &[(1, 0, 100)]);
        cost.completed(at_us(1), Op::Read, sectors, Nanos::from_micros(1500));
        cost.completed(at_us(10_000), Op::Read, sectors, Nanos::ZERO);
        cost.rate()
    };
    assert!(rate_after(8) < Percent::WHOLE);
    assert_eq!(rate_after(2048), Percent::WHOLE);
}
