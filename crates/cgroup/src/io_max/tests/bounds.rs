//! What holds for any limits and any submitters.

use proptest::prelude::*;

use super::*;
use hoistway_blk::bio::Direction;

/// `P`, its children `A` and `B`, and a child of `A`.
const GROUPS: [CgroupId; 4] = [P, A, B, CgroupId(4)];
/// Whose I/O each of them limits.
const BELOW: [&[usize]; 4] = [&[0, 1, 2, 3], &[1, 3], &[2], &[3]];
/// What each of them is below of.
const ABOVE: [&[usize]; 4] = [&[], &[0], &[0], &[0, 1]];

const KIB_MAX: u32 = 64;

/// A bio is submitted.
#[derive(Clone, Debug)]
struct Arrival {
    /// Since the arrival before.
    after: Nanos,
    group: usize,
    op: Op,
    kib: u32,
}

/// Limits of one direction, `None` for max.
type Limited = (Option<u64>, Option<u32>);

fn some_limits() -> impl Strategy<Value = Limited> {
    // From a bio in some seconds to more than any asks for.
    let limits = (prop::option::of(4_000..20_000_000_u64), prop::option::of(2..3_000_u32));
    prop_oneof![Just((None, None)), limits]
}

/// With both limits, what waits for one of them saves up for the other.
fn one_limit() -> impl Strategy<Value = Limited> {
    some_limits().prop_map(|(bps, iops)| if bps.is_some() { (bps, None) } else { (None, iops) })
}

fn arrivals(pause_us: u64) -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0..pause_us, 0..GROUPS.len(), any::<bool>(), 0..=KIB_MAX).prop_map(|(us, group, is_read, kib)| {
        let op = if is_read { Op::Read } else { Op::Write };
        Arrival { after: Nanos::from_micros(us), group, op, kib }
    });
    prop::collection::vec(arrival, 1..200)
}

fn io_max((read, write): (Limited, Limited)) -> IoMax {
    IoMax { rbps: read.0, riops: read.1, wbps: write.0, wiops: write.1 }
}

/// Runs the arrivals to the end: what went when. Wherever it waits, it goes `lateness` after it is due.
fn run(limits: &[IoMax; 4], arrivals: &[Arrival], lateness: Nanos) -> Vec<(Instant, Bio)> {
    let mut throttle = Throttle::new(THROTTLE_SLICE);
    for (group, parent) in [(0, CgroupId::ROOT), (1, P), (2, P), (3, A)] {
        throttle.add_group(GROUPS[group], parent);
        throttle.set_limits(Instant::ZERO, GROUPS[group], limits[group]);
    }
    let mut sent = Vec::new();
    let mut released = Vec::new();
    let mut now = Instant::ZERO;
    let mut left = arrivals.iter().enumerate();
    let mut next = left.next();
    let mut arrives = Instant::ZERO + arrivals[0].after;
    loop {
        let due = throttle.due().map(|due| (due + lateness).max(now));
        match (next, due) {
            (Some((owner, arrival)), due) if due.is_none_or(|due| arrives < due) => {
                now = arrives;
                let bio = bio(arrival.op, GROUPS[arrival.group], arrival.kib, owner as u64);
                sent.extend(throttle.submit(now, bio, Charge::Whole).map(|bio| (now, bio)));
                next = left.next();
                if let Some((_, arrival)) = next {
                    arrives += arrival.after;
                }
            }
            (_, Some(due)) => {
                now = due;
                throttle.release(now, &mut released);
                sent.extend(released.drain(..).map(|bio| (now, bio)));
            }
            (_, None) => break,
        }
    }
    assert!(throttle.is_empty() && throttle.waiting() == 0, "everything is released in the end");
    sent
}

/// Checks every interval between two bios of a group and its descendants: never more than the rate times the interval
/// and `slices`, and one bio. What has passed a group may be held back further above and then go together, so of a
/// group below other limits only the intervals from the very beginning are checked.
fn check_rates(limits: &[IoMax; 4], sent: &[(Instant, Bio)], slices: u64) -> Result<(), TestCaseError> {
    for (group, below) in BELOW.iter().enumerate() {
        for direction in Direction::BOTH {
            let of_group: Vec<(Instant, u64)> = sent
                .iter()
                .filter(|(_, bio)| bio.op.direction() == direction && below.iter().any(|&at| GROUPS[at] == bio.cgroup))
                .map(|(at, bio)| (*at, u64::from(bio.sectors) * 512))
                .collect();
            let rate = limits[group].rate(direction);
            let is_topmost = ABOVE[group].iter().all(|&at| limits[at].rate(direction).is_unlimited());
            let starts = of_group.iter().map(|&(from, _)| from).enumerate();
            for (first, from) in starts.filter(|_| is_topmost).chain([(0, Instant::ZERO)]) {
                let (mut bytes, mut operations) = (0, 0);
                for (to, len) in &of_group[first..] {
                    bytes += len;
                    operations += 1;
                    let time = to.since(from).as_secs_f64() + slices as f64 * THROTTLE_SLICE.as_secs_f64();
                    if let Some(bps) = rate.bps {
                        let most = bps as f64 * time + f64::from(KIB_MAX * 1024);
                        prop_assert!(bytes as f64 <= most, "group {group}: {bytes} bytes from {from:?} to {to:?}");
                    }
                    if let Some(iops) = rate.iops {
                        let most = iops as f64 * time + 1.000_001;
                        prop_assert!(f64::from(operations) <= most, "group {group}: {operations} by {to:?}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// Every bio has gone, in the order of submission of its group and direction.
fn check_order(arrivals: &[Arrival], sent: &[(Instant, Bio)]) -> Result<(), TestCaseError> {
    prop_assert_eq!(sent.len(), arrivals.len(), "nothing is lost or sent twice");
    for group in GROUPS {
        for direction in Direction::BOTH {
            let mut of_group = sent
                .iter()
                .filter(|(_, bio)| bio.cgroup == group && bio.op.direction() == direction)
                .map(|(_, bio)| bio.owner);
            prop_assert!(of_group.by_ref().is_sorted_by(|first, second| first < second));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_interval_sees_more_than_the_rate_two_slices_and_a_bio_and_nothing_is_lost_or_overtaken(
        limits in prop::array::uniform4((some_limits(), some_limits()).prop_map(io_max)),
        arrivals in arrivals(30_000),
        lateness_us in prop_oneof![Just(0), 0..250_000_u64],
    ) {
        let sent = run(&limits, &arrivals, Nanos::from_micros(lateness_us));
        check_order(&arrivals, &sent)?;
        check_rates(&limits, &sent, 2)?;
    }

    #[test]
    fn with_waiting_bios_no_interval_exceeds_the_rate_plus_a_slice_and_a_bio(
        limit in (one_limit(), one_limit()).prop_map(io_max),
        // All at once, so that the group always has something to send.
        arrivals in arrivals(1),
    ) {
        let limits = [limit, IoMax::default(), IoMax::default(), IoMax::default()];
        let sent = run(&limits, &arrivals, Nanos::ZERO);
        check_order(&arrivals, &sent)?;
        check_rates(&limits, &sent, 1)?;
    }

    #[test]
    fn a_due_bio_is_always_released(
        limits in prop::array::uniform4((some_limits(), some_limits()).prop_map(io_max)),
        arrivals in arrivals(3_000),
    ) {
        let mut throttle = Throttle::new(THROTTLE_SLICE);
        for (group, parent) in [(0, CgroupId::ROOT), (1, P), (2, P), (3, A)] {
            throttle.add_group(GROUPS[group], parent);
            throttle.set_limits(Instant::ZERO, GROUPS[group], limits[group]);
        }
        for arrival in &arrivals {
            let _ = throttle.submit(Instant::ZERO, bio(arrival.op, GROUPS[arrival.group], arrival.kib, 0), Charge::Whole);
        }
        // A bio moves up at most three levels.
        let mut out = Vec::new();
        let mut rounds = 0;
        while let Some(due) = throttle.due() {
            throttle.release(due, &mut out);
            rounds += 1;
        }
        prop_assert!(rounds <= 3 * arrivals.len(), "{rounds} rounds");
    }

    #[test]
    fn limits_that_change_while_bios_wait_lose_nothing_and_release_everything(
        changes in prop::collection::vec((0..4_usize, some_limits(), some_limits()), 1..20),
        arrivals in arrivals(20_000),
    ) {
        let mut throttle = Throttle::new(THROTTLE_SLICE);
        throttle.add_group(CgroupId(4), A);
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        let mut passed = 0;
        for (step, arrival) in arrivals.iter().enumerate() {
            now += arrival.after;
            let (group, read, write) = changes[step % changes.len()];
            throttle.set_limits(now, GROUPS[group], io_max((read, write)));
            let bio = bio(arrival.op, GROUPS[arrival.group], arrival.kib, 0);
            passed += usize::from(throttle.submit(now, bio, Charge::Whole).is_some());
            if step % 3 == 0 {
                throttle.release(now, &mut out);
            }
            prop_assert_eq!(passed + out.len() + throttle.waiting(), step + 1);
        }
        while let Some(due) = throttle.due() {
            now = now.max(due);
            throttle.release(now, &mut out);
        }
        prop_assert_eq!(passed + out.len(), arrivals.len());
    }
}
