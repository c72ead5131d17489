//! Tables `habr-*`: the habr article on up to seven schedulers on a SATA SSD, an NVMe SSD and a hard disk.

use std::collections::BTreeMap;

use hoistway_measure::fio::{DirectionStats, Job, Output};
use serde::Deserialize;

use super::cell::{Cell, Judgement, median};
use super::runs::{Setting, load, of_job, run};
use super::watched::FocusedLoad;
use super::{Table, Unknown};
use hoistway_experiment::Comparison;
use hoistway_experiment::Error;

/// A row of a published table: a job under a scheduler, one direction; the figures of one process.
#[derive(Deserialize)]
struct HabrRow {
    scheduler: String,
    job: String,
    dir: String,
    /// The printed rates are truncated; these are computed from the bandwidth.
    iops_from_bw: f64,
    lat_mean_ms: f64,
}

/// Parameters of one of the tables.
pub(super) struct Article {
    csv: &'static str,
    job_name: &'static str,
    job: &'static str,
    pub(super) device: &'static str,
    kernel: &'static str,
    cpus: u16,
    /// Simulated seconds that figures need to settle: under kyber, and under the others.
    settled_s: [u64; 2],
    /// Seconds at the start that kyber's figures leave out, while its write depth falls: a small part of the published
    /// two hours.
    kyber_falls_s: u64,
    /// The tolerance of a cell; `None` if nothing is claimed.
    tolerance: fn(scheduler: &str, column: &str) -> Option<f64>,
    /// The tolerance of kyber's mean read latency relative to none's. If set, the device's round trip of a write at
    /// depth 1 was derived from kyber's total, since no row of none shows it; so the rate of kyber's writers counts as
    /// calibration.
    kyber_reads: Option<f64>,
    /// Whether the article says that bfq moves most data.
    bfq_moves_most: bool,
}

const PUBLISHED_S: u64 = 7200;

/// The job with the most processes, which dominates the total.
const WRITERS: &str = "writers";

pub(super) const SSD_ARTICLE: Article = Article {
    csv: include_str!("../../published/habr_ssd.csv"),
    job_name: "habr-ssd.fio",
    job: include_str!("../../published/jobs/habr-ssd.fio"),
    device: "intel-s3520-1600gb",
    kernel: "4.12",
    cpus: 12,
    settled_s: [160, 40],
    kyber_falls_s: 240,
    tolerance: |scheduler, _| match scheduler {
        "cfq" => Some(0.12),
        "kyber" => Some(0.15),
        _ => Some(0.07),
    },
    kyber_reads: Some(0.30),
    bfq_moves_most: false,
};

const NVME_ARTICLE: Article = Article {
    csv: include_str!("../../published/habr_nvme.csv"),
    job_name: "habr-nvme.fio",
    job: include_str!("../../published/jobs/habr-nvme.fio"),
    device: "micron-9100-1600gb",
    kernel: "4.12",
    cpus: 12,
    settled_s: [30, 10],
    kyber_falls_s: 60,
    tolerance: |scheduler, _| Some(if scheduler == "kyber" { 0.15 } else { 0.07 }),
    kyber_reads: Some(0.30),
    bfq_moves_most: false,
};

pub(super) const HDD_ARTICLE: Article = Article {
    csv: include_str!("../../published/habr_hdd.csv"),
    job_name: "habr-hdd.fio",
    job: include_str!("../../published/jobs/habr-hdd.fio"),
    device: "hgst-he10-8tb",
    kernel: "4.13",
    cpus: 24,
    settled_s: [1200, 1200],
    kyber_falls_s: 0,
    tolerance: |scheduler, column| match scheduler {
        "bfq" => None,
        "kyber" => column.contains("IOPS").then_some(0.15),
        _ => Some(0.05),
    },
    kyber_reads: None,
    bfq_moves_most: true,
};

pub(super) const SSD: Table = Table {
    name: "habr-ssd",
    title: "seven schedulers on a SATA SSD: ten writers and two processes of 20 % reads, iodepth 4",
    source: "habr, 2017: Intel DC S3520 1.6 TB, Linux 4.12, 12 CPUs, 2 h for each scheduler",
    story: "Figures are medians over the processes of a job, as published. The device is calibrated on the row none, \
            except for its round trip of writes at depth 1, which no row of none shows. That was derived from kyber's \
            total, so the rate of kyber's writers is calibration, too. kyber's figures cover the 160 s after the first 240 s, in \
            which its write depth falls to 1.",
    device: SSD_ARTICLE.device,
    host: None,
    unknowns: &[
        Unknown("ssd.host_to_device_us"),
        Unknown("ssd.acknowledge_us"),
        Unknown("ssd.gc.background_pages_per_s"),
        Unknown("ssd.gc.threshold_pages"),
        Unknown("host.worker_ns"),
    ],
    others: &[],
    repeats_max: 5,
    run: |setting| reproduce(&SSD_ARTICLE, setting),
};

pub(super) const NVME: Table = Table {
    name: "habr-nvme",
    title: "four schedulers on an NVMe SSD: ten writers and two processes of 20 % reads, iodepth 8",
    source: "habr, 2017: Micron 9100 1.6 TB, Linux 4.12, 12 CPUs, 2 h for each scheduler",
    story: "Figures are medians over the processes of a job, as published. The device is calibrated on the row none, \
            its round trip of writes at depth 1 on kyber's total, so the rate of kyber's writers is calibration, too. \
            kyber's figures cover 30 s after the first 60 s. The mixed processes do 12 % more writes than the writers, \
            in the published runs 9 % fewer.",
    device: NVME_ARTICLE.device,
    host: None,
    unknowns: &[
        Unknown("shape.hw_queues"),
        Unknown("flash.acknowledge_us"),
        Unknown("flash.read_us"),
        Unknown("host.worker_ns"),
    ],
    others: &[],
    repeats_max: 5,
    run: |setting| reproduce(&NVME_ARTICLE, setting),
};

pub(super) const HDD: Table = Table {
    name: "habr-hdd",
    title: "seven schedulers on a hard disk: two writers and a process of 40 % reads, iodepth 1",
    source: "habr, 2017: HGST 8 TB, Linux 4.13, 24 CPUs, 2 h for each scheduler",
    story: "The device is calibrated on the row none. Writes that wait for the drive's cache count as waiting until 1 \
            ms after the last one got in. That decides the row of kyber, which has one write in flight. Of single \
            figures under bfq nothing is claimed, since single runs of two hours differ; but the article finds that it \
            moves most data, and here it moves least.",
    device: HDD_ARTICLE.device,
    host: None,
    unknowns: &[
        Unknown("hdd.write_cache.pressure_lasts_ms"),
        Unknown("hdd.write_cache.read_waits_ms"),
        Unknown("hdd.write_to_read_ms"),
    ],
    others: &[],
    repeats_max: 5,
    run: |setting| reproduce(&HDD_ARTICLE, setting),
};

impl Article {
    /// The comparison with its load, device, kernel and host.
    pub(super) fn comparison(&self) -> Comparison {
        Comparison {
            load: load(self.job_name, self.job),
            devices: vec![self.device.into()],
            kernels: vec![self.kernel.to_owned()],
            cpus: Some(self.cpus),
            ..Comparison::default()
        }
    }
}

/// The articles are about the reading processes.
pub(super) fn watched() -> Vec<FocusedLoad> {
    let focused_load = |article: Article, job, runtime_ms: u64| FocusedLoad {
        name: article.job_name.to_owned(),
        comparison: Comparison { runtime_ns: Some(runtime_ms * 1_000_000), ..article.comparison() },
        variables: Vec::new(),
        job,
    };
    vec![
        focused_load(SSD_ARTICLE, "reader_20", 500),
        focused_load(NVME_ARTICLE, "reader_20", 100),
        focused_load(HDD_ARTICLE, "reader_40", 60_000),
    ]
}

fn rows(csv: &str) -> Vec<HabrRow> {
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables")).collect()
}

fn direction<'a>(row: &HabrRow, process: &'a Job) -> &'a DirectionStats {
    if row.dir == "read" { &process.read } else { &process.write }
}

fn reproduce(article: &Article, setting: Setting) -> Result<Vec<Cell>, Error> {
    let rows = rows(article.csv);
    let mut schedulers: Vec<&str> = rows.iter().map(|row| row.scheduler.as_str()).collect();
    schedulers.dedup();
    let mut outputs = BTreeMap::new();
    let [with_kyber, without]: [Vec<&str>; 2] = [true, false]
        .map(|is_kyber| schedulers.iter().copied().filter(|name| (*name == "kyber") == is_kyber).collect());
    for (names, settled_s) in [with_kyber, without].iter().zip(article.settled_s) {
        let comparison = Comparison {
            runtime_ns: Some(setting.duration_from_s(settled_s, PUBLISHED_S)),
            ramp_ns: Some(setting.duration_from_s(if names.contains(&"kyber") { article.kyber_falls_s } else { 0 }, 0)),
            ..article.comparison()
        };
        outputs.extend(names.iter().copied().zip(run(comparison, names, &[], setting)?));
    }
    let mut cells = Vec::new();
    for row in &rows {
        let none = rows.iter().find(|none| none.scheduler == "none" && none.job == row.job && none.dir == row.dir);
        let of_none = figures(none.expect("each article has none"), &outputs["none"]);
        let of_scheduler = figures(row, &outputs[row.scheduler.as_str()]);
        for (figure_index, (figure, (ours, published))) in ["IOPS", "mean ms"].into_iter().zip(of_scheduler).enumerate()
        {
            let column = format!("{}, {}, {figure}", row.job, row.dir);
            let is_calibration = article.kyber_reads.is_some() && row.scheduler == "kyber" && row.job == WRITERS;
            let judgement = match (article.tolerance)(&row.scheduler, &column) {
                _ if row.scheduler == "none" || is_calibration => Judgement::Calibration,
                Some(most) => Judgement::error_within_effect(most, published, of_none[figure_index].1),
                None => Judgement::None,
            };
            let cell = Cell::new(&row.scheduler, column, ours, Some(published), judgement);
            cells.push(if row.scheduler == "none" { cell } else { cell.beside(of_none[figure_index].0) });
        }
    }
    if let Some(reads_tolerance) = article.kyber_reads {
        cells.extend(kyber_ratios(&rows, &outputs, reads_tolerance));
    }
    if article.bfq_moves_most {
        let published = published_total_ratio(&rows, &outputs, "bfq");
        let ours = total_ratio(&outputs, "bfq");
        let judgement = Judgement::half_of(published);
        cells.push(Cell::ratio("bfq / none", "all IOPS", ours, Some(published), judgement));
    }
    Ok(cells)
}

/// The rate and the mean latency of a row, simulated and published.
fn figures(row: &HabrRow, output: &Output) -> [(f64, f64); 2] {
    let processes = || of_job(output, &row.job).map(|process| direction(row, process));
    [
        (median(processes().map(|stats| stats.iops).collect()), row.iops_from_bw),
        (median(processes().map(|stats| stats.lat_ns.mean / 1e6).collect()), row.lat_mean_ms),
    ]
}

/// The total rate of a scheduler over that of none, as published.
fn published_total_ratio(rows: &[HabrRow], outputs: &BTreeMap<&str, Output>, scheduler: &str) -> f64 {
    let total = |scheduler: &str| -> f64 {
        let of_scheduler = rows.iter().filter(|row| row.scheduler == scheduler);
        of_scheduler.map(|row| row.iops_from_bw * of_job(&outputs["none"], &row.job).count() as f64).sum()
    };
    total(scheduler) / total("none")
}

/// The total rate of a scheduler over that of none.
fn total_ratio(outputs: &BTreeMap<&str, Output>, scheduler: &str) -> f64 {
    let total =
        |scheduler: &str| -> f64 { outputs[scheduler].jobs.iter().map(|job| job.read.iops + job.write.iops).sum() };
    total(scheduler) / total("none")
}

/// The costs and gains of kyber: total IOPS and mean read latency, relative to none.
fn kyber_ratios(rows: &[HabrRow], outputs: &BTreeMap<&str, Output>, reads_tolerance: f64) -> [Cell; 2] {
    let published_reads = |scheduler: &str| {
        let reads = rows.iter().find(|row| row.scheduler == scheduler && row.dir == "read");
        reads.map_or(f64::NAN, |row| row.lat_mean_ms)
    };
    let reads = |scheduler: &str| -> f64 {
        let mixed = outputs[scheduler].jobs.iter().map(|job| &job.read).filter(|read| read.total_ios > 0);
        median(mixed.map(|read| read.lat_ns.mean).collect())
    };
    let cell = |column: &str, ours: f64, published: f64, judgement| {
        Cell::ratio("kyber / none", column, ours, Some(published), judgement)
    };
    [
        cell(
            "all IOPS",
            total_ratio(outputs, "kyber"),
            published_total_ratio(rows, outputs, "kyber"),
            Judgement::Calibration,
        ),
        cell(
            "reads, mean ms",
            reads("kyber") / reads("none"),
            published_reads("kyber") / published_reads("none"),
            Judgement::Error(reads_tolerance),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_tables_can_be_read_and_have_a_row_for_each_direction_of_each_job_under_each_scheduler() {
        for (article, schedulers) in [(SSD_ARTICLE, 7), (NVME_ARTICLE, 4), (HDD_ARTICLE, 7)] {
            assert_eq!(rows(article.csv).len(), 3 * schedulers, "{}", article.job_name);
        }
    }
}
