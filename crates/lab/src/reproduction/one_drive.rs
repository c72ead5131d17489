//! A reader beside a writer on one drive, where kyber's targets are so far away that it throttles nobody.

use hoistway_results::fio::DirectionStats;
use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, on_their_host};
use super::runs::{Setting, p99_us, run};
use super::{Table, Unknown};
use crate::comparison::{Comparison, Tunable};
use crate::error::Error;

pub(super) const ONE_DRIVE: Table = Table {
    name: "icpe24-one-drive",
    title: "a reader and a writer of 4 KiB on one drive, throttled by nobody",
    source: "ICPE 2024, tables of kyber's targets: Samsung 980 PRO 1 TB, Linux 6.3.8, kyber with targets of 1 s, means of five \
             runs",
    story: STORY,
    device: DRIVE,
    unknowns: &[
        Unknown("flash.fetches_commands"),
        Unknown("flash.buffer_kib"),
        Unknown("flash.program_us"),
        Unknown("flash.acknowledge_us"),
    ],
    repeats_max: 8,
    run: reproduce,
};

const STORY: &str = "All cells are predictions: the write side of the drive is calibrated on eight drives beside each other, and gives \
                     twice the writes on one. Tried: one rule for writes of all sizes, lone pauses, no rest of dies, six numbers \
                     instead of sixteen, fitted to the rows with 1, 4 and 16 writers and to the reader at iodepth 1 here. It gave \
                     182,000 writes instead of 259,000, but reads that are 40 % too fast instead of 19 to 50 %, and no more \
                     of the 51 cells that it had not seen within 25 % (20). So the drive was left as it is. What \
                     seems to be missing is a debt of garbage collection: on this one drive 1 % of the writes wait for 12.6 \
                     ms, which takes ten pauses a second that hold all 128; eight drives with as many pauses would stand \
                     nearly always, and with one writer they lose an eighth of their time. Pauses must be rare below some \
                     70,000 writes a second, and many above.";

/// A published row: one direction of a load.
#[derive(Deserialize)]
struct Row {
    figure: String,
    workload: String,
    dir: String,
    iops_mean: f64,
    lat_mean_us: f64,
    clat_p99_us_mean: f64,
}

/// How far from the published figure a cell may be.
const TOLERANCE: f64 = 0.25;

/// The loads: what they are called, the table in which they were published, and their job files.
const LOADS: [(&str, &str, &str, &str); 2] = [
    (
        "reader at iodepth 1",
        "table3-4",
        "icpe24-kyber-targets-lt.fio",
        include_str!("../../published/jobs/icpe24-kyber-targets-lt.fio"),
    ),
    (
        "reader at iodepth 128",
        "table2",
        "icpe24-kyber-targets-tt.fio",
        include_str!("../../published/jobs/icpe24-kyber-targets-tt.fio"),
    ),
];

/// The published rows of processes that have a CPU of their own.
fn rows() -> Vec<Row> {
    let csv = include_str!("../../published/icpe24_single_drive.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables"))
        .filter(|row: &Row| row.workload == "separate")
        .collect()
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let target =
        |name: &str| Tunable { scheduler: "kyber".to_owned(), name: name.to_owned(), text: "1000000000".to_owned() };
    let mut cells = Vec::new();
    for (load, figure, job_name, job) in LOADS {
        let comparison = Comparison {
            tunables: ["read_lat_nsec", "write_lat_nsec"].map(target).into(),
            ramp_ns: Some(setting.of(2, 360)),
            runtime_ns: Some(setting.of(8, 360)),
            ..on_their_host(job_name, job)
        };
        let outputs = run(comparison, &["kyber"], &[("DEV", "/dev/nvme0n1".to_owned())], setting)?;
        for row in rows().iter().filter(|row| row.figure == figure) {
            // The job file asks for one report of both processes.
            let directions = outputs[0].jobs.iter().map(|job| if row.dir == "read" { &job.read } else { &job.write });
            let stats: &DirectionStats = directions.max_by_key(|stats| stats.total_ios).expect("a load has processes");
            let figures = [
                ("IOPS", stats.iops, row.iops_mean),
                ("mean us", stats.lat_ns.mean / 1e3, row.lat_mean_us),
                ("p99 us", p99_us(stats), row.clat_p99_us_mean),
            ];
            cells.extend(figures.map(|(column, ours, published)| {
                Cell::new(load, format!("{}, {column}", row.dir), ours, Some(published), Judgement::Error(TOLERANCE))
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
