//! What holds for any groups and any submitters.

use proptest::prelude::*;

use super::*;

/// A bio is submitted: time since the one before (us), group, write, KiB, sequential, metadata.
type Arrival = (u64, u32, bool, u32, bool, bool);

/// Parents of groups 1 to 5; three levels.
const PARENTS: [u32; 5] = [0, 0, 1, 1, 3];

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let group = 0..=PARENTS.len() as u32;
    let arrival = (
        prop_oneof![0..200_u64, 0..20_000_u64],
        group,
        any::<bool>(),
        1..64_u32,
        any::<bool>(),
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(arrival, 1..160)
}

fn settings() -> impl Strategy<Value = String> {
    let percent = 1..300_u32;
    (percent, 0..300_u32, 0..=100_u32, 1..5000_u32).prop_map(|(min, more, rpct, rlat)| {
        format!("enable=1 rpct={rpct} rlat={rlat} wpct={rpct} wlat={rlat} min={min} max={}", min + more)
    })
}

/// The least share of the own bios of each group: everything is active.
fn least_shares(weights: [u32; 5]) -> Vec<f64> {
    let children =
        |of: u32| (1..).zip(PARENTS).filter(move |&(_, parent)| parent == of).map(|(group, _)| group as usize);
    // The own bios of a group compete with its children; the root's are not controlled.
    let below = |of: u32| {
        children(of).map(|group| f64::from(weights[group - 1])).sum::<f64>() + if of == 0 { 0.0 } else { 100.0 }
    };
    let mut shares = vec![1.0; PARENTS.len() + 1];
    for group in 1..=PARENTS.len() {
        let parent = PARENTS[group - 1];
        shares[group] = shares[parent as usize] * f64::from(weights[group - 1]) / below(parent);
    }
    (0..).zip(shares).map(|(group, share)| share * 100.0 / below(group).max(100.0)).collect()
}

/// Runs the arrivals to the end, with bios that complete `service` after they passed. Checks at each step that nothing passes ahead of
/// time, that there is always a time at which waiting bios go on, and that it is not in vain for more than a period.
fn check(settings: &str, weights: [u32; 5], arrivals: &[Arrival], service: Nanos) -> Result<(), TestCaseError> {
    let groups: Vec<(u32, u32, u32)> =
        (1..).zip(PARENTS).zip(weights).map(|((group, parent), weight)| (group, parent, weight)).collect();
    let mut cost = device(settings, &groups);
    let mut now = Instant::ZERO;
    let mut left = arrivals.iter().zip(0_u64..).peekable();
    let mut arrives = Instant::ZERO + Nanos::from_micros(arrivals[0].0);
    let mut completions: Vec<(Instant, Bio, Instant)> = Vec::new();
    let mut order: Vec<Vec<u64>> = vec![Vec::new(); PARENTS.len() + 1];
    let mut out = Vec::new();
    // A write of 63 KiB: when the bios of a group wait, the next one passes when its last one is paid at its least share.
    let dearest = Nanos::from_micros(85).0 as f64;
    let rate_min = settings.split("min=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok()).unwrap();
    let longest = least_shares(weights).into_iter().map(|share| dearest / share / rate_min * 100.0 + 1000.0);
    let longest: Vec<f64> = longest.collect();
    let has_metadata = arrivals.iter().any(|&(.., is_meta)| is_meta);
    let mut last_passed = vec![Instant::ZERO; PARENTS.len() + 1];
    let (mut submitted, mut ended, mut steps) = (0, 0, 0);
    while submitted > ended || left.peek().is_some() {
        steps += 1;
        prop_assert!(steps < 200_000, "it makes progress");
        prop_assert_eq!(cost.due().is_some(), cost.waiting() > 0, "a wake-up for what waits, and for nothing else");
        let completion = completions.iter().map(|&(at, ..)| at).min();
        let arrival = left.peek().map(|_| arrives);
        let next = [completion, arrival, cost.due()].into_iter().flatten().min();
        prop_assert!(next.is_some(), "something waits and nothing will happen");
        now = next.unwrap().max(now);
        if completion == next {
            let index = completions.iter().position(|&(at, ..)| Some(at) == next).unwrap();
            let (_, bio, since) = completions.swap_remove(index);
            cost.ended(bio.cgroup, bio.op, bio.sectors);
            cost.completed(now, bio.op, bio.sectors, now.since(since));
            ended += 1;
        } else if arrival == next {
            let (&(_, group, is_write, kib, is_sequential, is_meta), owner) = left.next().unwrap();
            if let Some(((after, ..), _)) = left.peek() {
                arrives += Nanos::from_micros(*after);
            }
            let sector = if is_sequential { owner * 128 } else { (owner * 7919 % 1000) << 20 };
            let op = if is_write { Op::Write } else { Op::Read };
            let flags = if is_meta { BioFlags::META } else { BioFlags::NONE };
            let bio = Bio { cgroup: CgroupId(group), owner, flags, ..Bio::new(op, Sector(sector), kib * 2) };
            submitted += 1;
            let waited = cost.waiting();
            let (is_ahead, before_it) = cost.state_at(now, CgroupId(group));
            let is_controlled = group != 0 && !is_meta;
            match cost.submit(now, bio) {
                Some(bio) => {
                    last_passed[group as usize] = now;
                    prop_assert!(!is_controlled || before_it == 0, "it overtakes its group");
                    prop_assert!(!is_controlled || !is_ahead, "ahead of time");
                    completions.push((now + service, bio, now));
                }
                None => {
                    if before_it == 0 {
                        last_passed[group as usize] = now;
                    }
                    prop_assert_eq!(cost.waiting(), waited + 1);
                }
            }
        } else {
            cost.release(now, &mut out);
            for bio in out.drain(..) {
                let group = bio.cgroup.index();
                let gap_ns = now.since(std::mem::replace(&mut last_passed[group], now)).0 as f64;
                prop_assert!(
                    has_metadata || gap_ns <= longest[group],
                    "group {} waited {} of {} ns",
                    group,
                    gap_ns,
                    longest[group]
                );
                order[bio.cgroup.index()].push(bio.owner);
                completions.push((now + service, bio, now));
            }
            prop_assert!(cost.due().is_none_or(|due| due > now), "everything that is due was released");
        }
    }
    prop_assert!(order.iter().all(|owners| owners.is_sorted()), "first in, first out");
    prop_assert_eq!(cost.waiting(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The longest wait of a group is the time that its last bio costs at its least share.
    #[test]
    fn no_group_waits_for_longer_than_it_owes(
        settings in settings(), weights in prop::array::uniform5(1..=10_000_u32), arrivals in arrivals(),
        service_us in 1..30_000_u64,
    ) {
        let arrivals: Vec<Arrival> = arrivals.into_iter().map(|arrival| (arrival.0, arrival.1, arrival.2, arrival.3, arrival.4, false)).collect();
        check(&settings, weights, &arrivals, Nanos::from_micros(service_us))?;
    }

    #[test]
    fn nothing_is_lost_nothing_overtakes_its_group_and_every_bio_passes_in_the_end(
        settings in settings(), weights in prop::array::uniform5(1..=10_000_u32), arrivals in arrivals(),
        service_us in 1..3000_u64,
    ) {
        check(&settings, weights, &arrivals, Nanos::from_micros(service_us))?;
    }

    /// With any weights: saturating groups share by weight, and together they use all device time.
    #[test]
    fn shares_follow_weights_and_no_device_time_is_lost(weights in prop::array::uniform3(20..=500_u32)) {
        let groups = [(1, 0, weights[0]), (2, 0, weights[1]), (3, 0, weights[2])];
        let mut cost = device(EXACT, &groups);
        let end = at_us(100_000);
        let loops = [|n| read(1, n), |n| read(2, n), |n| read(3, n)].map(saturating);
        let passed = run(&mut cost, &loops, SERVICE, end);
        let sum = f64::from(weights.iter().sum::<u32>());
        for (measured, weight) in parts(&cost, end, [1, 2, 3]).into_iter().zip(weights) {
            let expected = f64::from(weight) / sum;
            prop_assert!((measured / expected - 1.0).abs() < 0.05, "{} {}", measured, expected);
        }
        prop_assert!(passed.len() >= 9_900, "{}", passed.len());
    }
}
