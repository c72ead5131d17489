//! The published tables (habr): simulates one of their loads without a scheduler and compares it with the row `none`,
//! which its preset is calibrated on. Every other row is a prediction: docs/internals/devices.md has their errors.

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_measure::{Direction, ProcessResult};
use hoistway_sim::QueueSettings;

use crate::support::{run_job, spec};

/// Tolerance of every cell.
const PERCENT: f64 = 5.0;

/// One of the tables.
pub(crate) struct Table {
    pub(crate) preset: &'static str,
    pub(crate) job: &'static str,
    /// Simulated time; the published runs took 7200 s.
    pub(crate) runtime: Nanos,
    /// I/Os that each process keeps outstanding.
    pub(crate) depth: f64,
    /// The job with reads and writes.
    pub(crate) mixed: &'static str,
    /// For writers, writes of the mixed job and its reads: bandwidth / 4 KiB, because the printed IOPS are truncated, and
    /// mean latency in ms.
    pub(crate) published: [[f64; 2]; 3],
    /// How much a short run may differ from the residuals of the preset, percent.
    pub(crate) residual_percent: f64,
}

impl Table {
    fn simulate(&self, kernel: Kernel, seed: u64) -> Vec<ProcessResult> {
        self.simulate_under("none", kernel, seed)
    }

    pub(crate) fn simulate_under(&self, scheduler: &str, kernel: Kernel, seed: u64) -> Vec<ProcessResult> {
        let preset = Preset::builtin(self.preset).unwrap();
        let queue = QueueSettings::new(kernel, 8);
        run_job(self.job, &preset, queue, Some(self.runtime), &spec(scheduler, &[], seed)).processes
    }

    /// Every cell is within 5 % of the published one, and near what the preset says of itself.
    pub(crate) fn check(&self, kernel: Kernel, seed: u64) {
        let preset = Preset::builtin(self.preset).unwrap();
        let processes = self.simulate(kernel, seed);
        let rows = [
            ("writers", "writers", Direction::Write),
            ("mixed, writes", self.mixed, Direction::Write),
            ("mixed, reads", self.mixed, Direction::Read),
        ];
        for ((what, job, direction), published) in rows.into_iter().zip(self.published) {
            let simulated = cell(&processes, job, direction);
            for (figure, unit) in ["IOPS of each", "mean latency, ms"].into_iter().enumerate() {
                let (ours, theirs) = (simulated[figure], published[figure]);
                let error = (ours / theirs - 1.0) * 100.0;
                let message = format!("{kernel}, {what}, {unit}: {ours:.3}, published {theirs} ({error:+.1} %)");
                assert!(error.abs() < PERCENT, "{message}");
                let name = format!("{what}, {unit}");
                let residual = preset.calibration().residuals.iter().find(|residual| residual.what == name);
                let residual = residual.unwrap_or_else(|| panic!("the preset has no residual {name:?}"));
                assert_eq!(residual.measured, theirs, "{name}");
                let off = (ours / residual.model - 1.0) * 100.0;
                assert!(off.abs() < self.residual_percent, "{message}, the preset says {}", residual.model);
            }
        }
    }

    /// Little's law holds for every process.
    pub(crate) fn check_outstanding(&self, kernel: Kernel, seed: u64) {
        for process in self.simulate(kernel, seed) {
            let seconds = process.runtime_ns as f64 / 1e9;
            let outstanding: f64 =
                process.directions.iter().map(|d| d.ios as f64 / seconds * (d.lat.mean() / 1e9)).sum();
            assert!((outstanding / self.depth - 1.0).abs() < 0.01, "{}: {outstanding} outstanding", process.name);
        }
    }

    /// The same seed gives the same results, and another seed others.
    pub(crate) fn check_seeds(&self) {
        let [one, same, other] = [5, 5, 6].map(|seed| self.simulate(Kernel::V6_18, seed));
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
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
