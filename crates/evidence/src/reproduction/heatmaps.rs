//! Tables `icpe24-heatmap-*`: the 99th percentile of reads of latency-sensitive processes on one drive.

use serde::Deserialize;

use super::cell::{Cell, Judgement, median};
use super::runs::{Setting, load, p99_us, run};
use super::watched::FocusedLoad;
use super::{Table, Unknown};
use hoistway_experiment::Comparison;
use hoistway_experiment::Error;

/// A cell of a heatmap, relative to none at the lowest load.
#[derive(Deserialize)]
struct HeatmapRow {
    axis_value: u32,
    scheduler: String,
    normalized_p99_latency: f64,
}

struct Heatmap {
    csv: &'static str,
    job_name: &'static str,
    job: &'static str,
    /// The variable of the job file that varies along the axis.
    variable: &'static str,
    /// The host is calibrated with the CPU times of schedulers measured at this point of the axis.
    calibration: Option<u32>,
    /// The unit of the axis, for the names of rows.
    axis: &'static str,
}

pub(super) const SCHEDULERS: [&str; 4] = ["none", "bfq", "kyber", "mq-deadline"];

pub(super) const DRIVE: &str = "samsung-980pro-1tb";
const UNKNOWNS: &[Unknown] = &[Unknown("shape.hw_queues"), Unknown("flash.host_to_device_us")];

const SOURCE: &str =
    "ICPE 2024 slides: Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores, submission dispatches in the submitter";

const DEPTH_MAP: Heatmap = Heatmap {
    csv: include_str!("../../published/icpe24_heatmap_a.csv"),
    job_name: "icpe24-lapp-intra.fio",
    job: include_str!("../../published/jobs/icpe24-lapp-intra.fio"),
    variable: "QD",
    calibration: Some(128),
    axis: "iodepth",
};

const ONE_CORE_MAP: Heatmap = Heatmap {
    csv: include_str!("../../published/icpe24_heatmap_b.csv"),
    job_name: "icpe24-lapp-inter-1core.fio",
    job: include_str!("../../published/jobs/icpe24-lapp-inter-1core.fio"),
    variable: "NPROC",
    calibration: None,
    axis: "processes",
};

const TEN_CORES_MAP: Heatmap = Heatmap {
    csv: include_str!("../../published/icpe24_heatmap_c.csv"),
    job_name: "icpe24-lapp-inter-10core.fio",
    job: include_str!("../../published/jobs/icpe24-lapp-inter-10core.fio"),
    variable: "NPROC",
    calibration: None,
    axis: "processes",
};

pub(super) const DEPTH: Table = Table {
    name: "icpe24-heatmap-a",
    title: "p99 of one process on one core by iodepth",
    source: SOURCE,
    story: "Figures are 99th percentiles of completion latency, divided by that of none at the lowest load. The drive \
            and the host are calibrated on measurements of none on this host, so the rows of none are not judged. \
            Errors include that of none at the same load, up to 15 %; where a published figure is within 10 % of \
            none's, nothing is claimed. The CPU time of each scheduler is calibrated on one saturated core at iodepth \
            128.",
    device: DRIVE,
    host: None,
    unknowns: UNKNOWNS,
    others: &[],
    repeats_max: 8,
    run: |setting| reproduce(&DEPTH_MAP, setting),
};

pub(super) const ONE_CORE: Table = Table {
    name: "icpe24-heatmap-b",
    title: "p99 of processes of iodepth 1 on one core",
    source: SOURCE,
    story: "Judged as icpe24-heatmap-a, but the load on which the CPU time of schedulers is calibrated is not in this \
            heatmap. How waiting for a turn on a CPU counts was chosen while looking at this heatmap.",
    device: DRIVE,
    host: None,
    unknowns: UNKNOWNS,
    others: &[],
    repeats_max: 8,
    run: |setting| reproduce(&ONE_CORE_MAP, setting),
};

pub(super) const TEN_CORES: Table = Table {
    name: "icpe24-heatmap-c",
    title: "p99 of processes of iodepth 1 on ten cores",
    source: SOURCE,
    story: "Judged as icpe24-heatmap-b. The work outside a lock was chosen while looking at this heatmap. Under \
            mq-deadline, 128 and 256 processes are limited by the drive in the published runs, but here by the lock. \
            The hand-overs were fitted to rates of processes at iodepth 128: docs/internals/host.md.",
    device: DRIVE,
    host: None,
    unknowns: &[
        Unknown("shape.hw_queues"),
        Unknown("flash.host_to_device_us"),
        Unknown("host.handover_ns"),
        Unknown("host.worker_ns"),
    ],
    others: &[],
    repeats_max: 8,
    run: |setting| reproduce(&TEN_CORES_MAP, setting),
};

/// A load on the study's drive, kernel and CPUs.
pub(super) fn on_study_host(job_name: &str, job: &str) -> Comparison {
    Comparison {
        load: load(job_name, job),
        devices: vec![DRIVE.into()],
        kernels: vec!["6.3".to_owned()],
        cpus: Some(10),
        submitter_dispatches: true,
        ..Comparison::default()
    }
}

/// The 99th percentile of read latency for each scheduler, us.
pub(super) fn p99_by_scheduler(
    job_name: &str,
    job: &str,
    variables: &[(&str, String)],
    setting: Setting,
) -> Result<[f64; 4], Error> {
    let comparison = Comparison {
        // By then all 256 processes have started.
        ramp_ns: Some(setting.duration_from_ms(200, 30_000)),
        runtime_ns: Some(setting.duration_from_s(1, 120)),
        ..on_study_host(job_name, job)
    };
    let outputs = run(comparison, &SCHEDULERS, variables, setting)?;
    let mut p99 = [0.0; 4];
    for (p99, output) in p99.iter_mut().zip(&outputs) {
        *p99 = median(output.jobs.iter().map(|job| p99_us(&job.read)).collect());
    }
    Ok(p99)
}

/// Loads of the heatmaps, with their only job.
pub(super) fn watched() -> Vec<FocusedLoad> {
    let focused_load = |map: Heatmap, value: u32| FocusedLoad {
        name: format!("{}, {} {value}", map.job_name, map.axis),
        comparison: Comparison { runtime_ns: Some(50_000_000), ..on_study_host(map.job_name, map.job) },
        variables: variables(map.variable, value).into(),
        job: "lapp",
    };
    vec![focused_load(DEPTH_MAP, 16), focused_load(TEN_CORES_MAP, 16)]
}

/// The variables of these job files.
pub(super) fn variables(name: &'static str, value: u32) -> [(&'static str, String); 3] {
    [("DEV", "/dev/nvme0n1".to_owned()), ("SCHED", "none".to_owned()), (name, value.to_string())]
}

fn reproduce(map: &Heatmap, setting: Setting) -> Result<Vec<Cell>, Error> {
    let rows: Vec<HeatmapRow> = csv::Reader::from_reader(map.csv.as_bytes())
        .into_deserialize()
        .map(|row| row.expect("a test reads the bundled tables"))
        .collect();
    let mut axis: Vec<u32> = rows.iter().map(|row| row.axis_value).collect();
    axis.dedup();
    let mut base = None;
    let mut cells = Vec::new();
    for value in axis {
        let p99 = p99_by_scheduler(map.job_name, map.job, &variables(map.variable, value), setting)?;
        let base = *base.get_or_insert(p99[0]);
        for row in rows.iter().filter(|row| row.axis_value == value) {
            let index = SCHEDULERS.iter().position(|name| *name == row.scheduler).unwrap_or_default();
            let is_calibration = index == 0 || map.calibration == Some(value);
            let published = row.normalized_p99_latency;
            let judgement = if is_calibration {
                Judgement::Calibration
            } else {
                Judgement::error_within_effect(0.25, published, published_of_none(&rows, value))
            };
            let name = format!("{} {value}", map.axis);
            let cell = Cell::new(name, &row.scheduler, p99[index] / base, Some(published), judgement);
            cells.push(if index == 0 { cell } else { cell.beside(p99[0] / base) });
        }
    }
    let predicted = || cells.iter().filter(|cell| !cell.calibration);
    let errors = predicted().filter_map(|cell| cell.error.map(f64::abs)).collect();
    let of_none = predicted().filter_map(|cell| Some((cell.without? / cell.published? - 1.0).abs())).collect();
    let [errors, of_none] = [median(errors), median(of_none)];
    cells.push(Cell::new("all predicted cells", "median error", errors, None, Judgement::AtMost(0.10)).beside(of_none));
    Ok(cells)
}

/// The published figure of none at this point of the axis.
fn published_of_none(rows: &[HeatmapRow], value: u32) -> f64 {
    let row = rows.iter().find(|row| row.axis_value == value && row.scheduler == SCHEDULERS[0]);
    row.expect("a heatmap has none at each point").normalized_p99_latency
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_heatmaps_can_be_read_and_know_the_schedulers() {
        for map in [DEPTH_MAP, ONE_CORE_MAP, TEN_CORES_MAP] {
            let rows: Result<Vec<HeatmapRow>, _> =
                csv::Reader::from_reader(map.csv.as_bytes()).into_deserialize().collect();
            let rows = rows.unwrap();
            assert_eq!(rows.len(), 36);
            assert!(rows.iter().all(|row| SCHEDULERS.contains(&row.scheduler.as_str())));
        }
    }
}
