//! Table `hotstorage23-low-latency`: what a scheduler adds on a drive that needs less than 10 us.

use super::cell::{Cell, Judgement};
use super::research::{RunFigures, comparison_of_jobs, run_schedulers};
use super::runs::Setting;
use super::{Table, Unknown};
use hoistway_experiment::{Comparison, Error};

const DRIVE: &str = "intel-p4800x-375gb";

pub(super) const LOW_LATENCY: Table = Table {
    name: "hotstorage23-low-latency",
    title: "what a scheduler adds to the median latency of a read on Optane, and to the CPU time of an I/O",
    source: "Whitaker et al., HotStorage 2023, as a survey cites it: mq-deadline and kyber add 0.5 to 0.9 us to the median, bfq up to 2.5 us",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[Unknown("host.worker_ns"), Unknown("optane.access_us")],
    others: &[],
    repeats_max: 5,
    run: reproduce,
};

const STORY: &str = "The drive's model has only its data sheet; kernel and CPU of the study are not known here. \
                     Published as 0.7 stands for 0.5 to 0.9 us; claimed are 0.35 us around it, and for bfq 1 us around \
                     its most. Waking the kernel worker that dispatches takes 5 us here, far more than the scheduler; \
                     the study fits submitters that dispatch themselves (`--submitter-dispatches`). Of the CPU time, a \
                     measure of energy in the study, it is claimed that bfq costs at least 1.1 times the others at \
                     depth.";

/// Cheapest first, as published.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

fn runs(depth: u32, submitter_dispatches: bool, setting: Setting) -> Result<Vec<RunFigures>, Error> {
    let jobs = format!("[reader]\nrw=randread\niodepth={depth}\ncpus_allowed=1\n");
    let comparison = Comparison {
        submitter_dispatches,
        ramp_ns: Some(setting.duration_from_ms(100, 5000)),
        runtime_ns: Some(setting.duration_from_ms(1000, 60_000)),
        ..comparison_of_jobs("hotstorage23-low-latency", DRIVE, &jobs, setting)
    };
    run_schedulers(comparison, &SCHEDULERS, setting)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for (row, depth, submitter_dispatches) in [
        ("depth 1, the submitter dispatches", 1, true),
        ("depth 1, a kernel worker dispatches", 1, false),
        ("depth 32, a kernel worker dispatches", 32, false),
    ] {
        let runs = &runs(depth, submitter_dispatches, setting)?;
        let none_us = runs[0].p50_us("reader");
        cells.push(Cell::new(row, "none: median, us", none_us, None, Judgement::None));
        if depth == 1 {
            for (index, published_us, distance_us) in [(1, 0.7, 0.35), (2, 0.7, 0.35), (3, 2.5, 1.0)] {
                let added_us = runs[index].p50_us("reader") - none_us;
                let column = format!("{} adds, us", SCHEDULERS[index]);
                let judgement = Judgement::Distance(distance_us);
                cells.push(Cell::new(row, column, added_us, Some(published_us), judgement).beside(0.0));
            }
        }
        for (scheduler, run) in SCHEDULERS.iter().zip(runs).skip(1) {
            let mean = run.mean_us("reader") / runs[0].mean_us("reader");
            let cpu = run.cpu_us_per_io() / runs[0].cpu_us_per_io();
            cells.push(Cell::ratio(row, format!("{scheduler}: mean over none's"), mean, None, Judgement::None));
            cells.push(Cell::ratio(row, format!("{scheduler}: CPU time over none's"), cpu, None, Judgement::None));
        }
        // mq-deadline and kyber count as equal.
        let cheaper = runs[1].cpu_us_per_io().max(runs[2].cpu_us_per_io());
        let over = runs[3].cpu_us_per_io() / cheaper;
        let judgement = if depth == 1 { Judgement::None } else { Judgement::AtLeast(1.1) };
        cells.push(Cell::ratio(row, "bfq: CPU time over the others'", over, None, judgement));
    }
    Ok(cells)
}
