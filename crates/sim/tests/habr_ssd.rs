//! Does the simulation reproduce what the SATA SSD preset is calibrated on: the row `none` of the published SATA SSD
//! table (habr)? Every other row is a prediction and is not tested here.

use hoistway_blk::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_results::{Direction, ProcessResult};
use hoistway_sim::{Control, QueueSettings, RunSpec, Scenario, run};
use hoistway_workload::{Environment, Workload};

const JOB: &str = include_str!("data/habr-ssd.fio");
/// Long enough for a dozen pauses of the drive; the published run took 7200 s.
const RUNTIME: Nanos = Nanos::from_secs(40);
/// Tolerance of every cell.
const PERCENT: f64 = 5.0;

fn simulate(kernel: Kernel, seed: u64) -> Vec<ProcessResult> {
    let workload = Workload::parse(JOB, "habr-ssd.fio", &Environment::empty()).unwrap();
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let queue = QueueSettings::new(kernel, 8);
    let scenario = Scenario { workload: &workload, devices: vec![&preset], queue, runtime: Some(RUNTIME) };
    let spec = RunSpec { scheduler: "none".to_owned(), tunables: Vec::new(), seed };
    run(&scenario, &spec, &Control::default()).unwrap().processes
}

/// IOPS of a process and mean total latency in ms: the medians over the processes of a job, as the table gives them.
fn cell(processes: &[ProcessResult], job: &str, direction: Direction) -> [f64; 2] {
    let of_job = || processes.iter().filter(|process| process.name == job);
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
    };
    let iops = |process: &ProcessResult| process.direction(direction).ios as f64 / (process.runtime_ns as f64 / 1e9);
    let mean_ms = |process: &ProcessResult| process.direction(direction).lat.mean() / 1e6;
    [median(of_job().map(iops).collect()), median(of_job().map(mean_ms).collect())]
}

/// The published cells: bandwidth / 4 KiB, because the printed IOPS are truncated, and mean latency in ms.
const PUBLISHED: [(&str, &str, Direction, [f64; 2]); 3] = [
    ("writers", "writers", Direction::Write, [3208.8, 1.245]),
    ("mixed, writes", "reader_20", Direction::Write, [2543.5, 1.227]),
    ("mixed, reads", "reader_20", Direction::Read, [635.2, 1.376]),
];

#[test]
fn every_cell_of_the_row_none_is_met_within_five_percent_and_as_the_preset_says() {
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    for (kernel, seed) in [(Kernel::V4_12, 1), (Kernel::V6_18, 2)] {
        let processes = simulate(kernel, seed);
        for (what, job, direction, published) in PUBLISHED {
            let simulated = cell(&processes, job, direction);
            for (figure, unit) in ["IOPS of each", "mean latency, ms"].into_iter().enumerate() {
                let (ours, theirs) = (simulated[figure], published[figure]);
                let error = (ours / theirs - 1.0) * 100.0;
                let told = format!("{kernel}, {what}, {unit}: {ours:.3}, published {theirs} ({error:+.1} %)");
                assert!(error.abs() < PERCENT, "{told}");
                let name = format!("{what}, {unit}");
                let residual = preset.calibration().residuals.iter().find(|residual| residual.what == name);
                let residual = residual.unwrap_or_else(|| panic!("the preset has no residual {name:?}"));
                assert!((ours / residual.model - 1.0).abs() < 0.015, "{told}, the preset says {}", residual.model);
            }
        }
    }
}

#[test]
fn littles_law_holds_for_every_process() {
    for process in simulate(Kernel::V6_18, 3) {
        let seconds = process.runtime_ns as f64 / 1e9;
        let outstanding: f64 = process.directions.iter().map(|d| d.ios as f64 / seconds * (d.lat.mean() / 1e9)).sum();
        assert!((outstanding / 4.0 - 1.0).abs() < 0.01, "{}: {outstanding} outstanding", process.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_results_and_another_seed_others() {
    let [one, same, other] = [(Kernel::V6_18, 5), (Kernel::V6_18, 5), (Kernel::V6_18, 6)].map(|(k, s)| simulate(k, s));
    assert_eq!(one, same);
    assert_ne!(one, other);
}
