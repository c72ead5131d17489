//! Compares the I/Os generated for a job file with those of fio.
//!
//! What has to be equal does not depend on the options: any aspect of our I/Os that is the same with every seed is not
//! random, so it has to be the same with fio, I/O by I/O. The rest has to have the same distribution.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use hoistway_blk::bio::Op;
use hoistway_fio::JobFile;
use hoistway_load::{Amount, Process};

use super::Traced;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Read,
    Write,
    Trim,
    Sync,
}

/// An I/O of fio, or one of ours in the same form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Io {
    pub kind: Kind,
    /// The name of the file; for a file without a name, its number among those of the process.
    pub file: String,
    pub offset_bytes: u64,
    pub bytes: u64,
}

impl Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{:?}@{}+{}", self.file, self.kind, self.offset_bytes, self.bytes)
    }
}

/// Maximum I/Os compared of a process that ends by time, since their number does not depend on the job file.
const TIMED_IOS_MAX: usize = 4000;
const SEEDS: [u64; 3] = [1, 2, 3];
/// Maximum difference that counts as chance, in standard deviations.
const SIGMAS: f64 = 5.0;
const FOLLOWERS_MORE: f64 = 0.03;
const HOTTEST: usize = 64;
/// If the hottest blocks have more than this share, the distribution is skewed.
const SKEWED: f64 = 0.3;
/// fio's hash may map several ranks to one block.
const HOTTEST_SLACK: f64 = 0.12;
/// Critical value of the Kolmogorov-Smirnov test at a level of about 1e-5.
const KOLMOGOROV: f64 = 2.5;

/// Compares all processes, phase by phase, on devices of one size. The error describes the first difference.
pub fn compare(job_file: &JobFile, device_bytes: u64, fio: &[Traced]) -> Result<(), String> {
    same("processes", &job_file.load.processes.len(), &fio.len())?;
    for (number, (process, traced)) in (0..).zip(job_file.load.processes.iter().zip(fio)) {
        let who = format!("{}, clone {}", process.name, process.schedule.clone);
        same("name", &process.name, &traced.name).map_err(|error| format!("{who}: {error}"))?;
        same("group", &process.schedule.group, &traced.group).map_err(|error| format!("{who}: {error}"))?;
        compare_process(job_file, device_bytes, number, process, traced).map_err(|error| format!("{who}: {error}"))?;
    }
    compare_order(job_file, fio)
}

/// No process may begin before those that it waits for have ended.
fn compare_order(job_file: &JobFile, fio: &[Traced]) -> Result<(), String> {
    for (later, (begin, _)) in
        job_file.load.processes.iter().zip(fio).filter_map(|(p, traced)| Some((p, traced.lines?)))
    {
        for (sooner, (_, end)) in
            job_file.load.processes.iter().zip(fio).filter_map(|(p, traced)| Some((p, traced.lines?)))
        {
            let waits =
                sooner.schedule.phase < later.schedule.phase || later.schedule.wait_for == Some(sooner.schedule.job);
            if waits && end > begin {
                return Err(format!("fio starts {} before {} has ended", later.name, sooner.name));
            }
        }
    }
    Ok(())
}

fn compare_process(
    job_file: &JobFile,
    device_bytes: u64,
    number: u32,
    process: &Process,
    traced: &Traced,
) -> Result<(), String> {
    let is_own = process.plan.own_bytes(0).is_some();
    let mut fio = traced.ios.clone();
    if is_own {
        // Files without a name are called JOB.CLONE.NUMBER.
        for io in &mut fio {
            io.file = io.file.rsplit('.').next().unwrap_or_default().to_owned();
        }
    }
    let is_timed = process.schedule.runtime.is_some();
    let drawn = if is_timed { fio.len().min(TIMED_IOS_MAX) } else { 4 * fio.len() + 100 };
    if is_timed {
        fio.truncate(drawn);
    }
    let mut ours = SEEDS.map(|seed| generated(job_file, device_bytes, number, process, seed, drawn));
    if is_timed {
        // Without time_based it may also end by size.
        fio.truncate(ours.iter().map(Vec::len).min().unwrap_or(0));
        ours.iter_mut().for_each(|ios| ios.truncate(fio.len()));
    }
    if fio.len() < 2 {
        return Err(format!("fio did only {fio:?}, ours are {:?}", ours[0]));
    }
    if ours[0] == fio {
        return Ok(());
    }
    // First the aspects that are the same with every seed.
    equal_if_fixed("I/Os", &ours, &fio, |ios| ios.to_vec())?;
    equal_if_fixed("number of I/Os", &ours, &fio, |ios| vec![ios.len()])?;
    equal_if_fixed("order of kinds", &ours, &fio, |ios| ios.iter().map(|io| io.kind).collect())?;
    equal_if_fixed("order of sizes", &ours, &fio, |ios| ios.iter().map(|io| io.bytes).collect())?;
    equal_if_fixed("order of files", &ours, &fio, |ios| ios.iter().map(|io| io.file.clone()).collect())?;
    for kind in [Kind::Read, Kind::Write, Kind::Trim] {
        let of_kind = |ios: &[Io]| ios.iter().filter(|io| io.kind == kind).cloned().collect::<Vec<_>>();
        equal_if_fixed(&format!("order of {kind:?}s"), &ours, &fio, of_kind)?;
    }
    equal_if_fixed("visits", &ours, &fio, |ios| {
        let mut visits: Vec<Io> = ios.iter().filter(|io| io.kind != Kind::Sync).cloned().collect();
        visits.sort();
        visits
    })?;
    // Then the random aspects.
    let ours = &ours[0];
    let (count, fio_count) = (ours.len() as f64, fio.len() as f64);
    if (count - fio_count).abs() > SIGMAS * count.max(fio_count).sqrt() {
        return Err(format!("{count} I/Os against {fio_count}"));
    }
    shares("kinds and sizes", ours, &fio, |io| (io.kind, io.bytes))?;
    shares("files", ours, &fio, |io| io.file.clone())?;
    // Instead of a block that was already visited fio takes the next free one, so towards the end of a pass consecutive
    // blocks are more frequent: one in a hundred I/Os in large regions.
    share("I/Os that jump", FOLLOWERS_MORE, ours, &fio, |ios| jumps(ios).len())?;
    share("distinct blocks", 0.0, ours, &fio, |ios| {
        ios.iter().map(|io| (&io.file, io.offset_bytes)).collect::<BTreeSet<_>>().len()
    })?;
    for kind in [Kind::Read, Kind::Write, Kind::Trim] {
        if let (Some(ours), Some(fio)) = (hottest(kind, ours), hottest(kind, &fio))
            && ours.max(fio) > SKEWED
        {
            // A hash determines the places of the few hot blocks, and fio's hash is a different one.
            if (ours - fio).abs() > HOTTEST_SLACK {
                return Err(format!("{HOTTEST} blocks get {ours:.3} of the {kind:?}s against {fio:.3}"));
            }
        } else if let Some(distance) = is_unlike(kind, ours, &fio) {
            return Err(format!("offsets of {kind:?}s: a distance of {distance:.3}"));
        }
    }
    Ok(())
}

fn generated(
    job_file: &JobFile,
    device_bytes: u64,
    number: u32,
    process: &Process,
    seed: u64,
    count: usize,
) -> Vec<Io> {
    let is_own = process.plan.own_bytes(0).is_some();
    let ranges = process.ranges(device_bytes).unwrap_or_default();
    // Without a device fio assumes that a file ends where the job does.
    let end = |file: usize| {
        let volume = &process.plan.pattern.volume;
        let is_named = !is_own
            && matches!(
                (volume.size, volume.offset, volume.offset_increment),
                (Some(Amount::Bytes(_)), Amount::Bytes(_), Amount::Bytes(_))
            )
            && !process.plan.is_replay();
        ranges.get(file).filter(|_| is_named).map_or(device_bytes, |(start, bytes)| start + bytes)
    };
    let generator = process.generator(number, seed, end).unwrap_or_else(|error| panic!("{error}"));
    let io = |io: hoistway_load::Io| {
        let kind = match io.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            Op::Discard => Kind::Trim,
            _ => Kind::Sync,
        };
        let is_in = |&(start, bytes): &(u64, u64)| (start..start + bytes).contains(&io.offset_bytes);
        // Files without a name lie one after the other; a flush names none of them.
        let own = ranges.iter().position(is_in).filter(|_| is_own && kind != Kind::Sync);
        let (file, start) = match own {
            Some(number) => (number.to_string(), ranges[number].0),
            None if is_own => ("0".to_owned(), 0),
            None => (job_file.load.files[process.files[usize::from(io.file)] as usize].clone(), 0),
        };
        Io { kind, file, offset_bytes: io.offset_bytes - start, bytes: io.bytes.into() }
    };
    generator.take(count).map(io).collect()
}

fn same<T: PartialEq + Debug>(what: &str, ours: &T, fio: &T) -> Result<(), String> {
    if ours == fio { Ok(()) } else { Err(format!("{what}: {ours:?} against {fio:?}")) }
}

/// An aspect of our I/Os that does not depend on the seed must be the same with fio.
fn equal_if_fixed<T: PartialEq + Debug>(
    what: &str,
    ours: &[Vec<Io>; SEEDS.len()],
    fio: &[Io],
    aspect: impl Fn(&[Io]) -> Vec<T>,
) -> Result<(), String> {
    let first = aspect(&ours[0]);
    if ours[1..].iter().any(|other| aspect(other) != first) {
        return Ok(());
    }
    let fio = aspect(fio);
    if first == fio {
        return Ok(());
    }
    let at = first.iter().zip(&fio).position(|(a, b)| a != b).unwrap_or(first.len().min(fio.len()));
    let around = |items: &[T]| format!("{:?}", &items[at.saturating_sub(3).min(items.len())..items.len().min(at + 5)]);
    Err(format!(
        "{what} differ at {at} of {} and {}: {} against {}",
        first.len(),
        fio.len(),
        around(&first),
        around(&fio)
    ))
}

/// Whether two shares may come from the same distribution.
fn share(what: &str, slack: f64, ours: &[Io], fio: &[Io], count: impl Fn(&[Io]) -> usize) -> Result<(), String> {
    let (n, m) = (ours.len() as f64, fio.len() as f64);
    let (hits, fio_hits) = (count(ours) as f64, count(fio) as f64);
    let all = (hits + fio_hits) / (n + m);
    let sigma = (all * (1.0 - all) * (1.0 / n + 1.0 / m)).max(0.0).sqrt();
    // A few I/Os at the ends may differ.
    if (hits / n - fio_hits / m).abs() > SIGMAS * sigma + 2.0 / n.min(m) + slack {
        return Err(format!("share of {what}: {hits} of {n} against {fio_hits} of {m}"));
    }
    Ok(())
}

fn shares<K: Ord + Debug>(what: &str, ours: &[Io], fio: &[Io], key: impl Fn(&Io) -> K) -> Result<(), String> {
    let keys: BTreeSet<K> = ours.iter().chain(fio).map(&key).collect();
    for wanted in keys {
        share(&format!("{what} {wanted:?}"), 0.0, ours, fio, |ios| ios.iter().filter(|io| key(io) == wanted).count())?;
    }
    Ok(())
}

/// The I/Os that neither continue nor repeat the previous one of their kind and file; the others add nothing to the
/// distribution of offsets.
fn jumps(ios: &[Io]) -> Vec<&Io> {
    let mut last: BTreeMap<(Kind, &str), &Io> = BTreeMap::new();
    let mut jumps = Vec::new();
    for io in ios.iter().filter(|io| io.kind != Kind::Sync) {
        let before = last.insert((io.kind, &io.file), io);
        if before.is_none_or(|last| ![last.offset_bytes, last.offset_bytes + last.bytes].contains(&io.offset_bytes)) {
            jumps.push(io);
        }
    }
    jumps
}

/// The Kolmogorov-Smirnov test of the offsets of one kind of I/Os: the distance of the distributions, if it exceeds
/// chance.
fn is_unlike(kind: Kind, ours: &[Io], fio: &[Io]) -> Option<f64> {
    let mut steps: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
    let mut counts = [0.0; 2];
    for (side, ios) in [jumps(ours), jumps(fio)].into_iter().enumerate() {
        for io in ios.iter().filter(|io| io.kind == kind) {
            steps.entry(io.offset_bytes).or_default()[side] += 1.0;
            counts[side] += 1.0;
        }
    }
    let [n, m] = counts;
    let (mut below, mut distance) = ([0.0; 2], 0.0_f64);
    for step in steps.values() {
        below = [below[0] + step[0], below[1] + step[1]];
        distance = distance.max((below[0] / n - below[1] / m).abs());
    }
    (distance > KOLMOGOROV * ((n + m) / (n * m)).sqrt()).then_some(distance)
}

/// The share of the hottest blocks, if there are many more.
fn hottest(kind: Kind, ios: &[Io]) -> Option<f64> {
    let mut visits: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    ios.iter().filter(|io| io.kind == kind).for_each(|io| *visits.entry((&io.file, io.offset_bytes)).or_default() += 1);
    let mut visits: Vec<usize> = visits.into_values().collect();
    let all: usize = visits.iter().sum();
    visits.sort_unstable_by(|a, b| b.cmp(a));
    let top: usize = visits.iter().take(HOTTEST).sum();
    (visits.len() > 8 * HOTTEST).then(|| top as f64 / all as f64)
}
