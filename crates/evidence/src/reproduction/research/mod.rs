//! Tables of schedulers that Linux does not have: the setups of their papers, and a tournament of all schedulers.
//!
//! Used by: `reproduction`, `reproduction::low_latency`, `reproduction::cachyos`.
//! Tests: `crates/evidence/src/reproduction/research/k2.rs`, `crates/evidence/src/reproduction/research/tournament.rs`.
//!
//! Modules: `k2`, `mqfq`, `d2fq`, `blk_switch`, `adios`, `tabs`, `vfair`, `cffq` (a table of claims each), `tournament` (every scheduler under the same loads).

mod adios;
mod blk_switch;
mod cffq;
mod d2fq;
mod k2;
mod mqfq;
mod tabs;
mod tournament;
mod vfair;

pub(super) use self::adios::ADIOS;
pub(super) use self::blk_switch::BLK_SWITCH;
pub(super) use self::cffq::CFFQ;
pub(super) use self::d2fq::D2FQ;
pub(super) use self::k2::K2;
pub(super) use self::mqfq::MQFQ;
pub(super) use self::tabs::TABS;
pub(super) use self::tournament::TOURNAMENT;
pub(super) use self::vfair::VFAIR;

use hoistway_answer::document::{JobSummary, OperationSummary, Run};
use hoistway_experiment::{Alone, Comparison, Error, Tunable, Vary};

use super::runs::{Setting, load};

/// A drive of the age and class used in the papers: it serves about 40 random reads of 4 KiB in parallel, and 64
/// saturate it.
const DRIVE: &str = "Samsung_SSD_970_PRO_512GB";

/// One second of a load with these jobs on a drive.
pub(super) fn comparison_of_jobs(name: &str, device: &str, jobs: &str, setting: Setting) -> Comparison {
    let global =
        "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=libaio\nbs=4k\ntime_based\nruntime=1\nsize=100g\n";
    Comparison {
        load: load(&format!("{name}.fio"), &format!("{global}{jobs}")),
        devices: vec![device.into()],
        ramp_ns: Some(setting.duration_from_ms(100, 5000)),
        runtime_ns: Some(setting.duration_from_ms(1000, 30_000)),
        ..Comparison::default()
    }
}

/// Runs a load under schedulers, in order; if a setting has several values, the runs of a scheduler are adjacent.
pub(super) fn run_schedulers(
    comparison: Comparison,
    schedulers: &[&str],
    setting: Setting,
) -> Result<Vec<RunFigures>, Error> {
    let schedulers = schedulers.iter().map(|&name| name.to_owned()).collect();
    let document = Comparison { schedulers, seed: setting.seed, ..comparison }.run(&Alone)?;
    Ok(document.runs.into_iter().map(RunFigures).collect())
}

/// Runs a load under one scheduler with these settings.
fn run_with(
    comparison: Comparison,
    scheduler: &str,
    tunables: Vec<Tunable>,
    setting: Setting,
) -> Result<RunFigures, Error> {
    let runs = run_schedulers(Comparison { tunables, ..comparison }, &[scheduler], setting)?;
    Ok(runs.into_iter().next().expect("a scheduler has a run"))
}

/// A setting of a scheduler with several values to compare.
fn vary(of: &str, name: &str, values: &[u32]) -> Vec<Vary> {
    let texts = values.iter().map(u32::to_string).collect();
    vec![Vary { of: of.to_owned(), name: name.to_owned(), texts }]
}

pub(super) fn tunable(scheduler: &str, name: &str, text: &str) -> Vec<Tunable> {
    vec![Tunable { scheduler: scheduler.to_owned(), name: name.to_owned(), text: text.to_owned() }]
}

/// A run with access to the figures of its jobs. A job without I/O has figures of 0.
pub(super) struct RunFigures(Run);

impl RunFigures {
    fn operations<'a>(&'a self, job: &'a str) -> impl Iterator<Item = &'a OperationSummary> {
        let matching = self.0.jobs.iter().filter(move |summary: &&JobSummary| summary.name == job);
        matching.flat_map(|summary| &summary.operations)
    }

    /// Total I/Os of a job.
    fn ios(&self, job: &str) -> f64 {
        self.operations(job).map(|operation| operation.ios as f64).sum()
    }

    pub(super) fn iops(&self, job: &str) -> f64 {
        self.operations(job).map(|operation| operation.iops).sum()
    }

    fn bytes_per_second(&self, job: &str) -> f64 {
        self.operations(job).map(|operation| operation.bytes_per_second).sum()
    }

    /// The largest value of a percentile over the operations of a job, us.
    fn latency_us(&self, job: &str, percentile: impl Fn(&OperationSummary) -> u64) -> f64 {
        self.operations(job).map(percentile).max().unwrap_or(0) as f64 / 1e3
    }

    /// The median latency of a job's slowest operation, us.
    pub(super) fn p50_us(&self, job: &str) -> f64 {
        self.latency_us(job, |operation| operation.lat_ns.p50)
    }

    pub(super) fn p99_us(&self, job: &str) -> f64 {
        self.latency_us(job, |operation| operation.lat_ns.p99)
    }

    pub(super) fn p99_9_us(&self, job: &str) -> f64 {
        self.latency_us(job, |operation| operation.lat_ns.p99_9)
    }

    /// The mean latency of a job's only operation, us.
    pub(super) fn mean_us(&self, job: &str) -> f64 {
        self.operations(job).map(|operation| operation.lat_ns.mean).sum::<f64>() / 1e3
    }

    fn all_bytes_per_second(&self) -> f64 {
        let operations = self.0.jobs.iter().flat_map(|job| &job.operations);
        operations.map(|operation| operation.bytes_per_second).sum()
    }

    pub(super) fn cpu_us_per_io(&self) -> f64 {
        self.0.cpu_us_per_io.unwrap_or(0.0)
    }
}
