//! Table `kyber-space`: a reader and a writer on one drive under many pairs of kyber's targets.

use hoistway_measure::fio::Output;
use serde::Deserialize;

use super::cell::{Cell, Judgement, median};
use super::heatmaps::{DRIVE, on_study_host};
use super::runs::{Setting, p99_us, run};
use super::{Table, Unknown};
use crate::halves::is_judged;
use hoistway_experiment::{Comparison, Error, Tunable};

pub(super) const KYBER_SPACE: Table = Table {
    name: "kyber-space",
    title: "a reader and a writer of 4 KiB under kyber's targets from 20 us to 100 ms",
    source: "HotCloudPerf 2024 data set: Samsung 980 PRO 1 TB, Linux 6.3.8, means of up to five runs of six minutes",
    story: "Nothing was fitted to any of these rows. A figure is the median factor between simulated and published \
            figures over the half of the settings of kyber's targets that judge. Nothing is claimed where the figures \
            of none are as near.",
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("flash.holds_write_kib"), Unknown("flash.collection.step_us")],
    others: &[],
    repeats_max: 1,
    run: reproduce,
};

const JOB: &str = include_str!("../../published/jobs/hotcloudperf24-kyber.fio");

/// A published row: one direction of a setting.
#[derive(Deserialize)]
struct Row {
    experiment: String,
    read_target: String,
    write_target: String,
    dir: String,
    iops_mean: f64,
    lat_mean_us: f64,
    clat_p99_us: f64,
}

impl Row {
    /// The experiment and both targets, which decide whether it judges.
    fn setting(&self) -> String {
        format!("{} {} {}", self.experiment, self.read_target, self.write_target)
    }

    /// The queue depths of reader and writer: `micro-bench-r1-w256`.
    fn depths(&self) -> [String; 2] {
        let mut parts = self.experiment.split('-').rev();
        let [write, read] = [parts.next(), parts.next()].map(|part| part.map_or("", |part| &part[1..]).to_owned());
        [read, write]
    }
}

/// A target of the table in ns, such as `250us`.
fn target_ns(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let scale = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        _ => 1_000_000_000,
    };
    number.parse::<u64>().expect("a test reads the bundled tables") * scale
}

/// The published rows that judge.
fn rows() -> Vec<Row> {
    let csv = include_str!("../../published/hotcloudperf24_kyber_targets.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables"))
        .filter(|row: &Row| is_judged(&row.setting()))
        .collect()
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut rows = rows();
    rows.sort_by_key(|row| (row.setting(), row.dir.clone()));
    let mut experiments: Vec<String> = rows.iter().map(|row| row.experiment.clone()).collect();
    experiments.dedup();
    let mut cells = Vec::new();
    for experiment in experiments {
        // Factors of IOPS, mean and p99, reads and writes.
        let mut factors: [[Vec<f64>; 3]; 2] = Default::default();
        let mut under_none = factors.clone();
        let mut none: Option<Output> = None;
        let of_experiment = rows.iter().filter(|row| row.experiment == experiment).collect::<Vec<_>>();
        for of_setting in of_experiment.chunk_by(|first, second| first.setting() == second.setting()) {
            let [read_depth, write_depth] = of_setting[0].depths();
            let tunable = |name: &str, target: &str| Tunable {
                scheduler: "kyber".to_owned(),
                name: name.to_owned(),
                text: target_ns(target).to_string(),
            };
            let comparison = Comparison {
                tunables: vec![
                    tunable("read_lat_nsec", &of_setting[0].read_target),
                    tunable("write_lat_nsec", &of_setting[0].write_target),
                ],
                ramp_ns: Some(setting.duration_from_ms(700, 360_000)),
                runtime_ns: Some(setting.duration_from_ms(800, 360_000)),
                ..on_study_host("hotcloudperf24-kyber.fio", JOB)
            };
            let variables = [("DEV", "/dev/nvme0n1".to_owned()), ("RQD", read_depth), ("WQD", write_depth)];
            // Under none the targets do not matter.
            if none.is_none() {
                let without_targets = Comparison { tunables: Vec::new(), ..comparison.clone() };
                none = run(without_targets, &["none"], &variables, setting)?.into_iter().next();
            }
            let outputs = run(comparison, &["kyber"], &variables, setting)?;
            for row in of_setting {
                add_factors(&mut factors, &outputs[0], row);
                none.iter().for_each(|none| add_factors(&mut under_none, none, row));
            }
        }
        for (direction, figures) in ["reads", "writes"].into_iter().zip(factors.into_iter().zip(under_none)) {
            for (figure, (factors, under_none)) in
                ["IOPS", "mean", "p99"].into_iter().zip(figures.0.into_iter().zip(figures.1))
            {
                let column = format!("{direction}, {figure}: median factor over {} settings", factors.len());
                let cell = Cell::new(&experiment, column, median(factors), None, Judgement::AtMost(1.5));
                cells.push(cell.beside(median(under_none)));
            }
        }
    }
    Ok(cells)
}

/// Adds the factors of a row's figures to those of its direction.
fn add_factors(factors: &mut [[Vec<f64>; 3]; 2], output: &Output, row: &Row) {
    let reads = row.dir == "read";
    let directions = output.jobs.iter().map(|job| if reads { &job.read } else { &job.write });
    let stats = directions.max_by_key(|stats| stats.total_ios).expect("a load has processes");
    let pairs =
        [(stats.iops, row.iops_mean), (stats.lat_ns.mean / 1e3, row.lat_mean_us), (p99_us(stats), row.clat_p99_us)];
    for (all, (ours, published)) in factors[usize::from(!reads)].iter_mut().zip(pairs) {
        all.push((ours / published).max(published / ours));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_table_has_depths_and_targets_and_half_of_it_judges() {
        let rows = rows();
        assert!(rows.len() > 100, "{}", rows.len());
        for row in &rows {
            assert!(row.depths().iter().all(|depth| ["1", "256"].contains(&depth.as_str())), "{}", row.experiment);
            let targets = [&row.read_target, &row.write_target].map(|target| target_ns(target));
            assert!(targets.iter().all(|target| (20_000..=1_000_000_000).contains(target)), "{targets:?}");
        }
    }
}
