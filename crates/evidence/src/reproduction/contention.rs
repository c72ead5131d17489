//! Table `axboe-contention`: contention on mq-deadline's lock with 32 threads on a device without latency.

use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::runs::{Setting, Variables, hosts, load};
use super::{Table, Unknown};
use hoistway_experiment::Error;
use hoistway_experiment::{Comparison, Devices, Profile, QueueFile};
use hoistway_measure::Operation;

/// A row of the published table.
#[derive(Deserialize)]
struct ContentionRow {
    state: String,
    device: String,
    kiops: f64,
    lock_contention_pct: f64,
}

/// The first published patches: one dispatcher at a time, and insertion buckets.
const FIRST_PATCHES: &str = "single-dispatcher,insertion-buckets";
/// The first of them alone, and its published rate in a prototype, thousand I/Os per second.
const FIRST_ALONE: (&str, f64) = ("single-dispatcher", 1980.0);
/// The patches published five days later.
const LATER_PATCHES: &str = "single-dispatcher,try-merge,pending-lists";
/// Their published effect on the null block device: 2867 thousand I/Os per second instead of 879.
const LATER_RATIO: f64 = 2867.0 / 879.0;
const HOST: &str = include_str!("../../published/hosts/axboe.toml");

/// Number of CPUs in the host's profile.
const CPUS: f64 = 32.0;

pub(super) const AXBOE: Table = Table {
    name: "axboe-contention",
    title: "mq-deadline's lock under 32 readers of 512 bytes, before and after patches against contention",
    source: "Jens Axboe, January 2024 (ICPE 2024 slides): null_blk with one hardware queue, 16 cores with 32 threads",
    story: "The device is the null block device that completes a command at once, on the CPU that sent it. Expensive \
            merges are off, as published. The host (`crates/evidence/published/hosts/axboe.toml`) is derived from two \
            published rates: that of one process, and that before the patches (calibration). The patches are \
            single-dispatcher and insertion-buckets; of the first alone a prototype's rate was published. Claimed is \
            that the gain is within 40 % of the published one. The third version, single-dispatcher, try-merge and \
            pending-lists, is calibration, too: two cache lines of a request from another CPU's pending list were \
            chosen with it. Missed is the share of the lock: CPUs that do not dispatch contend for the lock of their \
            merges. For the same reason buckets add little to the single dispatcher (3 %; published: 14). No preset is \
            as fast as the NVMe drive.",
    device: "null",
    host: Some(HOST),
    unknowns: &[Unknown("host.switch_ns"), Unknown("host.sections_ns.mq-deadline"), Unknown("host.handover_ns")],
    others: &[],
    repeats_max: 10,
    run: reproduce,
};

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let published = published()?;
    let before = rate_and_share(None, setting)?;
    let after = rate_and_share(Some(FIRST_PATCHES), setting)?;
    let later = rate_and_share(Some(LATER_PATCHES), setting)?;
    let share_before = Judgement::AtLeast(80.0);
    let rows = [
        ("before", before, Judgement::Calibration, share_before),
        ("after", after, Judgement::None, Judgement::AtMost(40.0)),
    ];
    let mut cells = Vec::new();
    for (index, (row, [kiops, share], rate_judgement, share_judgement)) in rows.into_iter().enumerate() {
        cells.push(Cell::new(row, "thousand IOPS", kiops, Some(published[index][0]), rate_judgement));
        cells.push(Cell::new(
            row,
            "CPU time spent waiting for the lock, %",
            share,
            Some(published[index][1]),
            share_judgement,
        ));
    }
    let gain_percent = |kiops: f64, before: f64| 100.0 * (kiops / before - 1.0);
    let mut gain = |row: &str, kiops: f64, published_kiops: f64| {
        let published = gain_percent(published_kiops, published[0][0]);
        let ours = gain_percent(kiops, before[0]);
        cells.push(Cell::new(row, "gain in IOPS, %", ours, Some(published), Judgement::Error(0.4)));
    };
    let (first_alone, published_alone) = FIRST_ALONE;
    gain("single dispatcher alone", rate_and_share(Some(first_alone), setting)?[0], published_alone);
    gain("after", after[0], published[1][0]);
    let later_ratio = later[0] / before[0];
    cells.push(Cell::new(
        "the third version over before",
        "IOPS",
        later_ratio,
        Some(LATER_RATIO),
        Judgement::Calibration,
    ));
    Ok(cells)
}

/// Thousand I/Os per second and the share of the lock in percent, before and after, on the null block device.
fn published() -> Result<[[f64; 2]; 2], Error> {
    let mut found = [[0.0; 2]; 2];
    let text = include_str!("../../published/axboe_mq_deadline_contention.csv");
    for row in csv::Reader::from_reader(text.as_bytes()).into_deserialize::<ContentionRow>() {
        let row = row.expect("the table is bundled and a test reads it");
        if row.device == "null_blk" {
            found[usize::from(row.state == "after")] = [row.kiops, row.lock_contention_pct];
        }
    }
    Ok(found)
}

/// Thousand I/Os per second, and the percentage of CPU time spent waiting for the lock.
fn rate_and_share(techniques: Option<&str>, setting: Setting) -> Result<[f64; 2], Error> {
    let device = include_str!("../../published/devices/null-at-once.toml");
    let device = Profile::Text { name: "null-at-once.toml".to_owned(), text: device.to_owned() };
    let comparison = Comparison {
        load: load("axboe-contention.fio", include_str!("../../published/jobs/axboe-contention.fio")),
        devices: vec![Devices { common: Some(device), ..Devices::default() }],
        kernels: vec!["6.7".to_owned()],
        hosts: hosts(vec![Profile::Text { name: "axboe.toml".to_owned(), text: HOST.to_owned() }], setting),
        schedulers: vec!["mq-deadline".to_owned()],
        queue_files: vec![QueueFile { file: "nomerges".to_owned(), text: "1".to_owned() }],
        techniques: techniques.map(str::to_owned),
        runtime_ns: Some(setting.duration_from_ms(50, 60_000)),
        seed: setting.seed,
        ..Comparison::default()
    };
    let document = comparison.run(&Variables(&[("DEV", "/dev/nullb0".to_owned())]))?;
    let run = &document.runs[0];
    let reads = run.jobs.iter().filter_map(|job| job.operation(Operation::Read));
    let iops = reads.map(|reads| reads.iops).sum::<f64>();
    let busy_percent = run.cpu_us_per_io.unwrap_or(0.0) * iops / 1e6 / CPUS * 100.0;
    let waited_percent = run.locks.map_or(0.0, |locks| locks.waited_percent);
    Ok([iops / 1e3, 100.0 * waited_percent / busy_percent])
}
