//! Table `icpe24-locks`: what locks cost processes at iodepth 128 on 1 to 10 cores.

use hoistway_measure::Operation;

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, SCHEDULERS, on_study_host};
use super::prose::eight_drives;
use super::runs::{Setting, Variables, hosts};
use super::{Table, Unknown};
use hoistway_experiment::{Comparison, Error};

pub(super) const LOCKS: Table = Table {
    name: "icpe24-locks",
    title: "the part of the CPU time that goes into locks, and mq-deadline's rate, with 1 to 10 processes at iodepth 128",
    source: "ICPE 2024 slides and data set, figures 7 and 8: eight Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("host.handover_ns")],
    // Whole numbers.
    others: &[(Unknown("host.waiter_ns"), 2.0), (Unknown("host.waiter_ns"), 8.0)],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "What a hand-over of a lock costs, alone and for each CPU that waits, was fitted to the two rates \
                     of mq-deadline. All else is a prediction. The share is that of all CPU time, waiting included. \
                     Kyber's is published for ten processes as 14.7 %; claimed is a factor of two. The slides say that \
                     mq-deadline and bfq spend a large share on locks (claimed: at least 30 % with ten processes on \
                     one drive), and less with eight drives (claimed: at most 0.8 of that).";

/// The rates of mq-deadline with so many processes, thousand I/Os per second (figure 7).
const RATES: [(u32, f64); 2] = [(3, 569.0), (10, 470.0)];
/// Kyber's share of locks with ten processes on one drive, percent (figure 8).
const KYBER_SHARE: f64 = 14.7;

const JOB: &str = include_str!("../../published/jobs/icpe24-tapp-scalability.fio");
/// CPUs of the study's host.
const CPUS: f64 = 10.0;

/// Thousand I/Os per second of a scheduler, and the percentage of CPU time spent under its locks and waiting for them.
struct Figures {
    kiops: f64,
    share: f64,
}

fn figures(processes: u32, drives: u32, setting: Setting) -> Result<Vec<Figures>, Error> {
    let files: Vec<String> = (0..drives).map(|drive| format!("/dev/nvme{drive}n1")).collect();
    let variables = [("DEV", files.join(":")), ("SCHED", "none".to_owned()), ("NPROC", processes.to_string())];
    let comparison = on_study_host("icpe24-tapp-scalability.fio", JOB);
    let comparison = Comparison {
        devices: vec![if drives == 1 { DRIVE.into() } else { eight_drives() }],
        hosts: hosts(comparison.hosts.clone(), setting),
        schedulers: SCHEDULERS.iter().map(|&name| name.to_owned()).collect(),
        ramp_ns: Some(setting.duration_from_ms(30, 30_000)),
        runtime_ns: Some(setting.duration_from_ms(60, 120_000)),
        seed: setting.seed,
        ..comparison
    };
    let document = comparison.run(&Variables(&variables))?;
    let figures = document.runs.iter().map(|run| {
        let reads = run.jobs.iter().filter_map(|job| job.operation(Operation::Read));
        let iops = reads.map(|reads| reads.iops).sum::<f64>();
        let busy_percent = run.cpu_us_per_io.unwrap_or(0.0) * iops / 1e6 / CPUS * 100.0;
        let percent = run.locks.map_or(0.0, |locks| locks.held_percent + locks.waited_percent);
        Figures { kiops: iops / 1e3, share: 100.0 * percent / busy_percent }
    });
    Ok(figures.collect())
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    let share = |row: &str, scheduler: &str, share: f64, published: Option<f64>, judgement| {
        Cell::new(row, format!("{scheduler}: CPU time in locks, %"), share, published, judgement).beside(0.0)
    };
    for (processes, published) in RATES {
        let figures = figures(processes, 1, setting)?;
        let row = format!("1 drive, {processes} processes");
        let kiops = figures[3].kiops;
        cells.push(Cell::new(&row, "mq-deadline: thousand IOPS", kiops, Some(published), Judgement::Calibration));
        if processes == 10 {
            cells.push(share(&row, "kyber", figures[2].share, Some(KYBER_SHARE), Judgement::Factor(2.0)));
            for (index, scheduler) in [(3, "mq-deadline"), (1, "bfq")] {
                cells.push(share(&row, scheduler, figures[index].share, None, Judgement::AtLeast(30.0)));
                let column = format!("{scheduler}'s share over kyber's");
                let over_kyber = figures[index].share / figures[2].share;
                cells.push(Cell::ratio(&row, column, over_kyber, None, Judgement::None));
            }
            let eight = self::figures(10, 8, setting)?;
            for (index, scheduler) in [(3, "mq-deadline"), (1, "bfq")] {
                let column = format!("{scheduler}'s share over that with one drive");
                let ratio = eight[index].share / figures[index].share;
                cells.push(Cell::ratio("8 drives, 10 processes", column, ratio, None, Judgement::AtMost(0.8)));
            }
        }
    }
    Ok(cells)
}
