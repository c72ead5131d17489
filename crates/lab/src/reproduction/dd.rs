//! Thirty-two writers at once under cfq, with low_latency and without.

use super::cell::{Cell, Judgement};
use super::runs::{Setting, load, run};
use super::{Table, Unknown};
use crate::comparison::{Comparison, Tunable};
use crate::error::Error;

const DISK: &str = "hgst-he10-8tb";

pub(super) const DD: Table = Table {
    name: "suse-dd",
    title: "32 processes that write 10 MiB each under cfq: how far apart they end",
    source: "openSUSE Leap 42.2, tuning guide: Linux 4.4, a hard disk of which nothing is said",
    story: "The script is not printed: synchronous writes of 64 KiB are assumed, and a disk of today's size. Only the spread \
            is compared. Of low_latency=0 nothing is claimed: the first process ends too early here.",
    device: DISK,
    unknowns: &[Unknown("shape.queue_depth"), Unknown("hdd.write_cache.mb")],
    run: reproduce,
};

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    // low_latency, the slowest over the fastest process, Jain's index of their rates, and how far off they may be.
    let settings = [("1", 1.86, 0.978, Some([0.25, 0.05])), ("0", 5.20, 0.746, None)];
    let mut cells = Vec::new();
    for (low_latency, ratio, jain, tolerance) in settings {
        let comparison = Comparison {
            load: load("suse-cfq-dd.fio", include_str!("../../published/jobs/suse-cfq-dd.fio")),
            devices: vec![DISK.into()],
            kernels: vec!["4.4".to_owned()],
            tunables: vec![Tunable {
                scheduler: "cfq".to_owned(),
                name: "low_latency".to_owned(),
                text: low_latency.to_owned(),
            }],
            ..Comparison::default()
        };
        let outputs = run(comparison, &["cfq"], &[("DIR", "/srv".to_owned())], setting)?;
        let seconds: Vec<f64> = outputs[0].jobs.iter().map(|job| job.write.runtime as f64 / 1e3).collect();
        let (least, most) = seconds.iter().fold((f64::MAX, 0.0_f64), |(least, most), &s| (least.min(s), most.max(s)));
        let rates: Vec<f64> = seconds.iter().map(|s| 1.0 / s).collect();
        let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
        let row = format!("low_latency={low_latency}");
        let judged = |at: usize| tolerance.map(|all: [f64; 2]| all[at]);
        let of_ratio = judged(0).map_or(Judgement::None, Judgement::Error);
        let of_jain = judged(1).map_or(Judgement::None, Judgement::Distance);
        cells.push(Cell::new(&row, "slowest over fastest", most / least, Some(ratio), of_ratio));
        cells.push(Cell::new(
            &row,
            "Jain's index of rates",
            sum * sum / (rates.len() as f64 * squares),
            Some(jain),
            of_jain,
        ));
    }
    Ok(cells)
}
