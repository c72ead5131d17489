//! Tables `icpe24-overhead` and `icpe24-interference`: figures in the text of the ICPE'24 slides.

use super::cell::{Cell, Judgement};
use super::heatmaps::{DRIVE, SCHEDULERS, on_study_host, p99_by_scheduler, variables};
use super::one_drive::COMMAND_LIMITS;
use super::runs::{Setting, of_job, p99_us, run};
use super::sensitivity::{To, Variation};
use super::watched::FocusedLoad;
use super::{Table, Unknown, published_readers};
use hoistway_experiment::Error;
use hoistway_experiment::{Comparison, Devices, Profile};

pub(super) const OVERHEAD: Table = Table {
    name: "icpe24-overhead",
    title: "what a scheduler adds to the p99 of a lone process at iodepth 1: up to 2.7 %",
    source: "ICPE 2024 slides: Samsung 980 PRO 1 TB, Linux 6.3.8, one core",
    story: "Figures are p99 divided by that of none. Half of what bfq adds is claimed; that a scheduler adds little holds without \
            any scheduler.",
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("flash.host_to_device_us")],
    others: &[],
    repeats_max: 5,
    run: overhead,
};

pub(super) const INTERFERENCE: Table = Table {
    name: "icpe24-interference",
    title: "only bfq and kyber bound the p99 of a reader beside many writers",
    source: "ICPE 2024 slides: eight Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores; figures 11c and 11d",
    story: "Figures are the p99 of a reader at iodepth 1 beside 8 and 16 writers at iodepth 128, divided by the worse \
            of bfq's and kyber's. For 8 writers no figures are public, and at least 3 is claimed. One of the eight \
            drives is slower than the others. Here all processes belong to one fio; in the study each was a fio of its \
            own, which matters under bfq, since processes that begin within 180 ms of each other share a queue.",
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("shape.hw_queues"), Unknown("flash.fetches_commands"), Unknown("flash.buffer_kib")],
    others: COMMAND_LIMITS,
    repeats_max: 5,
    run: interference,
};

pub(super) const DEEP_READER: Table = Table {
    name: "icpe24-deep-reader",
    title: "bfq and kyber keep more of the rate of a reader at iodepth 128 beside writers of 64 KiB",
    source: "ICPE 2024 slides: eight Samsung 980 PRO 1 TB, Linux 6.3.8, 10 cores; figure 12b",
    story: "Figures are IOPS of a reader of 4 KiB at iodepth 128 beside 4 and 16 writers of 64 KiB, divided by the \
            better of none's and mq-deadline's. Half of the published effect is claimed. The model was fitted to rows \
            of none with such writers; beside four of them the reader is disturbed far too little.",
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("flash.fetches_commands"), Unknown("flash.buffer_kib")],
    others: COMMAND_LIMITS,
    repeats_max: 3,
    run: deep_reader,
};

fn overhead(setting: Setting) -> Result<Vec<Cell>, Error> {
    let job = include_str!("../../published/jobs/icpe24-lapp-intra.fio");
    let p99 = p99_by_scheduler("icpe24-lapp-intra.fio", job, &variables("QD", 1), setting)?;
    let ratios = SCHEDULERS.iter().zip(p99).skip(1);
    Ok(ratios
        .map(|(scheduler, p99_us)| {
            let published = (*scheduler == "bfq").then_some(1.027);
            let judgement = published.map_or(Judgement::None, Judgement::half_of);
            Cell::ratio(*scheduler, "p99 over none", p99_us / p99[0], published, judgement)
        })
        .collect())
}

/// The drives of the study. One of them reads 9 % slower than the others, as a comparison of figures 1a and 11b shows, and collects
/// flash more slowly, which was fitted to rows of `none`: see docs/devices.md.
pub(super) fn eight_drives() -> Devices {
    let slower = [("flash.read_mb_per_s", 0.91), ("flash.collection.step_us", 2.0)];
    let slower = slower.into_iter().fold(Profile::Named(DRIVE.to_owned()), |drive, (key, times)| {
        let change = Variation { unknown: Unknown(key), to: To::Times(times) };
        change.changed_device(&drive).ok().flatten().expect("the preset has these numbers").0
    });
    Devices { files: [("/dev/nvme0n1".to_owned(), slower)].into(), ..DRIVE.into() }
}

/// The published figures: name, job file's name and text.
const INTERFERENCES: [(&str, &str, &str); 2] = [
    ("11c (4 KiB)", "icpe24-interference-11c.fio", include_str!("../../published/jobs/icpe24-interference-11c.fio")),
    ("11d (64 KiB)", "icpe24-interference-11d.fio", include_str!("../../published/jobs/icpe24-interference-11d.fio")),
];

/// The variables of these job files for this many writers.
pub(super) fn variables_beside(writers: u32) -> [(&'static str, String); 3] {
    let drives: Vec<String> = (0..8).map(|drive| format!("/dev/nvme{drive}n1")).collect();
    [("DEV", drives.join(":")), ("SCHED", "none".to_owned()), ("NBG", writers.to_string())]
}

fn deep_reader(setting: Setting) -> Result<Vec<Cell>, Error> {
    let job = include_str!("../../published/jobs/icpe24-interference-12b.fio");
    let published = published_readers::rows();
    let mut cells = Vec::new();
    for writers in [4, 16] {
        let comparison = Comparison {
            devices: vec![eight_drives()],
            ramp_ns: Some(setting.duration_from_ms(500, 600_000)),
            runtime_ns: Some(setting.duration_from_ms(1500, 600_000)),
            ..on_study_host("icpe24-interference-12b.fio", job)
        };
        let outputs = run(comparison, &SCHEDULERS, &variables_beside(writers), setting)?;
        let iops = |index: usize| of_job(&outputs[index], "tapp_fg").map(|job| job.read.iops).sum::<f64>();
        let row = format!("{writers} writers");
        let published = |index: usize| {
            let row = published_readers::row_of(&published, "12b", SCHEDULERS[index], writers);
            row.expect("the bundled table has it").fg_iops
        };
        cells.push(Cell::new(&row, "none: thousand IOPS", iops(0) / 1e3, Some(published(0) / 1e3), Judgement::None));
        let unbounded = |iops: &dyn Fn(usize) -> f64| iops(0).max(iops(3));
        for index in [1, 2] {
            let column = format!("{} over the better of none and mq-deadline", SCHEDULERS[index]);
            let [ours, published] = [iops(index) / unbounded(&iops), published(index) / unbounded(&published)];
            cells.push(Cell::ratio(&row, column, ours, Some(published), Judgement::half_of(published)));
        }
    }
    Ok(cells)
}

/// The study is about the effect of the writers on the reader.
pub(super) fn watched() -> Vec<FocusedLoad> {
    let focused_load = |(figure, job_name, job): (&str, &str, &str)| FocusedLoad {
        name: format!("icpe24-interference {figure}, 8 writers"),
        comparison: Comparison {
            devices: vec![eight_drives()],
            ramp_ns: Some(20_000_000),
            runtime_ns: Some(50_000_000),
            ..on_study_host(job_name, job)
        },
        variables: variables_beside(8).into(),
        job: "lapp",
    };
    INTERFERENCES.map(focused_load).into()
}

fn interference(setting: Setting) -> Result<Vec<Cell>, Error> {
    let published = published_readers::rows();
    let mut cells = Vec::new();
    for (figure, job_name, job) in INTERFERENCES {
        for writers in [8, 16] {
            let variables = variables_beside(writers);
            let comparison = Comparison {
                devices: vec![eight_drives()],
                ramp_ns: Some(setting.duration_from_s(1, 600)),
                runtime_ns: Some(setting.duration_from_s(3, 600)),
                ..on_study_host(job_name, job)
            };
            let outputs = run(comparison, &SCHEDULERS, &variables, setting)?;
            let p99 = |index: usize| of_job(&outputs[index], "lapp").map(|job| p99_us(&job.read)).sum::<f64>();
            let bounded = p99(1).max(p99(2));
            let published_p99 = |index: usize| {
                let row = published_readers::row_of(&published, &figure[..3], SCHEDULERS[index], writers)?;
                Some(row.fg_clat_p99_us)
            };
            for index in [0, 3] {
                let row = format!("{figure}, {writers} writers");
                let column = format!("{} over the worse of bfq and kyber", SCHEDULERS[index]);
                let ratio = |index| Some(published_p99(index)? / published_p99(1)?.max(published_p99(2)?));
                let published = ratio(index);
                let judgement = published.map_or(Judgement::AtLeast(3.0), Judgement::half_of);
                cells.push(Cell::ratio(row, column, p99(index) / bounded, published, judgement));
            }
        }
    }
    Ok(cells)
}
