//! Loads taken from what fio printed: their jobs, and what fio measured as a check of the device model.
//!
//! Used by: `load`, `run`.
//! Tests: `crates/hoistway/tests/cli/loads.rs`.

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{CheckedLatency, DeviceCheck, Run};
use hoistway_fio::output::{FioOutput, Measured};

/// What fio measured in the run whose output is the load.
#[derive(Clone, Debug)]
pub(crate) struct FioRun {
    version: String,
    disk: Option<String>,
    measured: Vec<Measured>,
    assumed: &'static str,
}

impl FioRun {
    pub(crate) fn of(output: &FioOutput) -> FioRun {
        let FioOutput { version, disk, measured, assumed, .. } = output.clone();
        FioRun { version, disk, measured, assumed }
    }

    /// Where the load comes from, a sentence for the user.
    pub(crate) fn origin(&self) -> String {
        let row = |row: &Measured| {
            let Measured { job, operation, iops, mean_ns, processes } = row;
            let each = if *processes > 1 { format!(" in each of {processes} processes") } else { String::new() };
            format!("{job} {iops:.0} {operation}s a second{each} of {:.3} ms", mean_ns / 1e6)
        };
        let rows: Vec<String> = self.measured.iter().map(row).collect();
        let measured = if rows.is_empty() { "nothing".to_owned() } else { rows.join(", ") };
        let assumed =
            if self.assumed.is_empty() { String::new() } else { format!(" Not shown and assumed: {}.", self.assumed) };
        format!("The jobs are those of the output of {}, which measured {measured}.{assumed}", self.version)
    }

    /// The mean latencies that fio measured beside those of each setup's model. The output does not name its scheduler, so they are those
    /// of the scheduler whose run is the nearest.
    pub(crate) fn checks(&self, document: &ResultsDocument) -> Vec<DeviceCheck> {
        let disk = self.disk.clone().unwrap_or_else(|| format!("of {}", self.version));
        let worst = |rows: &[CheckedLatency]| rows.iter().map(CheckedLatency::factor).fold(1.0, f64::max);
        let of_setup = |setup: u32| {
            let runs = document.runs.iter().filter(|run| run.setup == setup);
            let checked = runs.map(|run| (run, self.rows(run))).filter(|(_, rows)| !rows.is_empty());
            let (run, rows) = checked.min_by(|a, b| worst(&a.1).total_cmp(&worst(&b.1)))?;
            Some(DeviceCheck { setup, disk: disk.clone(), under: run.scheduler.clone(), rows })
        };
        (0..document.setups.len().max(1) as u32).filter_map(of_setup).collect()
    }

    /// The operations that both fio and this run measured.
    fn rows(&self, run: &Run) -> Vec<CheckedLatency> {
        let row = |measured: &Measured| {
            let jobs = run.jobs.iter().filter(|job| job.name == measured.job);
            let mut transfers = jobs.flat_map(|job| job.transfers());
            let model = transfers.find(|of| of.operation.name() == measured.operation && of.ios > 0)?;
            (measured.mean_ns > 0.0 && model.lat_ns.mean > 0.0).then(|| CheckedLatency {
                job: measured.job.clone(),
                operation: model.operation,
                ios: measured.iops * f64::from(measured.processes),
                observed_ns: measured.mean_ns,
                model_ns: model.lat_ns.mean,
                // A closed loop does as many as its latency allows, so the rate says nothing more.
                model_ios: None,
            })
        };
        self.measured.iter().filter_map(row).collect()
    }
}
