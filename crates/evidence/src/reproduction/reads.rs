//! Table `icpe24-reads`: reads by size, by process and beside other readers, without a scheduler.

use hoistway_measure::fio::{DirectionStats, Output};
use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, on_study_host};
use super::prose::eight_drives;
use super::runs::{Setting, p99_us, run};
use super::{Table, Unknown};
use hoistway_experiment::{Comparison, Error};

pub(super) const READS: Table = Table {
    name: "icpe24-reads",
    title: "reads by size and by process, and readers beside readers on eight drives, under none",
    source: "ICPE 2024 data set: eight Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores; figures 1a, 1c, 11a, 11b and 12a",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("flash.read_mb_per_s"), Unknown("flash.host_to_device_us")],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "Of these figures the rows under none are public. They are claims about the drive and the host; \
                     the preset was fitted to figure 1b (reads of 4 KiB on one drive) and to rows with writers. Figure \
                     1a is of the drive that reads 9 % slower than the others. Not public are figures 2 to 4, 8 (but \
                     for kyber's 14.7 %) and 9, and figures 11a, 11b and 12a under a scheduler.";

/// Relative error of a judged cell.
const TOLERANCE: f64 = 0.25;

/// The job files by the figures that they belong to: figure, file, text.
const JOBS: [(&str, &str, &str); 5] = [
    ("1a", "icpe24-device-baseline.fio", include_str!("../../published/jobs/icpe24-device-baseline.fio")),
    ("1c", "icpe24-device-baseline.fio", include_str!("../../published/jobs/icpe24-device-baseline.fio")),
    ("11a", "icpe24-interference-11a.fio", include_str!("../../published/jobs/icpe24-interference-11a.fio")),
    ("11b", "icpe24-interference-11b.fio", include_str!("../../published/jobs/icpe24-interference-11b.fio")),
    ("12a", "icpe24-interference-12a.fio", include_str!("../../published/jobs/icpe24-interference-12a.fio")),
];

/// A published row.
#[derive(Deserialize)]
struct ReadRow {
    figure: String,
    bs: String,
    iodepth: u32,
    processes: u32,
    drives: u32,
    background_apps: u32,
    iops: f64,
    lat_mean_us: f64,
    clat_p99_us: f64,
    background_iops: Option<f64>,
}

impl ReadRow {
    fn name(&self) -> String {
        match self.background_apps {
            0 => format!("{}, {} processes, {} at iodepth {}", self.figure, self.processes, self.bs, self.iodepth),
            others => format!("{}, beside {others} readers, iodepth {}", self.figure, self.iodepth),
        }
        .replace(" 1 processes", " 1 process")
        .replace(" 1 readers", " 1 reader")
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let drives: Vec<String> = (0..self.drives).map(|drive| format!("/dev/nvme{drive}n1")).collect();
        vec![
            ("DEV", drives.join(":")),
            ("SCHED", "none".to_owned()),
            ("NBG", self.background_apps.to_string()),
            ("BS", self.bs.clone()),
            ("QD", self.iodepth.to_string()),
            ("NPROC", self.processes.to_string()),
        ]
    }
}

fn rows() -> Vec<ReadRow> {
    let csv = include_str!("../../published/icpe24_reads.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled table")).collect()
}

/// The watched job's processes come first; the others' job is named after what it wants.
fn is_background(name: &str) -> bool {
    ["tapp", "tapp_bg"].contains(&name)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for row in &rows() {
        let (_, job_name, job) = JOBS.iter().find(|(figure, ..)| *figure == row.figure).expect("a test looks for it");
        let comparison = Comparison {
            devices: vec![eight_drives()],
            ramp_ns: Some(setting.duration_from_ms(50, 30_000)),
            runtime_ns: Some(setting.duration_from_ms(if row.iodepth == 1 { 1000 } else { 200 }, 120_000)),
            ..on_study_host(job_name, job)
        };
        let outputs = run(comparison, &["none"], &row.variables(), setting)?;
        cells.extend(cells_of(row, &outputs[0]));
    }
    Ok(cells)
}

fn cells_of(row: &ReadRow, output: &Output) -> Vec<Cell> {
    let watched: Vec<&DirectionStats> =
        output.jobs.iter().filter(|job| !is_background(&job.jobname)).map(|job| &job.read).collect();
    let iops: f64 = watched.iter().map(|read| read.iops).sum();
    let mean_us = watched.iter().map(|read| read.lat_ns.mean * read.iops).sum::<f64>() / iops / 1e3;
    let p99 = watched.iter().map(|read| p99_us(read)).fold(0.0, f64::max);
    let others: f64 = output.jobs.iter().filter(|job| is_background(&job.jobname)).map(|job| job.read.iops).sum();
    let mut figures =
        vec![("IOPS", iops, row.iops), ("mean us", mean_us, row.lat_mean_us), ("p99 us", p99, row.clat_p99_us)];
    figures.extend(row.background_iops.map(|published| ("IOPS of the others", others, published)));
    let cell =
        |(column, ours, published)| Cell::new(row.name(), column, ours, Some(published), Judgement::Error(TOLERANCE));
    figures.into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_job_file_and_a_name_of_its_own() {
        let rows = rows();
        assert_eq!(rows.len(), 21);
        let mut names: Vec<String> = rows.iter().map(ReadRow::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows.len());
        for row in &rows {
            assert!(JOBS.iter().any(|(figure, ..)| *figure == row.figure), "{}", row.figure);
            assert_eq!(row.background_iops.is_some(), row.background_apps > 0);
        }
    }
}
