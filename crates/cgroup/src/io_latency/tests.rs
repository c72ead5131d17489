//! The controller as a whole. Numbers of IL-1 to IL-16.

use hoistway_blk::bio::{Bio, BioFlags, Op};
use hoistway_blk::ground::{CgroupId, Instant, Nanos, Sector};
use proptest::prelude::*;

use super::*;

const VICTIM: u32 = 1;
const PEER: u32 = 2;

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Nanos::from_millis(ms)
}

/// A device with 32 requests that does not rotate, and these groups: number, parent, target in us.
fn device(groups: &[(u32, u32, u32)]) -> IoLatency {
    with_groups(IoLatency::new(false, 32), groups)
}

fn with_groups(mut latency: IoLatency, groups: &[(u32, u32, u32)]) -> IoLatency {
    for &(group, parent, us) in groups {
        latency.add_group(CgroupId(group), CgroupId(parent));
        latency.set_target(CgroupId(group), IoLatencyTarget { us });
    }
    latency
}

fn read(group: u32) -> Bio {
    Bio { cgroup: CgroupId(group), ..Bio::new(Op::Read, Sector(0), 8) }
}

fn depth(latency: &IoLatency, group: u32) -> Option<u32> {
    latency.group_latency(Instant::ZERO, CgroupId(group)).depth
}

/// Submits reads of a group; returns how many passed.
fn submit(latency: &mut IoLatency, now: Instant, group: u32, count: usize) -> usize {
    (0..count).filter(|_| latency.submit(now, read(group), 1).is_some()).count()
}

/// A read of a group passes and ends after `us`, at `now`.
fn end(latency: &mut IoLatency, now: Instant, group: u32, us: u64) {
    latency.ended(now, CgroupId(group), Op::Read, 8, Nanos::from_micros(us));
}

/// Windows of 500 ms, each with one read of the victim that takes `us`. Returns the depths of the peer after each.
fn windows(latency: &mut IoLatency, from_ms: u64, count: u64, us: u64) -> Vec<Option<u32>> {
    (1..=count)
        .map(|window| {
            let now = at_ms(from_ms + 500 * window);
            submit(latency, now, VICTIM, 1);
            end(latency, now, VICTIM, us);
            depth(latency, PEER)
        })
        .collect()
}

#[test]
fn a_victim_that_meets_its_target_throttles_nobody() {
    let mut latency = device(&[(VICTIM, 0, 2000), (PEER, 0, 0)]);
    assert_eq!(submit(&mut latency, Instant::ZERO, PEER, 64), 64);
    assert_eq!(windows(&mut latency, 0, 10, 2000), [None; 10], "a latency that equals the target meets it");
    let victim = latency.group_latency(at_ms(5000), CgroupId(VICTIM));
    assert_eq!((victim.windows, victim.missed), (10, 0));
    assert_eq!((victim.average, victim.window), (Nanos::from_micros(2000), Nanos::from_millis(100)));
}

#[test]
fn a_peer_falls_to_depth_one_in_as_many_windows_as_its_depth_can_be_halved() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    assert_eq!(submit(&mut latency, Instant::ZERO, PEER, 32), 32);
    let depths = windows(&mut latency, 0, 6, 1001);
    assert_eq!(depths, [16, 8, 4, 2, 1, 1].map(Some));
    assert_eq!(submit(&mut latency, at_ms(3001), PEER, 1), 0, "32 are outstanding");
    // It passes when the last of the others has ended.
    let mut out = Vec::new();
    for ended in 1..=32 {
        end(&mut latency, at_ms(3002), PEER, 900);
        assert_eq!(latency.due() == Some(at_ms(3002)), ended == 32, "after {ended}");
    }
    latency.release(at_ms(3002), &mut out);
    assert_eq!((out.len(), latency.waiting(), latency.due()), (1, 0, None));
    let peer = latency.group_latency(at_ms(3002), CgroupId(PEER));
    assert_eq!((peer.delayed, peer.throttled, peer.lowest_depth), (1, Nanos::from_millis(1), Some(1)));
}

#[test]
fn only_siblings_with_a_looser_target_are_throttled() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 1001), (3, 0, 1000), (4, 0, 500), (5, PEER, 0), (6, 0, 0)]);
    for group in 3..=6 {
        submit(&mut latency, Instant::ZERO, group, 8);
    }
    assert_eq!(windows(&mut latency, 0, 2, 5000), [16, 8].map(Some), "the eight of its child are outstanding in it");
    assert_eq!([3, 4, 5, 6].map(|group| depth(&latency, group)), [None, None, None, Some(8)]);
    assert_eq!(submit(&mut latency, at_ms(1001), 5, 1), 0, "the depth of a group holds for those below it");
}

#[test]
fn a_leaf_without_targets_on_its_ancestors_protects_nothing() {
    const BATCH: u32 = 2;
    const PODS: u32 = 3;
    const LEAF: u32 = 4;
    let missed = |pods_us: u32| {
        let mut latency = device(&[(BATCH, 0, 0), (PODS, 0, pods_us), (LEAF, PODS, 1000)]);
        submit(&mut latency, Instant::ZERO, BATCH, 32);
        for window in 1..=5 {
            submit(&mut latency, at_ms(500 * window), LEAF, 1);
            end(&mut latency, at_ms(500 * window), LEAF, 9000);
        }
        assert_eq!(latency.group_latency(at_ms(2500), CgroupId(LEAF)).missed, 5);
        depth(&latency, BATCH)
    };
    assert_eq!(missed(0), None);
    assert_eq!(missed(1000), Some(1), "with a target on each level");
}

#[test]
fn a_peer_is_released_step_by_step_when_the_victim_meets_its_target() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    submit(&mut latency, Instant::ZERO, PEER, 8);
    assert_eq!(windows(&mut latency, 0, 5, 5000), [16, 8, 4, 2, 1].map(Some));
    assert_eq!(
        windows(&mut latency, 2500, 5, 500),
        [Some(3), Some(5), Some(7), Some(9), None],
        "steps of two, as many as there were down"
    );
}

#[test]
fn a_peer_is_released_when_the_victim_stops() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    submit(&mut latency, Instant::ZERO, PEER, 4);
    assert_eq!(windows(&mut latency, 0, 5, 5000), [16, 8, 4, 2, 1].map(Some));
    assert_eq!(submit(&mut latency, at_ms(2501), PEER, 12), 0);
    (0..4).for_each(|_| end(&mut latency, at_ms(2501), PEER, 100));
    // One at once; the others as the depth rises by a quarter of the requests, though nothing ends any more.
    let (mut out, mut times) = (Vec::new(), Vec::new());
    while let Some(due) = latency.due() {
        let before = out.len();
        latency.release(due, &mut out);
        times.extend((before..out.len()).map(|_| due));
    }
    let expected: Vec<_> = [(2501, 1), (8500, 8), (9500, 3)].iter().flat_map(|&(ms, n)| vec![at_ms(ms); n]).collect();
    assert_eq!(times, expected);
    assert_eq!(depth(&latency, PEER), Some(17));
    submit(&mut latency, at_ms(11_500), PEER, 1);
    assert_eq!(depth(&latency, PEER), Some(33));
    assert_eq!(submit(&mut latency, at_ms(12_500), PEER, 64), 64, "no limit after five seconds");
}

#[test]
fn a_victim_with_io_in_flight_has_not_stopped() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    submit(&mut latency, Instant::ZERO, PEER, 2);
    assert_eq!(windows(&mut latency, 0, 5, 5000), [16, 8, 4, 2, 1].map(Some));
    submit(&mut latency, at_ms(2600), VICTIM, 1);
    submit(&mut latency, at_ms(60_000), PEER, 1);
    assert_eq!((depth(&latency, PEER), latency.waiting()), (Some(1), 1));
}

#[test]
fn metadata_and_swap_pass_and_delay_their_group_by_a_second_at_a_time_at_most() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    submit(&mut latency, Instant::ZERO, PEER, 2);
    // Reads of the peer take 400 ms.
    end(&mut latency, at_ms(100), PEER, 400_000);
    windows(&mut latency, 100, 5, 5000);
    assert_eq!(depth(&latency, PEER), Some(1));
    for flags in [BioFlags::META, BioFlags::SWAP, BioFlags::META] {
        let bio = Bio { flags, ..read(PEER) };
        assert!(latency.submit(at_ms(2601), bio, 1).is_some(), "it must not wait");
    }
    // One was outstanding: the first would have waited for one I/O, the last for three.
    let charged = latency.group_latency(at_ms(2601), CgroupId(PEER));
    assert_eq!((charged.use_delay, charged.delay), (3, Nanos::from_millis(400 + 800 + 1200)));
    (0..4).for_each(|_| end(&mut latency, at_ms(2602), PEER, 100));
    let mut delays = Vec::new();
    for _ in 0..4 {
        let now = at_ms(10_000 + 5000 * delays.len() as u64);
        let (mut out, passed) = (Vec::new(), latency.submit(now, read(PEER), 1).is_some());
        while !passed && out.is_empty() {
            let due = latency.due().expect("a delay ends");
            latency.release(due, &mut out);
            delays.extend(out.first().map(|_| due.since(now)));
        }
        if passed {
            delays.push(Nanos::ZERO);
        }
        end(&mut latency, now, PEER, 100);
    }
    assert_eq!(delays, [1000, 1000, 400, 0].map(Nanos::from_millis));
    let paid = latency.group_latency(at_ms(40_000), CgroupId(PEER));
    assert_eq!((paid.use_delay, paid.delay), (0, Nanos::ZERO));
}

#[test]
fn windows_end_with_io_alone_and_the_average_decays_by_the_time_of_its_interval() {
    let mut latency = device(&[(VICTIM, 0, 0)]);
    end(&mut latency, at_ms(1000), VICTIM, 1000);
    let figures = |latency: &IoLatency| latency.group_latency(at_ms(0), CgroupId(VICTIM));
    assert_eq!((figures(&latency).windows, figures(&latency).average), (1, Nanos::from_micros(1000)));
    for window in 1..=10 {
        end(&mut latency, at_ms(1000 + 100 * window), VICTIM, 0);
    }
    let average_us = figures(&latency).average.0 / 1000;
    assert!((360..=390).contains(&average_us), "a second later 1/e of it is left: {average_us} us");
    assert_eq!(figures(&latency).windows, 11);
    end(&mut latency, at_ms(9000), VICTIM, 0);
    assert_eq!(figures(&latency).windows, 12, "idle time stretches the window");
}

#[test]
fn a_window_lasts_sixteen_targets_between_a_tenth_of_a_second_and_a_second() {
    let latency = device(&[(1, 0, 0), (2, 0, 1), (3, 0, 10_000), (4, 0, 100_000)]);
    let ms = [1, 2, 3, 4].map(|group| latency.group_latency(Instant::ZERO, CgroupId(group)).window.0 / 1_000_000);
    assert_eq!(ms, [100, 100, 160, 1000]);
}

#[test]
fn a_tenth_of_late_ios_misses_a_target_and_on_a_drive_that_rotates_their_mean() {
    let missed = |rotates: bool, late: u64, us: u64| {
        let mut latency = with_groups(IoLatency::new(rotates, 32), &[(VICTIM, 0, 1000)]);
        (0..100).for_each(|io| end(&mut latency, at_ms(io + 1), VICTIM, if io < late { us } else { 500 }));
        let victim = latency.group_latency(at_ms(100), CgroupId(VICTIM));
        assert_eq!(victim.windows, 1);
        victim.missed == 1
    };
    assert_eq!([6, 9, 10, 15].map(|late| missed(false, late, 1001)), [false, false, true, true]);
    assert!(!missed(false, 9, 1_000_000), "however late");
    assert!(!missed(true, 90, 1050) && missed(true, 6, 10_000), "means of 995 and 1070 us");
}

#[test]
fn windows_that_are_shorter_than_half_a_second_lower_a_depth_twice_a_second() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    submit(&mut latency, Instant::ZERO, PEER, 8);
    let depths = [100, 200, 500, 600, 700, 1000, 1100].map(|ms| {
        end(&mut latency, at_ms(ms), VICTIM, 5000);
        depth(&latency, PEER)
    });
    assert_eq!(depths, [16, 16, 16, 8, 8, 8, 4].map(Some));
}

#[test]
fn flushes_discards_and_the_root_are_neither_counted_nor_held() {
    let mut latency = device(&[(VICTIM, 0, 1000), (PEER, 0, 0)]);
    submit(&mut latency, Instant::ZERO, PEER, 2);
    windows(&mut latency, 0, 4, 5000);
    let of = |op, sectors| Bio { cgroup: CgroupId(PEER), ..Bio::new(op, Sector(0), sectors) };
    for bio in [of(Op::Write, 0), of(Op::Discard, 8), of(Op::WriteZeroes, 8), Bio { cgroup: CgroupId::ROOT, ..read(0) }]
    {
        assert!(latency.submit(at_ms(2001), bio.clone(), 1).is_some());
        latency.ended(at_ms(2001), bio.cgroup, bio.op, bio.sectors, Nanos::ZERO);
    }
    assert_eq!(submit(&mut latency, at_ms(2001), PEER, 1), 0, "two reads are still outstanding");
}

/// Parents and targets of groups 1 to 6; three levels.
const GROUPS: [(u32, u32); 6] = [(0, 1000), (0, 3000), (1, 800), (1, 0), (4, 500), (4, 0)];

proptest! {
    /// Any loads end: what waits always has a time or a completion to wait for, no bio exceeds a depth, and each group's bios pass in order.
    #[test]
    fn every_wait_ends_and_no_depth_is_exceeded(
        arrivals in prop::collection::vec((0..30_000_u64, 0..=6_u32, 1..4_u32, prop::bool::weighted(0.05)), 1..300),
        service_us in 100..100_000_u64,
    ) {
        let groups: Vec<_> = (1..).zip(GROUPS).map(|(group, (parent, us))| (group, parent, us)).collect();
        let mut latency = with_groups(IoLatency::new(service_us % 2 == 0, 4), &groups);
        let (mut now, mut arrives, mut out) = (Instant::ZERO, Instant::ZERO, Vec::new());
        let mut left = arrivals.iter().zip(0_u64..).peekable();
        let mut in_flight: Vec<(Instant, Bio)> = Vec::new();
        let mut last_owner = [None; 7];
        let (mut ended, mut steps) = (0, 0);
        while ended < arrivals.len() {
            steps += 1;
            prop_assert!(steps < 100_000, "it makes progress");
            let completion = in_flight.iter().map(|&(at, _)| at).min();
            let arrival = left.peek().map(|_| arrives);
            let next = [completion, arrival, latency.due()].into_iter().flatten().min();
            prop_assert!(next.is_some(), "{} wait and nothing will happen", latency.waiting());
            now = next.unwrap_or(now).max(now);
            if latency.due() == next {
                let limits: Vec<_> = (0..=6).map(|group| depth(&latency, group)).collect();
                latency.release(now, &mut out);
                prop_assert!(!(out.is_empty() && limits.iter().all(Option::is_none) && latency.due() == next), "in vain");
            } else if completion == next {
                let index = in_flight.iter().position(|&(at, _)| Some(at) == next).unwrap();
                let (_, bio) = in_flight.swap_remove(index);
                let parts = bio.segments;
                // Twice as long for each further part, so that windows miss their targets and meet them.
                (0..parts).for_each(|_| latency.ended(now, bio.cgroup, bio.op, 8, Nanos::from_micros(service_us / 4 * u64::from(parts))));
                ended += 1;
            } else if let Some((&(_, group, parts, is_meta), owner)) = left.next() {
                arrives += Nanos::from_micros(left.peek().map_or(0, |((after, ..), _)| *after));
                let flags = if is_meta { BioFlags::META } else { BioFlags::NONE };
                let bio = Bio { owner, flags, segments: parts as u16, ..read(group) };
                out.extend(latency.submit(now, bio, parts));
            }
            for bio in out.drain(..) {
                if !bio.flags.contains(BioFlags::META) {
                    let before = last_owner[bio.cgroup.index()].replace(bio.owner);
                    prop_assert!(before < Some(bio.owner), "it overtakes its group");
                }
                in_flight.push((now + Nanos::from_micros(service_us * u64::from(bio.segments)), bio));
            }
        }
        prop_assert_eq!((latency.waiting(), latency.due()), (0, None));
    }
}
