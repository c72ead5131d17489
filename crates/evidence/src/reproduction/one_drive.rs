//! Table `icpe24-one-drive`: a reader and a writer on one drive, under kyber with targets so high that it never throttles.

use hoistway_measure::fio::DirectionStats;
use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, on_study_host};
use super::runs::{Setting, p99_us, run};
use super::watched::FocusedLoad;
use super::{Table, Unknown};
use hoistway_experiment::Error;
use hoistway_experiment::{Comparison, Tunable};

pub(super) const ONE_DRIVE: Table = Table {
    name: "icpe24-one-drive",
    title: "a reader and a writer of 4 KiB on one drive, without throttling",
    source: "ICPE 2024, tables of kyber's targets: Samsung 980 PRO 1 TB, Linux 6.3.8, kyber with targets of 1 s, means of five \
             runs",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[
        Unknown("flash.fetches_commands"),
        Unknown("flash.acknowledge_us"),
        Unknown("flash.write_to_host_us"),
        Unknown("flash.buffer_kib"),
        Unknown("flash.program_kib"),
        Unknown("flash.program_us"),
        Unknown("flash.program_suspend_us"),
        Unknown("flash.striping.write_through_unit_kib"),
        Unknown("flash.collection.programs"),
        Unknown("flash.collection.step_us"),
        Unknown("flash.stall.every_mb"),
        Unknown("flash.stall.lasts_ms"),
    ],
    others: LIMITS_AND_STEPS,
    repeats_max: 8,
    run: reproduce,
};

/// Values to try for the commands that the drive works on, besides half and double: half is less than kyber admits writes.
pub(super) const COMMAND_LIMITS: &[(Unknown, f64)] =
    &[(Unknown("flash.fetches_commands"), 160.0), (Unknown("flash.fetches_commands"), 320.0)];

/// The same, and programs that a step of collection makes room for, which are whole.
const LIMITS_AND_STEPS: &[(Unknown, f64)] = &[
    COMMAND_LIMITS[0],
    COMMAND_LIMITS[1],
    (Unknown("flash.collection.step_programs"), 2.0),
    (Unknown("flash.collection.step_programs"), 6.0),
];

const STORY: &str = "The write side of the drive was fitted to the rows with 1, 4 and 16 writers over eight drives, to \
                     the reader at iodepth 1 here and to the process that mixes reads and writes \
                     (docs/internals/devices.md). The reader at iodepth 128, a prediction, is too fast.";

/// A published row: one direction of a load.
#[derive(Deserialize)]
struct DriveRow {
    figure: String,
    workload: String,
    dir: String,
    iops_mean: f64,
    lat_mean_us: f64,
    clat_p99_us_mean: f64,
}

/// Relative tolerance of a cell.
const TOLERANCE: f64 = 0.25;

/// The loads: name, published table, job file, title, and judgement.
const LOADS: [(&str, &str, &str, &str, Judgement); 2] = [
    (
        "reader at iodepth 1",
        "table3-4",
        "icpe24-kyber-targets-lt.fio",
        include_str!("../../published/jobs/icpe24-kyber-targets-lt.fio"),
        Judgement::Calibration,
    ),
    (
        "reader at iodepth 128",
        "table2",
        "icpe24-kyber-targets-tt.fio",
        include_str!("../../published/jobs/icpe24-kyber-targets-tt.fio"),
        Judgement::Error(TOLERANCE),
    ),
];

/// The tables are about the effect of kyber's targets on the reader.
pub(super) fn watched() -> Vec<FocusedLoad> {
    let focused_load = |(load, _, job_name, job, _): (&str, &str, &str, &str, Judgement)| FocusedLoad {
        name: format!("icpe24-one-drive, {load}"),
        comparison: Comparison {
            ramp_ns: Some(20_000_000),
            runtime_ns: Some(100_000_000),
            ..on_study_host(job_name, job)
        },
        variables: vec![("DEV", "/dev/nvme0n1".to_owned())],
        job: "reader",
    };
    LOADS.map(focused_load).into()
}

/// The published rows of processes that each have their own CPU.
fn rows() -> Vec<DriveRow> {
    let csv = include_str!("../../published/icpe24_single_drive.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables"))
        .filter(|row: &DriveRow| row.workload == "separate")
        .collect()
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let target =
        |name: &str| Tunable { scheduler: "kyber".to_owned(), name: name.to_owned(), text: "1000000000".to_owned() };
    let mut cells = Vec::new();
    for (load, figure, job_name, job, judgement) in LOADS {
        let comparison = Comparison {
            tunables: ["read_lat_nsec", "write_lat_nsec"].map(target).into(),
            ramp_ns: Some(setting.duration_from_s(2, 360)),
            runtime_ns: Some(setting.duration_from_s(8, 360)),
            ..on_study_host(job_name, job)
        };
        let outputs = run(comparison, &["kyber"], &[("DEV", "/dev/nvme0n1".to_owned())], setting)?;
        for row in rows().iter().filter(|row| row.figure == figure) {
            // The job file requests a combined report for both processes.
            let directions = outputs[0].jobs.iter().map(|job| if row.dir == "read" { &job.read } else { &job.write });
            let stats: &DirectionStats = directions.max_by_key(|stats| stats.total_ios).expect("a load has processes");
            let figures = [
                ("IOPS", stats.iops, row.iops_mean),
                ("mean us", stats.lat_ns.mean / 1e3, row.lat_mean_us),
                ("p99 us", p99_us(stats), row.clat_p99_us_mean),
            ];
            cells.extend(figures.map(|(column, ours, published)| {
                Cell::new(load, format!("{}, {column}", row.dir), ours, Some(published), judgement)
            }));
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_table_has_both_directions_of_each_load() {
        for (_, figure, ..) in LOADS {
            let rows = rows();
            let directions: Vec<&str> =
                rows.iter().filter(|row| row.figure == figure).map(|row| row.dir.as_str()).collect();
            assert_eq!(directions, ["read", "write"]);
        }
    }
}
