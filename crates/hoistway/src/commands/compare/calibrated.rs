//! Whether a load lies in the range that its device's model is calibrated for.
//!
//! Presets say their range in words; this is the same for programs, for the built-in ones. Of others the words are
//! quoted.

use std::collections::BTreeMap;

use hoistway_device::Preset;
use hoistway_workload::{Process, Workload};

/// What the built-in model of this name is calibrated for.
struct Range {
    device: &'static str,
    /// Smallest and largest I/O, bytes.
    bytes: (u32, u32),
    /// Most I/Os outstanding.
    outstanding_max: u32,
    /// Whether loads of mostly reads are in it.
    mostly_reads: bool,
    /// Whether writes are.
    writes: bool,
}

/// All that were calibrated on measurements: on random I/O without flushes and trims.
const RANGES: [Range; 4] = [
    Range { device: "hgst-he10-8tb", bytes: (4096, 4096), outstanding_max: 3, mostly_reads: false, writes: true },
    Range { device: "intel-s3520-1600gb", bytes: (4096, 4096), outstanding_max: 48, mostly_reads: false, writes: true },
    Range { device: "micron-9100-1600gb", bytes: (4096, 4096), outstanding_max: 96, mostly_reads: false, writes: true },
    Range {
        device: "samsung-980pro-1tb",
        bytes: (4096, 65_536),
        outstanding_max: 2048,
        mostly_reads: true,
        writes: false,
    },
];

/// Models that follow from data sheets and assumptions alone.
const UNMEASURED: [&str; 3] = ["intel-p4800x-375gb", "raid-64-queues", "throttled-cloud-volume"];
/// There is nothing about it to be wrong.
const EXACT: &str = "null";

/// A half sentence for each device whose model the load takes out of its range. `reads` is the share of the load's I/Os
/// that were reads.
pub(super) fn doubts(workload: &Workload, devices: &[Preset], reads: f64) -> Vec<String> {
    let mut doubts: BTreeMap<&str, String> = BTreeMap::new();
    for (file, preset) in (0..).zip(devices) {
        let processes: Vec<&Process> =
            workload.processes.iter().filter(|process| process.files.contains(&file)).collect();
        if let Some(doubt) = doubt(&processes, preset, reads) {
            doubts.entry(&preset.name).or_insert(doubt);
        }
    }
    doubts.into_values().collect()
}

fn doubt(processes: &[&Process], preset: &Preset, reads: f64) -> Option<String> {
    let name = preset.name.as_str();
    if name == EXACT {
        return None;
    }
    if UNMEASURED.contains(&name) {
        return Some(format!("the model of {name} was made without measurements of one (`hoistway devices {name}`)"));
    }
    let Some(range) = RANGES.iter().find(|range| range.device == name) else {
        let words = preset.calibration().valid_range.trim_end_matches('.').replace(". ", "; ");
        return Some(format!("the model of {name} holds for: {words}"));
    };
    let outside = outside(range, processes, reads);
    (!outside.is_empty()).then(|| {
        format!("the model of {name} is not calibrated for {} (`hoistway devices {name}`)", outside.join(", "))
    })
}

/// What of the load is not in the range.
fn outside(range: &Range, processes: &[&Process], reads: f64) -> Vec<String> {
    let any = |is: &dyn Fn(&Process) -> bool| processes.iter().any(|process| is(process));
    let smallest = processes.iter().map(|process| process.plan.block_bytes_min()).min().unwrap_or(0);
    let largest = processes.iter().map(|process| process.plan.block_bytes_max()).max().unwrap_or(0);
    let mut phases: BTreeMap<u32, u32> = BTreeMap::new();
    for process in processes {
        *phases.entry(process.phase).or_default() += process.iodepth;
    }
    let outstanding = phases.into_values().max().unwrap_or(0);
    let mut outside = Vec::new();
    if largest > range.bytes.1 {
        outside.push(format!("I/Os of {}", bytes(largest)));
    }
    if smallest < range.bytes.0 {
        outside.push(format!("I/Os of {}", bytes(smallest)));
    }
    if any(&|process| !process.plan.is_random()) {
        outside.push("sequential I/O".to_owned());
    }
    if outstanding > range.outstanding_max {
        outside.push(format!("{outstanding} outstanding I/Os (up to {} are)", range.outstanding_max));
    }
    if any(&|process| process.plan.flushes()) {
        outside.push("flushes".to_owned());
    }
    if !range.mostly_reads && reads > 0.5 {
        outside.push("mostly reads".to_owned());
    }
    if !range.writes && any(&|process| process.plan.modifies()) {
        outside.push("writes".to_owned());
    }
    outside
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
    use hoistway_workload::Environment;

    use super::*;

    fn told(options: &str, device: &str, reads: f64) -> Vec<String> {
        let text = format!("[a]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\n{options}\n");
        let workload = Workload::parse(&text, "a.fio", &Environment::empty()).unwrap();
        doubts(&workload, &[Preset::builtin(device).unwrap()], reads)
    }

    #[test]
    fn a_load_like_that_of_the_calibration_is_in_no_doubt() {
        assert!(told("rw=randwrite\niodepth=4\nnumjobs=12", "intel-s3520-1600gb", 0.05).is_empty());
        assert!(told("rw=read\nbs=1m", "null", 1.0).is_empty());
    }

    #[test]
    fn what_is_outside_of_the_range_is_named() {
        let told = told("rw=write\nbs=1m\niodepth=64\nfsync=1", "intel-s3520-1600gb", 0.6);
        assert_eq!(
            told,
            ["the model of intel-s3520-1600gb is not calibrated for I/Os of 1 MiB, sequential I/O, 64 outstanding \
                 I/Os (up to 48 are), flushes, mostly reads (`hoistway devices intel-s3520-1600gb`)"]
        );
    }

    #[test]
    fn every_built_in_model_is_known_or_quoted() {
        for name in Preset::builtin_names() {
            let is_known =
                name == EXACT || UNMEASURED.contains(&name) || RANGES.iter().any(|range| range.device == name);
            let preset = Preset::builtin(name).unwrap();
            let is_of_a_table = preset.calibration().on.contains("iocost-benchmarks");
            assert!(is_known || is_of_a_table, "{name} lacks a range");
        }
        assert!(told("rw=randread", "throttled-cloud-volume", 1.0)[0].contains("without measurements"));
    }
}
