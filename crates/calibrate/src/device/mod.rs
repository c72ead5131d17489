//! Measures a device or a file with fio, as rows for a [fit](crate::fit).
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/calibrate/src/device/doubts.rs`, `crates/hoistway/tests/machine/calibrate.rs`.
//!
//! Every round runs each load once, so all loads are measured under the same conditions. A figure is the median over
//! the rounds.

mod doubts;
mod loads;

use std::path::PathBuf;
use std::time::Duration;

use hoistway_experiment::real::fio_process::{self, FioError};
use hoistway_measure::stats;

use crate::fio::JobFigures;
use crate::fit::{FigureKind, MeasuredFigure, MeasurementRow};

pub use doubts::Doubt;
use loads::CalibrationLoad;

/// The plan of a measurement.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    /// The device or the file.
    pub target: PathBuf,
    /// Whether it may be written.
    pub writes: bool,
    /// Number of rounds.
    pub rounds: u32,
    /// How long each load runs in a round.
    pub time: Duration,
    /// Whether it is a rotating disk, which bounds its plausible rate of random reads.
    pub is_rotating: bool,
}

impl DevicePlan {
    /// The number of loads per round.
    #[must_use]
    pub fn loads(&self) -> usize {
        loads::all(self.writes).count()
    }
}

/// A load with its measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredRow {
    /// The medians of the rounds.
    pub row: MeasurementRow,
    /// I/Os per second in each round.
    pub iops: Vec<f64>,
}

impl MeasuredRow {
    /// The largest rate divided by the smallest.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let (min, max) =
            self.iops.iter().fold((f64::INFINITY, 0.0_f64), |(min, max), rate| (min.min(*rate), max.max(*rate)));
        max / min
    }
}

/// Callbacks of a measurement.
pub trait DeviceObserver {
    /// Whether the measurement continues.
    fn goes_on(&self) -> bool;
    /// Sectors of 512 bytes transferred so far by the underlying disks; `None` if unknown.
    fn sectors(&self) -> Option<u64>;
    /// Called with the number of finished runs of loads.
    fn ended(&self, runs: usize);
}

/// Why a device could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// fio failed.
    #[error(transparent)]
    Fio(#[from] FioError),
    /// fio's document lacks a figure.
    #[error("fio's document has no {0} (expected fio 3.0 or later)")]
    NoFigure(&'static str),
    /// The figures are not those of the device alone.
    #[error(transparent)]
    Doubt(#[from] Doubt),
}

/// Measures the device.
///
/// # Errors
/// If fio cannot be run, or the figures are not those of the device alone.
pub fn measure(plan: &DevicePlan, observer: &dyn DeviceObserver) -> Result<Vec<MeasuredRow>, DeviceError> {
    let engine = engine(plan, observer)?;
    let loads: Vec<CalibrationLoad> = loads::all(plan.writes).collect();
    doubts::check_idle(observer)?;
    let mut figures: Vec<Vec<JobFigures>> = loads.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for (index, load) in loads.iter().enumerate() {
            let before = observer.sectors();
            let sample = sample(plan, load, engine, observer)?;
            let moved = before.and_then(|before| Some(observer.sectors()?.saturating_sub(before)));
            doubts::check_load(moved, sample.bytes)?;
            figures[index].push(sample);
            observer.ended(round as usize * loads.len() + index + 1);
        }
    }
    let row = |(index, (load, samples)): (usize, (&CalibrationLoad, &Vec<JobFigures>))| {
        let iops: Vec<f64> = samples.iter().map(|sample| sample.iops).collect();
        let latencies: Vec<f64> = samples.iter().map(|sample| sample.mean_us).collect();
        let figures = vec![
            MeasuredFigure { what: FigureKind::Iops, value: round_to_four_digits(median(&iops)) },
            MeasuredFigure { what: FigureKind::Mean, value: round_to_four_digits(median(&latencies)) },
        ];
        MeasuredRow { row: load.row(index as u64 + 1, figures), iops }
    };
    let rows: Vec<MeasuredRow> = loads.iter().zip(&figures).enumerate().map(row).collect();
    doubts::check_rows(plan, &rows)?;
    Ok(rows)
}

fn sample(
    plan: &DevicePlan,
    load: &CalibrationLoad,
    engine: &str,
    observer: &dyn DeviceObserver,
) -> Result<JobFigures, DeviceError> {
    let mut arguments = load.arguments(&plan.target, engine);
    arguments.push(format!("--runtime={}ms", plan.time.as_millis()));
    let document = fio_process::run(&arguments, &|| observer.goes_on())?;
    let job = document.pointer("/jobs/0").ok_or(DeviceError::NoFigure("jobs"))?;
    let figures = JobFigures::of(job);
    let has_all = figures.iops > 0.0 && figures.mean_us > 0.0;
    if has_all { Ok(figures) } else { Err(DeviceError::NoFigure("I/Os of the load")) }
}

/// io_uring, or libaio where io_uring does not work, as in many containers.
fn engine(plan: &DevicePlan, observer: &dyn DeviceObserver) -> Result<&'static str, FioError> {
    let try_engine = |engine| {
        let mut arguments = loads::FIRST.arguments(&plan.target, engine);
        arguments.extend(["--number_ios=1".to_owned(), "--runtime=1".to_owned()]);
        fio_process::run(&arguments, &|| observer.goes_on()).map(|_| engine)
    };
    try_engine("io_uring").or_else(|error| match error {
        FioError::Failed { .. } => try_engine("libaio"),
        error => Err(error),
    })
}

fn median(values: &[f64]) -> f64 {
    stats::median(values.to_vec()).unwrap_or(0.0)
}

/// Rounds to four digits; more would be noise.
fn round_to_four_digits(value: f64) -> f64 {
    let scale = 10_f64.powi(3 - value.abs().max(1e-9).log10().floor() as i32);
    (value * scale).round() / scale
}

/// The rows in the table format that `hoistway calibrate fit` reads.
#[must_use]
pub fn to_csv(rows: &[MeasuredRow]) -> String {
    let mut text = "rw,bs,iodepth,numjobs,rwmixread,iops,lat_mean_us\n".to_owned();
    for MeasuredRow { row, .. } in rows {
        let value =
            |kind: FigureKind| row.figures.iter().find(|figure| figure.what == kind).map_or(0.0, |figure| figure.value);
        let (rw, mix) = loads::direction_and_mix(row);
        text += &format!(
            "{rw},{},{},{},{mix},{},{}\n",
            row.block_bytes,
            row.depth,
            row.jobs,
            value(FigureKind::Iops),
            value(FigureKind::Mean)
        );
    }
    text
}
