//! Service times from what a device was seen to do: when each command was issued, and when it ended.
//!
//! Used by: crate `experiment` for devices of recordings.
//! Tests: `crates/device/tests/service.rs`.
//!
//! How many commands a device works on at a time is not visible: a command that takes long may have waited inside for others. For each
//! kind the share is chosen with which the times that remain, once that waiting is taken off, differ least from each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES, Sector};

use super::{PROBABILITIES, ServedOperation, ServiceKind, ServiceParameters, Share, Stations};
use crate::streams::Streams;

/// A kind with fewer commands counts as the one that is most like it.
const COMMANDS_PER_KIND: usize = 50;
/// Most commands that a device is assumed to work on at a time.
const AT_A_TIME_MAX: Share = 1024;
/// Rounds of choosing the share of one kind after the other.
const ROUNDS: usize = 2;
/// Of two shares whose times differ by less than this from each other, relative to the least, the larger one is chosen: nothing shows that
/// the device works on more.
const ALIKE: f64 = 1.02;
/// The place of the median in [`PROBABILITIES`].
const MEDIAN: usize = 7;
/// Service times below this are those of commands that overtook others.
const SERVICE_MIN: Nanos = Nanos(100);

/// A command that a device was seen to serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedCommand {
    /// When it was issued.
    pub issued: Instant,
    /// When it ended.
    pub ended: Instant,
    /// The operation.
    pub op: Op,
    /// Its first sector.
    pub sector: Sector,
    /// Its length in sectors; 0 for a flush.
    pub sectors: u32,
}

impl ServedCommand {
    /// How long it took.
    #[must_use]
    pub fn latency(&self) -> Nanos {
        self.ended.since(self.issued)
    }
}

/// A device as it was seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimated {
    /// Its service times.
    pub parameters: ServiceParameters,
    /// Most commands that were in flight at a time.
    pub in_flight_max: u32,
    /// Whether that many were no slower than few, so that how many it can work on was not seen.
    pub has_room: bool,
}

/// What tells kinds apart: the operation, whether it is sequential, and the power of two of its size.
type Key = (ServedOperation, bool, u32);

/// The service times of a device that served these commands, in the order in which they were issued. A kind that showed no limit is taken to
/// be served `at_a_time` at a time, or as many as were seen if these are more. `None` if there are too few commands.
#[must_use]
pub fn estimate(commands: &[ServedCommand], at_a_time: u32) -> Option<Estimated> {
    if commands.len() < COMMANDS_PER_KIND {
        return None;
    }
    let (kinds, kind_of) = sorted_by_kind(commands);
    let mut shares = vec![Stations::WHOLE; kinds.len()];
    // First one share for all, then each by itself.
    let at_a_times = || (0..).map(|power| 1 << power).take_while(|many| *many <= AT_A_TIME_MAX);
    let candidates: Vec<Share> = at_a_times().map(|many| Stations::WHOLE / many).collect();
    let all_alike = |share: Share| vec![share; kinds.len()];
    let common = least_spread(&candidates, |share| spread(commands, &kind_of, &all_alike(share)));
    shares.fill(common);
    if kinds.len() > 1 {
        for _ in 0..ROUNDS {
            for kind in 0..kinds.len() {
                let with = |share: Share| {
                    let mut changed = shares.clone();
                    changed[kind] = share;
                    spread(commands, &kind_of, &changed)
                };
                shares[kind] = least_spread(&candidates, with);
            }
        }
    }
    let in_flight_max = in_flight_max(commands);
    let mut has_room = false;
    for share in &mut shares {
        let seen = Stations::WHOLE / *share;
        if seen >= Share::from(in_flight_max) {
            has_room |= Share::from(at_a_time) > seen;
            *share = Stations::WHOLE / seen.max(Share::from(at_a_time));
        }
    }
    let times = service_times(commands, &kind_of, &shares);
    let mut parameters = ServiceParameters { kib_ns: 0.0, kinds: Vec::new() };
    for (number, (key, sizes)) in kinds.iter().enumerate() {
        let mut own: Vec<u64> =
            times.iter().zip(&kind_of).filter(|(_, kind)| **kind == number).map(|(ns, _)| *ns).collect();
        own.sort_unstable();
        parameters.kinds.push(ServiceKind {
            operation: key.0,
            sequential: key.1,
            kib: sizes.0 as f64 * SECTOR_BYTES as f64 / 1024.0 / sizes.1.max(1) as f64,
            share_percent: 100.0 * shares[number] as f64 / Stations::WHOLE as f64,
            times_us: quantiles_us(&own),
        });
    }
    parameters.kib_ns = kib_ns(&parameters.kinds);
    Some(Estimated { parameters, in_flight_max, has_room })
}

/// Sectors and number of the commands of a kind.
type Sizes = (u64, u64);

/// The kinds with enough commands, and the number of the kind of each command.
fn sorted_by_kind(commands: &[ServedCommand]) -> (Vec<(Key, Sizes)>, Vec<usize>) {
    let mut streams = Streams::default();
    let key_of = |command: &ServedCommand| {
        let is_sequential = command.sectors > 0 && streams.continues(command.sector, command.sectors);
        (ServedOperation::of(command.op), is_sequential, command.sectors.max(1).ilog2())
    };
    let keys: Vec<Key> = commands.iter().map(key_of).collect();
    let mut counted: BTreeMap<Key, usize> = BTreeMap::new();
    for key in &keys {
        *counted.entry(*key).or_default() += 1;
    }
    let most = counted.iter().max_by_key(|(_, count)| **count).map(|(key, _)| *key);
    // Each operation keeps its most frequent kind, however rare it is.
    let is_kept = |key: &Key, count: usize| {
        let of_operation = || counted.iter().filter(|(other, _)| other.0 == key.0);
        count >= COMMANDS_PER_KIND
            || Some(*key) == most
            || of_operation()
                .max_by_key(|(other, count)| (**count, Reverse(**other)))
                .is_some_and(|(best, _)| best == key)
    };
    let mut kinds: Vec<(Key, Sizes)> =
        counted.iter().filter(|(key, count)| is_kept(key, **count)).map(|(key, _)| (*key, (0, 0))).collect();
    let nearest = |key: &Key, kinds: &[(Key, Sizes)]| {
        let unlike = |kind: &Key| (kind.0 != key.0, kind.1 != key.1, kind.2.abs_diff(key.2));
        (0..kinds.len()).min_by_key(|number| unlike(&kinds[*number].0)).unwrap_or(0)
    };
    let mut kind_of = Vec::with_capacity(commands.len());
    for (command, key) in commands.iter().zip(&keys) {
        let number = nearest(key, &kinds);
        kinds[number].1.0 += u64::from(command.sectors);
        kinds[number].1.1 += 1;
        kind_of.push(number);
    }
    (kinds, kind_of)
}

/// How long the device worked on each command, ns, if each takes the share of its kind.
fn service_times(commands: &[ServedCommand], kind_of: &[usize], shares: &[Share]) -> Vec<u64> {
    let mut stations = Stations::default();
    let service = |(command, kind): (&ServedCommand, &usize)| {
        let share = shares[*kind];
        let start = stations.start(command.issued, share);
        stations.ends(command.ended.max(start), share);
        command.ended.since(start).max(SERVICE_MIN).0
    };
    commands.iter().zip(kind_of).map(service).collect()
}

/// How much the logarithms of the service times differ within their kinds: the sum of the squares.
fn spread(commands: &[ServedCommand], kind_of: &[usize], shares: &[Share]) -> f64 {
    let times = service_times(commands, kind_of, shares);
    let mut sums = vec![(0.0, 0.0, 0.0); shares.len()];
    for (ns, kind) in times.iter().zip(kind_of) {
        let logarithm = (*ns as f64).ln();
        let (count, sum, squares) = &mut sums[*kind];
        (*count, *sum, *squares) = (*count + 1.0, *sum + logarithm, *squares + logarithm * logarithm);
    }
    sums.iter().map(|(count, sum, squares)| squares - sum * sum / f64::max(*count, 1.0)).sum()
}

/// The largest share whose spread is nearly the least.
fn least_spread(candidates: &[Share], spread: impl Fn(Share) -> f64) -> Share {
    let spreads: Vec<f64> = candidates.iter().map(|share| spread(*share)).collect();
    let least = spreads.iter().copied().fold(f64::INFINITY, f64::min);
    let is_near = |spread: &f64| *spread <= least * ALIKE + 1e-9;
    spreads.iter().position(is_near).map_or(Stations::WHOLE, |found| candidates[found])
}

/// Most commands in flight at a time.
fn in_flight_max(commands: &[ServedCommand]) -> u32 {
    let mut ends = BinaryHeap::new();
    let mut most = 0;
    for command in commands {
        while ends.peek().is_some_and(|Reverse(end)| *end <= command.issued) {
            ends.pop();
        }
        ends.push(Reverse(command.ended));
        most = most.max(ends.len());
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// The quantiles of sorted times, us, and last the mean of those above all others.
fn quantiles_us(sorted_ns: &[u64]) -> Vec<f64> {
    let rounded_us = |ns: f64| (ns / 10.0).round() / 100.0;
    let last = sorted_ns.len() - 1;
    let at = |probability: f64| {
        let place = probability * last as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        let (low_ns, high_ns) = (sorted_ns[low] as f64, sorted_ns[(low + 1).min(last)] as f64);
        low_ns + part * (high_ns - low_ns)
    };
    let mut times: Vec<f64> = PROBABILITIES[..PROBABILITIES.len() - 1].iter().map(|it| rounded_us(at(*it))).collect();
    let highest = PROBABILITIES[PROBABILITIES.len() - 2];
    let slower = &sorted_ns[((highest * last as f64).ceil() as usize).min(last)..];
    times.push(rounded_us(slower.iter().map(|ns| *ns as f64).sum::<f64>() / slower.len() as f64));
    // The mean of the slowest is never less than what is below them, but for rounding.
    let floor = times[times.len() - 2];
    if let Some(mean) = times.last_mut() {
        *mean = mean.max(floor);
    }
    times
}

/// What a KiB adds, ns: the steepest slope between medians of two sizes of the same operation and order.
fn kib_ns(kinds: &[ServiceKind]) -> f64 {
    let median_ns = |kind: &ServiceKind| kind.times_us[MEDIAN] * 1e3;
    let mut steepest = 0.0;
    for (number, a) in kinds.iter().enumerate() {
        for b in &kinds[number + 1..] {
            if (a.operation, a.sequential) == (b.operation, b.sequential) && (a.kib - b.kib).abs() >= 1.0 {
                steepest = f64::max(steepest, (median_ns(b) - median_ns(a)) / (b.kib - a.kib));
            }
        }
    }
    (steepest * 100.0).round() / 100.0
}
