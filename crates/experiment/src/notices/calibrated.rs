//! Checks whether a load is within the range that its device model is calibrated for.
//!
//! Presets state their range in words, most of them also as data. Without data, the words are quoted.

use std::collections::{BTreeMap, BTreeSet};

use hoistway_blk::ground::Nanos;
use hoistway_device::{CalibratedRange, Parameters, Preset};
use hoistway_load::{Load, Process};

/// The smallest effect that is a reason to change on a device whose model was not measured under loads of this kind: what such a model
/// advises for less is wrong as often as right, and for more not much better (docs/results.md).
const UNMEASURED_EFFECT: f64 = 0.1;

/// The smallest effect for these devices, if it is not that of calibrated models.
pub(crate) fn smallest_effect<'a>(mut devices: impl Iterator<Item = &'a Preset>) -> Option<f64> {
    devices.any(|preset| preset.stands_in_for().is_some() || is_unmeasured(preset)).then_some(UNMEASURED_EFFECT)
}

/// Whether a model was made without measurements under loads: from a data sheet, or from the rates of saturated devices.
fn is_unmeasured(preset: &Preset) -> bool {
    let is_null = matches!(preset.parameters(), Parameters::Null(_));
    !is_null && (preset.calibration().assumed || preset.calibration().range.is_none())
}

/// What is known of a load beside its processes.
#[derive(Clone, Copy)]
pub(crate) struct Observed {
    /// The share of reads among its I/Os.
    pub(crate) reads: f64,
    /// Of a recording, the most that was in flight: the processes of its replay have room for more.
    pub(crate) outstanding: Option<u32>,
}

/// A clause for each device that the load drives out of its calibrated range. With guests all I/O goes to one device.
pub(crate) fn doubts(workload: &Load, devices: &[Preset], in_guests: bool, observed: Observed) -> Vec<String> {
    let mut doubts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, preset) in (0..).zip(devices) {
        let processes: Vec<&Process> =
            workload.processes.iter().filter(|process| in_guests || process.files.contains(&file)).collect();
        let stands_in = preset
            .stands_in_for()
            .map(|asked| format!("there is no model of {asked}: {} is another drive of its class", preset.name));
        let of_preset = stands_in.into_iter().chain(doubt(&processes, preset, observed));
        doubts.entry(&preset.name).or_insert_with(|| of_preset.collect());
    }
    doubts.into_values().flatten().collect()
}

/// Explains what limits a load on a null device.
pub(crate) fn null_notice(devices: &[Preset]) -> Option<String> {
    let delay = |preset: &Preset| match preset.parameters() {
        Parameters::Null(null) => Some(Nanos(null.delay_ns)),
        _ => None,
    };
    let (name, delay) = devices.iter().find_map(|preset| Some((&preset.name, delay(preset)?)))?;
    Some(format!(
        "{name} completes each command after {delay} and does nothing else: a load there is limited by its queue depth and by the \
         CPU time of the block layer, the scheduler and its lock."
    ))
}

/// The end of a sentence about such a model.
const NO_SMALL_GAINS: &str = "; so less than 10 % is no reason to change here (--smallest-effect), and more may be wrong, too: measure \
                              before you change";

fn doubt(processes: &[&Process], preset: &Preset, observed: Observed) -> Option<String> {
    if matches!(preset.parameters(), Parameters::Null(_)) {
        return None;
    }
    let (name, calibration) = (preset.name.as_str(), preset.calibration());
    if calibration.assumed {
        return Some(format!(
            "the model of {name} was made without measurements (`hoistway devices {name}`){NO_SMALL_GAINS}"
        ));
    }
    let Some(range) = &calibration.range else {
        let clauses = in_one_sentence(&calibration.valid_range);
        return Some(format!("the model of {name} holds for: {clauses}{NO_SMALL_GAINS}"));
    };
    let outside = outside(range, processes, observed);
    (!outside.is_empty()).then(|| {
        format!("the model of {name} is not calibrated for {} (`hoistway devices {name}`)", outside.join(", "))
    })
}

/// Sentences as the clauses of one.
fn in_one_sentence(sentences: &str) -> String {
    let mut clauses = sentences.trim_end_matches('.').split(". ");
    let mut joined = clauses.next().unwrap_or_default().to_owned();
    for clause in clauses {
        joined.push_str("; ");
        let mut letters = clause.chars();
        joined.extend(letters.next().into_iter().flat_map(char::to_lowercase));
        joined.push_str(letters.as_str());
    }
    joined
}

/// The properties of the load that are out of the range.
fn outside(range: &CalibratedRange, processes: &[&Process], observed: Observed) -> Vec<String> {
    let reads = observed.reads;
    let any = |predicate: &dyn Fn(&Process) -> bool| processes.iter().any(|process| predicate(process));
    // A process that only syncs, as in a replay, has no size.
    let sizes =
        |size: fn(&Process) -> u32| processes.iter().map(move |process| size(process)).filter(|&bytes| bytes > 0);
    let smallest = sizes(|process| process.plan.block_bytes_min()).min().unwrap_or(range.io_bytes[0]);
    let largest = sizes(|process| process.plan.block_bytes_max()).max().unwrap_or(0);
    let outstanding = observed.outstanding.unwrap_or_else(|| outstanding(processes));
    let mut outside = Vec::new();
    if largest > range.io_bytes[1] {
        outside.push(format!("I/Os of {}", bytes(largest)));
    }
    if smallest < range.io_bytes[0] {
        outside.push(format!("I/Os of {}", bytes(smallest)));
    }
    if !range.sequential && any(&|process| !process.plan.is_random()) {
        outside.push("sequential I/O".to_owned());
    }
    let [few, many] = range.outstanding;
    if !(few..=many).contains(&outstanding) {
        outside.push(format!("{outstanding} outstanding I/Os ({few} to {many} are)"));
    }
    if !range.flushes && any(&|process| process.plan.flushes()) {
        outside.push("flushes".to_owned());
    }
    if any(&|process| !process.plan.is_replay() && process.plan.pattern.direction.lanes().contains(&2)) {
        outside.push("discards".to_owned());
    }
    let [low, high] = range.reads_percent;
    // Rounded away from the range, so that the printed value is out of range, too.
    let percent = if reads * 100.0 < f64::from(low) { (reads * 100.0).floor() } else { (reads * 100.0).ceil() };
    if !(f64::from(low)..=f64::from(high)).contains(&percent) {
        outside.push(format!("{percent} % reads ({low} to {high} are)"));
    }
    outside
}

/// Upper bound of the I/Os in flight at any time, from the schedules of the processes. A process without a known runtime counts as
/// running to the end.
fn outstanding(processes: &[&Process]) -> u32 {
    let depth_at = |(phase, start)| {
        let runs = |process: &&&Process| {
            let schedule = &process.schedule;
            let end = schedule.runtime.map(|runtime| schedule.start_delay + schedule.ramp + runtime);
            schedule.phase == phase && schedule.start_delay <= start && end.is_none_or(|end| start < end)
        };
        processes.iter().filter(runs).map(|process| process.issue.depth).sum()
    };
    // Thousands of processes may start at only a few distinct times.
    let begins: BTreeSet<_> =
        processes.iter().map(|process| (process.schedule.phase, process.schedule.start_delay)).collect();
    begins.into_iter().map(depth_at).max().unwrap_or(0)
}

fn bytes(bytes: u32) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};

    use super::*;

    fn doubts_of(options: &str, device: &str, reads: f64) -> Vec<String> {
        let text = format!("[a]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\n{options}\n");
        let workload = JobFile::parse(&text, "a.fio", &Environment::empty()).unwrap().load;
        doubts(&workload, &[Preset::builtin(device).unwrap()], false, Observed { reads, outstanding: None })
    }

    #[test]
    fn a_load_like_that_of_the_calibration_is_in_no_doubt() {
        assert!(doubts_of("rw=randwrite\niodepth=4\nnumjobs=12", "intel-s3520-1600gb", 0.05).is_empty());
        assert!(doubts_of("rw=read\nbs=1m", "null", 1.0).is_empty());
    }

    #[test]
    fn load_figures_outside_the_calibrated_range_are_named() {
        let found = doubts_of("rw=write\nbs=1m\niodepth=64\nfsync=1", "intel-s3520-1600gb", 0.6);
        assert_eq!(
            found,
            ["the model of intel-s3520-1600gb is not calibrated for I/Os of 1 MiB, sequential I/O, 64 outstanding \
                 I/Os (1 to 48 are), flushes, 60 % reads (0 to 50 are) (`hoistway devices intel-s3520-1600gb`)"]
        );
    }

    #[test]
    fn only_jobs_that_run_concurrently_add_their_outstanding_ios() {
        let two = |second: &str| {
            let first = "rw=randwrite\niodepth=40\nruntime=5\ntime_based";
            let found = doubts_of(
                &format!("{first}\n[b]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\n{second}"),
                "intel-s3520-1600gb",
                0.0,
            );
            found.concat().contains("80 outstanding I/Os")
        };
        assert!(two("rw=randwrite\niodepth=40") && two("rw=randwrite\niodepth=40\nstartdelay=4"));
        assert!(!two("rw=randwrite\niodepth=40\nstartdelay=5") && !two("rw=randwrite\niodepth=40\nstonewall"));
    }

    #[test]
    fn models_without_a_range_report_their_words_or_missing_measurements() {
        assert!(doubts_of("rw=randread", "throttled-cloud-volume", 1.0)[0].contains("without measurements"));
        assert!(doubts_of("rw=randread", "raid-64-queues", 1.0)[0].contains("without measurements"));
        let is_coarse = |name: &&str| Preset::builtin(name).unwrap().calibration().on.contains("iocost-benchmarks");
        let coarse = Preset::builtin_names().find(is_coarse).unwrap();
        assert!(
            doubts_of("rw=randread", coarse, 1.0)[0]
                .contains(" holds for: saturated reads or writes, each alone; latencies at low depth, ")
        );
    }

    #[test]
    fn a_range_holds_at_both_of_its_ends() {
        let reads = |reads| doubts_of("rw=randread\nbs=64k\niodepth=2048", "samsung-980pro-1tb", reads);
        assert!(reads(1.0).is_empty());
        assert!(reads(0.999)[0].contains("99 % reads (100 to 100 are)"), "{:?}", reads(0.999));
        assert!(doubts_of("rw=randread\nbs=2k", "samsung-980pro-1tb", 1.0)[0].contains("I/Os of 2 KiB"));
    }
}
