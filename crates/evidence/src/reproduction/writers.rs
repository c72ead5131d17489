//! Table `icpe24-writers`: readers beside writers on eight drives, the rates of the writers included.

use hoistway_measure::fio::{DirectionStats, Output};

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, SCHEDULERS, on_study_host};
use super::prose::{eight_drives, variables_beside};
use super::published_readers::{row_of, rows};
use super::runs::{Setting, of_job, p99_us, run};
use super::{Table, Unknown};
use crate::halves::is_judged;
use hoistway_experiment::{Comparison, Error};

pub(super) const WRITERS: Table = Table {
    name: "icpe24-writers",
    title: "a reader beside 1, 4 and 16 writers on eight drives, and the rates of the writers",
    source: "ICPE 2024 data set: eight Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores; figures 11c and 11d (reader at iodepth 1 beside \
             writers of 4 and 64 KiB) and 12b (reader at iodepth 128 beside writers of 64 KiB)",
    story: "Three numbers of the drive were chosen with the fitted half of these rows: the writes that it holds, the \
            unit of large writes and the length of a step of collection. Half of the rows, by a hash of figure, \
            scheduler and number of writers, are fitted (calibration) and the others judge. Fitted rows of bfq were \
            left out of the search, since all processes of this fio begin together, so that bfq gives them one queue. \
            The published median of 22 us beside one writer of 4 KiB is less than a read of flash takes.",
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("flash.holds_write_kib"), Unknown("flash.collection.step_us")],
    others: &[],
    repeats_max: 2,
    run: reproduce,
};

/// Relative error of a judged cell.
const TOLERANCE: f64 = 0.25;

/// Figure, job file, its text and the names of its two jobs.
const FIGURES: [(&str, &str, &str, [&str; 2]); 3] = [
    (
        "11c",
        "icpe24-interference-11c.fio",
        include_str!("../../published/jobs/icpe24-interference-11c.fio"),
        ["lapp", "tapp"],
    ),
    (
        "11d",
        "icpe24-interference-11d.fio",
        include_str!("../../published/jobs/icpe24-interference-11d.fio"),
        ["lapp", "tapp"],
    ),
    (
        "12b",
        "icpe24-interference-12b.fio",
        include_str!("../../published/jobs/icpe24-interference-12b.fio"),
        ["tapp_fg", "tapp_bg"],
    ),
];

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let rows = rows();
    let mut cells = Vec::new();
    for (figure, job_name, job, [reader, writer]) in FIGURES {
        for writers in [1, 4, 16] {
            let comparison = Comparison {
                devices: vec![eight_drives()],
                ramp_ns: Some(setting.duration_from_ms(300, 600_000)),
                runtime_ns: Some(setting.duration_from_ms(if figure == "11d" { 1500 } else { 500 }, 600_000)),
                ..on_study_host(job_name, job)
            };
            let outputs = run(comparison, &SCHEDULERS, &variables_beside(writers), setting)?;
            for (scheduler, output) in SCHEDULERS.iter().zip(&outputs) {
                let row = row_of(&rows, figure, scheduler, writers).expect("a test looks for the rows");
                let judgement =
                    if is_judged(&row.name()) { Judgement::Error(TOLERANCE) } else { Judgement::Calibration };
                let ours_here = ours(output, reader, writer);
                let of_none = ours(&outputs[0], reader, writer);
                let published = [row.fg_iops, row.fg_clat_p50_us, row.fg_clat_p99_us, row.bg_iops_total];
                let name = format!("{figure}, {writers} writers, {scheduler}");
                for (index, column) in COLUMNS.into_iter().enumerate() {
                    let cell = Cell::new(&name, column, ours_here[index], Some(published[index]), judgement);
                    cells.push(if *scheduler == "none" { cell } else { cell.beside(of_none[index]) });
                }
            }
        }
    }
    Ok(cells)
}

/// The figures of a run.
const COLUMNS: [&str; 4] = ["reader, IOPS", "reader, median us", "reader, p99 us", "writers, IOPS"];

/// The figures in the order of [`COLUMNS`].
fn ours(output: &Output, reader: &str, writer: &str) -> [f64; 4] {
    let read: &DirectionStats = &of_job(output, reader).next().expect("a load has a reader").read;
    let written: f64 = of_job(output, writer).map(|job| job.write.iops).sum();
    [read.iops, p50_us(read), p99_us(read), written]
}

/// The median latency, us.
fn p50_us(stats: &DirectionStats) -> f64 {
    let percentiles = stats.clat_ns.percentile.as_ref();
    percentiles.and_then(|all| all.get("50.000000")).map_or(0.0, |&ns| ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_table_has_each_row_and_both_halves() {
        let rows = rows();
        assert_eq!(rows.len(), 3 * 3 * SCHEDULERS.len());
        for (figure, ..) in FIGURES {
            for writers in [1, 4, 16] {
                let of = rows.iter().filter(|row| row.figure == figure && row.background_apps == writers);
                assert_eq!(of.count(), SCHEDULERS.len(), "{figure}, {writers}");
            }
        }
        assert_eq!(rows.iter().filter(|row| is_judged(&row.name())).count(), 19);
    }
}
