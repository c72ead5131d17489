//! Table `suse-dd`: 32 simultaneous writers under cfq, with and without low_latency.

use hoistway_measure::fio::Output;

use super::cell::{Cell, Judgement};
use super::runs::{Setting, load, run};
use super::{Table, To, Unknown, Variation};
use hoistway_experiment::Error;
use hoistway_experiment::{Comparison, Devices, Tunable};

/// The published processes wrote 320 MiB in 4.1 and 4.9 s, that is 65 to 80 MB/s: a slow disk.
const DISK: &str = "laptop-hdd";

/// The drive's cache is assumed to be full at the start: of its 64 MB, only the data destaged at a time fits.
const FULL_CACHE: Variation = Variation { unknown: Unknown("hdd.write_cache.mb"), to: To::Times(1.0 / 64.0) };

pub(super) const DD: Table = Table {
    name: "suse-dd",
    title: "32 processes that write 10 MiB each under cfq: how far apart they end",
    source: "openSUSE Leap 42.2, tuning guide: Linux 4.4, a hard disk that is not described",
    story: "The guide does not print the script; synchronous writes of 64 KiB are assumed. Only the spread is \
            compared. The disk is the class laptop-hdd, because the published processes wrote 65 to 80 MB/s together. \
            Its write cache has room for 1 MB, as if it were nearly full. With low_latency=1 the first process begins \
            alone, gets a slice of 100 ms, and has then written most of its file (published: 2.6 s); all others end \
            within 15 % of each other.",
    device: DISK,
    host: None,
    unknowns: &[Unknown("hdd.outer_mb_per_s"), Unknown("hdd.cache_access_us")],
    others: &[],
    repeats_max: 20,
    run: reproduce,
};

/// Single processes vary randomly, so means are over this many seeds.
const SEEDS: u32 = 8;

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    // low_latency, the slowest over the fastest process, Jain's index of their rates, and the tolerances.
    let settings = [("1", 1.86, 0.978, [0.25, 0.05]), ("0", 5.20, 0.746, [0.25, 0.05])];
    let (disk, _) = FULL_CACHE.changed_preset(DISK).ok().flatten().expect("a test runs this table");
    let mut figures = Vec::new();
    for (low_latency, ..) in settings {
        let comparison = Comparison {
            load: load("suse-cfq-dd.fio", include_str!("../../published/jobs/suse-cfq-dd.fio")),
            devices: vec![Devices { common: Some(disk.clone()), ..Devices::default() }],
            kernels: vec!["4.4".to_owned()],
            tunables: vec![Tunable {
                scheduler: "cfq".to_owned(),
                name: "low_latency".to_owned(),
                text: low_latency.to_owned(),
            }],
            repeats: SEEDS,
            ..Comparison::default()
        };
        let outputs = run(comparison, &["cfq"], &[("DIR", "/srv".to_owned())], setting)?;
        let [ratio_sum, index_sum] = outputs.iter().map(spread).fold([0.0, 0.0], |[a, b], [c, d]| [a + c, b + d]);
        figures.push([ratio_sum / f64::from(SEEDS), index_sum / f64::from(SEEDS)]);
    }
    let mut cells = Vec::new();
    for (index, (low_latency, ratio, jain, tolerance)) in settings.into_iter().enumerate() {
        // Without the effect both settings are alike.
        let ([ours, our_jain], [other, other_jain]) = (figures[index], figures[1 - index]);
        let row = format!("low_latency={low_latency}");
        let [ratio_judgement, jain_judgement] = [Judgement::Error(tolerance[0]), Judgement::Distance(tolerance[1])];
        cells.push(Cell::new(&row, "slowest over fastest", ours, Some(ratio), ratio_judgement).beside(other));
        cells.push(Cell::new(&row, "Jain's index of rates", our_jain, Some(jain), jain_judgement).beside(other_jain));
    }
    Ok(cells)
}

/// The runtime of the slowest process divided by that of the fastest, and Jain's index of their rates.
fn spread(output: &Output) -> [f64; 2] {
    let seconds: Vec<f64> = output.jobs.iter().map(|job| job.write.runtime as f64 / 1e3).collect();
    let (least, most) = seconds.iter().fold((f64::MAX, 0.0_f64), |(least, most), &s| (least.min(s), most.max(s)));
    let rates: Vec<f64> = seconds.iter().map(|s| 1.0 / s).collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    [most / least, sum * sum / (rates.len() as f64 * squares)]
}
