//! A row on a model: the same load, without a scheduler, in virtual time.

use std::sync::Arc;

use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_blk::schedulers::NONE;
use hoistway_device::Preset;
use hoistway_measure::LatencyHistogram;
use hoistway_sim::{Control, Host, QueueSettings, RunSpec, Scenario, run};

use super::rows::{Row, What};

/// Everything random is drawn alike for all parameters, so that figures differ by those alone.
const SEED: u64 = 1;
/// I/Os that a row is simulated for, as fast as it was measured.
const IOS: f64 = 6000.0;
const SECONDS: std::ops::RangeInclusive<f64> = 0.05..=20.0;
/// So much of that again before it is measured: buffers fill.
const RAMP: f64 = 0.5;

/// The figures of a row on a device, in the order of the row's.
///
/// # Errors
/// If the load cannot run on the device.
pub(super) fn figures(row: &Row, device: &Preset, host: &Host) -> Result<Vec<f64>, String> {
    let mut load = row.load();
    let (ramp, runtime) = times(row);
    for process in &mut load.processes {
        process.schedule.ramp = ramp;
        process.schedule.runtime = Some(runtime);
        // A small device is read from end to end before the time is over.
        Arc::make_mut(&mut process.plan.pattern).volume.time_based = true;
    }
    let scenario = Scenario {
        workload: &load,
        devices: vec![device],
        guests: None,
        queue: QueueSettings::new(Kernel::DEFAULT, host.cpus.unwrap_or(8)),
        host: host.clone(),
        runtime: None,
    };
    let spec = RunSpec { scheduler: NONE.name.to_owned(), tunables: Vec::new(), guest: None, seed: SEED };
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
    let of = |what: What| match what {
        What::Iops => iops,
        What::Mean => latency.mean() / 1e3,
        What::Percentile(percent) => latency.percentile(percent).unwrap_or(0) as f64 / 1e3,
    };
    Ok(row.figures.iter().map(|figure| of(figure.what)).collect())
}

/// Ramp and runtime: long enough for its I/Os.
fn times(row: &Row) -> (Nanos, Nanos) {
    let rates = row.figures.iter().map(|figure| match figure.what {
        What::Iops => figure.value,
        // By Little's law, about.
        What::Mean | What::Percentile(_) => f64::from(row.outstanding()) * 1e6 / figure.value,
    });
    let rate = rates.fold(f64::INFINITY, f64::min);
    let seconds = (IOS / rate).clamp(*SECONDS.start(), *SECONDS.end());
    (Nanos((seconds * RAMP * 1e9) as u64), Nanos((seconds * 1e9) as u64))
}
