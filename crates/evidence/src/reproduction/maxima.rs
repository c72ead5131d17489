//! Table `habr-maxima`: the longest latencies that the habr article names in its text.

use hoistway_measure::fio::{DirectionStats, Output};
use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::habr::{Article, HDD_ARTICLE, SSD_ARTICLE};
use super::runs::{Setting, run};
use super::{Table, Unknown};
use hoistway_experiment::{Comparison, Error};

pub(super) const MAXIMA: Table = Table {
    name: "habr-maxima",
    title: "the longest latency of an I/O under seven schedulers, on the hard disk and the SATA SSD of the habr article",
    source: "habr, 2017, in the text: HGST 8 TB and Intel DC S3520 1.6 TB, Linux 4.13 and 4.12, 2 h for each scheduler",
    story: STORY,
    device: HDD_ARTICLE.device,
    host: None,
    unknowns: &[Unknown("hdd.write_to_read_ms")],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "All cells are predictions: neither device was fitted to a longest latency. Published are single \
                     extremes of two hours; here they are means over three runs of half an hour (disk) and half a \
                     minute (SSD), so a factor of two is claimed, or half of the difference to none's. 42.5 stands for \
                     35 to 50 ms. Nothing in the model stops a disk for seconds. cfq's longest wait on the SSD needs \
                     more than half a minute. Under kyber on the SSD a write waits while the depth of writes falls.";

/// The factor that is claimed of an extreme.
const FACTOR: f64 = 2.0;

/// A longest latency in the article's text.
#[derive(Deserialize)]
struct MaximumRow {
    /// `hdd` or `ssd`.
    device: String,
    scheduler: String,
    /// `read`, `write`, or `all`.
    dir: String,
    max_ms: f64,
}

fn rows() -> Vec<MaximumRow> {
    let csv = include_str!("../../published/habr_maxima.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables")).collect()
}

/// The longest latency of all processes, ms.
fn longest_ms(output: &Output, dir: &str) -> f64 {
    let longest = |stats: &DirectionStats| stats.lat_ns.max as f64 / 1e6;
    let of_process = output.jobs.iter().map(|job| match dir {
        "read" => longest(&job.read),
        "write" => longest(&job.write),
        _ => longest(&job.read).max(longest(&job.write)),
    });
    of_process.fold(0.0, f64::max)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let rows = rows();
    let mut cells = Vec::new();
    let articles: [(&str, &str, &Article, u64); 2] =
        [("hdd", "hard disk", &HDD_ARTICLE, 1800), ("ssd", "SATA SSD", &SSD_ARTICLE, 30)];
    for (device, name, article, settled_s) in articles {
        let of_device: Vec<&MaximumRow> = rows.iter().filter(|row| row.device == device).collect();
        let mut schedulers: Vec<&str> = of_device.iter().map(|row| row.scheduler.as_str()).collect();
        schedulers.dedup();
        let comparison =
            Comparison { runtime_ns: Some(setting.duration_from_s(settled_s, 7200)), ..article.comparison() };
        let outputs = run(comparison, &schedulers, &[], setting)?;
        let none = schedulers.iter().position(|&scheduler| scheduler == "none").expect("the table has none");
        for row in of_device {
            let index = schedulers.iter().position(|&scheduler| scheduler == row.scheduler).expect("it is one of them");
            let column = format!("{}, longest ms", if row.dir == "all" { "reads and writes" } else { &row.dir });
            let ours = longest_ms(&outputs[index], &row.dir);
            let published_of_none =
                rows.iter().find(|none| none.scheduler == "none" && none.device == row.device && none.dir == row.dir);
            let judgement =
                Judgement::factor_within_effect(FACTOR, row.max_ms, published_of_none.map(|none| none.max_ms));
            let cell = Cell::new(format!("{name}, {}", row.scheduler), column, ours, Some(row.max_ms), judgement);
            let is_none = row.scheduler == "none";
            cells.push(if is_none { cell } else { cell.beside(longest_ms(&outputs[none], &row.dir)) });
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_scheduler_follow_each_other_and_every_extreme_is_positive() {
        let rows = rows();
        assert_eq!(rows.len(), 18);
        for device in ["hdd", "ssd"] {
            let mut schedulers: Vec<&str> =
                rows.iter().filter(|row| row.device == device).map(|row| row.scheduler.as_str()).collect();
            schedulers.dedup();
            let mut different = schedulers.clone();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), schedulers.len(), "{device}");
        }
        assert!(rows.iter().all(|row| row.max_ms > 0.0));
    }
}
