//! Simulates a row's load on a device model, without a scheduler, in virtual time.

use std::sync::Arc;

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::schedulers::NONE;
use hoistway_device::Preset;
use hoistway_measure::LatencyHistogram;
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario, run};

use super::rows::{FigureKind, MeasurementRow};

/// All evaluations use the same random numbers, so that figures differ only because of the parameters.
const SEED: u64 = 1;
/// Approximate number of I/Os simulated per row, at its measured rate.
const IOS: f64 = 6000.0;
const SECONDS: std::ops::RangeInclusive<f64> = 0.05..=20.0;
/// Ramp time as a fraction of the runtime, in which buffers fill.
const RAMP_SHARE: f64 = 0.5;

/// The figures of a row on a device, in the order of the row.
///
/// # Errors
/// If the load cannot run on the device.
pub(super) fn figures(row: &MeasurementRow, device: &Preset, host: &Host, kernel: Kernel) -> Result<Vec<f64>, String> {
    let mut load = row.load();
    let (ramp, runtime) = ramp_and_runtime(row);
    for process in &mut load.processes {
        process.schedule.ramp = ramp;
        process.schedule.runtime = Some(runtime);
        // On a small device a pass over all blocks could end before the runtime.
        Arc::make_mut(&mut process.plan.pattern).volume.time_based = true;
    }
    let scenario = Scenario {
        workload: &load,
        devices: vec![device],
        guests: None,
        queue: QueueSettings::new(kernel, host.cpus.unwrap_or(8)),
        host: host.clone(),
        runtime: None,
    };
    let spec = RunSpec::new(NONE.name, SEED);
    let result = run(&scenario, &spec, &Control::default()).map_err(|error| error.to_string())?;
    let mut latency = LatencyHistogram::default();
    let mut iops = 0.0;
    for process in &result.processes {
        let seconds = (process.runtime_ns as f64 / 1e9).max(1e-9);
        for direction in &process.directions {
            latency.merge(&direction.lat);
            iops += direction.ios as f64 / seconds;
        }
    }
    let value = |what: FigureKind| match what {
        FigureKind::Iops => iops,
        FigureKind::Mean => latency.mean() / 1e3,
        FigureKind::Percentile(percent) => latency.percentile(percent).unwrap_or(0) as f64 / 1e3,
    };
    Ok(row.figures.iter().map(|figure| value(figure.what)).collect())
}

/// Ramp time and runtime, long enough for [`IOS`].
fn ramp_and_runtime(row: &MeasurementRow) -> (Nanos, Nanos) {
    let rates = row.figures.iter().map(|figure| match figure.what {
        FigureKind::Iops => figure.value,
        // An estimate by Little's law.
        FigureKind::Mean | FigureKind::Percentile(_) => f64::from(row.outstanding()) * 1e6 / figure.value,
    });
    let rate = rates.fold(f64::INFINITY, f64::min);
    let seconds = (IOS / rate).clamp(*SECONDS.start(), *SECONDS.end());
    (Nanos((seconds * RAMP_SHARE * 1e9) as u64), Nanos((seconds * 1e9) as u64))
}
