//! Table `icpe24-throughput`: throughput-bound processes on one to ten cores, with one and with eight drives.

use serde::Deserialize;

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, SCHEDULERS, on_study_host};
use super::prose::eight_drives;
use super::runs::{Setting, run};
use super::{Table, Unknown};
use hoistway_experiment::{Comparison, Error};

pub(super) const THROUGHPUT: Table = Table {
    name: "icpe24-throughput",
    title: "IOPS of processes at iodepth 128 on 1 to 10 cores, one and eight drives, over those of none",
    source: "ICPE 2024 slides and data set: eight Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores; up to 36.7 % lower throughput",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("host.handover_ns"), Unknown("flash.host_to_device_us")],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "The CPU time of each scheduler is calibrated with one process on one drive; with eight drives one \
                     process is a prediction. Of more processes the slides have curves and no numbers: claimed is \
                     their order with ten processes, kyber, mq-deadline, bfq, 5 % apart. That more drives carry more \
                     holds for none as well.";

const JOB: &str = include_str!("../../published/jobs/icpe24-tapp-scalability.fio");

/// The CPU time of an I/O on one saturated core.
#[derive(Deserialize)]
struct CpuRow {
    scheduler: String,
    devices: u32,
    cpu_us_per_io: f64,
}

fn cpu_rows() -> Vec<CpuRow> {
    let csv = include_str!("../../published/icpe24_cpu_per_io.csv");
    let rows = csv::Reader::from_reader(csv.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("a test reads the bundled tables")).collect()
}

/// The published IOPS of a scheduler over none's, with one process.
fn published(scheduler: &str, drives: u32) -> Option<f64> {
    let rows = cpu_rows();
    let us = |name: &str| {
        rows.iter().find(|row| row.scheduler == name && row.devices == drives).map(|row| row.cpu_us_per_io)
    };
    Some(us("none")? / us(scheduler)?)
}

/// IOPS of each scheduler.
fn iops(processes: u32, drives: u32, setting: Setting) -> Result<[f64; 4], Error> {
    let files: Vec<String> = (0..drives).map(|drive| format!("/dev/nvme{drive}n1")).collect();
    let variables = [("DEV", files.join(":")), ("SCHED", "none".to_owned()), ("NPROC", processes.to_string())];
    let comparison = Comparison {
        devices: vec![if drives == 1 { DRIVE.into() } else { eight_drives() }],
        ramp_ns: Some(setting.duration_from_ms(30, 30_000)),
        runtime_ns: Some(setting.duration_from_ms(100, 120_000)),
        ..on_study_host("icpe24-tapp-scalability.fio", JOB)
    };
    let outputs = run(comparison, &SCHEDULERS, &variables, setting)?;
    let mut iops = [0.0; 4];
    for (iops, output) in iops.iter_mut().zip(&outputs) {
        *iops = output.jobs.iter().map(|job| job.read.iops).sum();
    }
    Ok(iops)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    // IOPS of none, mq-deadline and bfq with ten processes, for one and eight drives.
    let mut iops_of_ten = Vec::new();
    for drives in [1, 8] {
        for processes in [1, 2, 5, 10] {
            let [none, bfq, kyber, deadline] = iops(processes, drives, setting)?;
            let row = format!("{drives} drive{}, {processes} process{}", plural(drives, "s"), plural(processes, "es"));
            for (scheduler, iops) in [("kyber", kyber), ("mq-deadline", deadline), ("bfq", bfq)] {
                let (published, judgement) = match (processes, drives) {
                    (1, 1) => (published(scheduler, 1), Judgement::Calibration),
                    (1, _) => (published(scheduler, drives), Judgement::Error(0.1)),
                    _ => (None, Judgement::None),
                };
                cells.push(Cell::ratio(&row, format!("{scheduler} over none"), iops / none, published, judgement));
            }
            if processes > 1 {
                for (column, ratio) in
                    [("mq-deadline over kyber", deadline / kyber), ("bfq over mq-deadline", bfq / deadline)]
                {
                    let judgement = if processes == 10 { Judgement::AtMost(0.95) } else { Judgement::None };
                    cells.push(Cell::ratio(&row, column, ratio, None, judgement));
                }
            }
            if processes == 10 {
                iops_of_ten.push([none, deadline, bfq]);
            }
        }
    }
    if let [one, eight] = iops_of_ten[..] {
        for (index, scheduler) in [(1, "mq-deadline"), (2, "bfq")] {
            let column = format!("IOPS of {scheduler} with eight drives over those with one");
            let cell = Cell::new("10 processes", column, eight[index] / one[index], None, Judgement::None);
            cells.push(cell.beside(eight[0] / one[0]));
        }
    }
    Ok(cells)
}

fn plural(count: u32, ending: &'static str) -> &'static str {
    if count == 1 { "" } else { ending }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_loses_most_under_bfq_as_published() {
        for drives in [1, 8] {
            let [kyber, deadline, bfq] = ["kyber", "mq-deadline", "bfq"].map(|name| published(name, drives).unwrap());
            assert!(bfq < kyber && kyber < deadline && deadline < 1.0, "{drives} drives: {kyber} {deadline} {bfq}");
        }
        assert!((published("bfq", 1).unwrap() - 0.633).abs() < 0.005, "36.7 % lower");
    }
}
