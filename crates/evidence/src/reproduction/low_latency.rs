//! Table `hotstorage23-low-latency`: what a scheduler adds on a drive that needs less than 10 us.

use super::Table;
use super::cell::{Cell, Judgement};
use super::research::{RunFigures, comparison_of_jobs, run_schedulers};
use super::runs::Setting;
use hoistway_experiment::{Comparison, Error};

const DRIVE: &str = "intel-p4800x-375gb";

pub(super) const LOW_LATENCY: Table = Table {
    name: "hotstorage23-low-latency",
    title: "what a scheduler adds to the median latency of a read on Optane, and to the CPU time of an I/O",
    source: "Whitaker et al., HotStorage 2023, as a survey cites it: mq-deadline and kyber add 0.5 to 0.9 us to the median, bfq up to 2.5 us",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 5,
    run: reproduce,
};

const STORY: &str = "The drive's model has only its data sheet, and the host is the built-in server: kernel and CPU of the study are not known \
                     here. Published as 0.7 stands for 0.5 to 0.9 us; claimed are 0.4 us around it, and for bfq 1 us around its most. A \
                     percentile has steps of 1.6 %, 0.13 us at 10 us. The study finds that no scheduler has less latency than none, \
                     alone or at depth, and uses CPU time as a measure of energy.";

/// Cheapest first, as published.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

fn runs(depth: u32, setting: Setting) -> Result<Vec<RunFigures>, Error> {
    let jobs = format!("[reader]\nrw=randread\niodepth={depth}\ncpus_allowed=1\n");
    let comparison = Comparison {
        ramp_ns: Some(setting.duration_from_ms(100, 5000)),
        runtime_ns: Some(setting.duration_from_ms(1000, 60_000)),
        ..comparison_of_jobs("hotstorage23-low-latency", DRIVE, &jobs, setting)
    };
    run_schedulers(comparison, &SCHEDULERS, setting)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let alone = runs(1, setting)?;
    let deep = runs(32, setting)?;
    let added_us = |index: usize| alone[index].p50_us("reader") - alone[0].p50_us("reader");
    let mut cells = vec![
        Cell::new("depth 1", "none: median, us", alone[0].p50_us("reader"), None, Judgement::None),
        Cell::new("depth 1", "mq-deadline adds, us", added_us(1), Some(0.7), Judgement::Distance(0.4)),
        Cell::new("depth 1", "kyber adds, us", added_us(2), Some(0.7), Judgement::Distance(0.4)),
        Cell::new("depth 1", "bfq adds, us", added_us(3), Some(2.5), Judgement::Distance(1.0)),
    ];
    for (row, runs) in [("depth 1", &alone), ("depth 32", &deep)] {
        for (scheduler, run) in SCHEDULERS.iter().zip(runs).skip(1) {
            let mean = run.mean_us("reader") / runs[0].mean_us("reader");
            let cpu = run.cpu_us_per_io() / runs[0].cpu_us_per_io();
            cells.push(Cell::new(row, format!("{scheduler}: mean over none's"), mean, None, Judgement::AtLeast(1.0)));
            cells.push(Cell::new(
                row,
                format!("{scheduler}: CPU time over none's"),
                cpu,
                None,
                Judgement::AtLeast(1.0),
            ));
        }
        // mq-deadline and kyber count as equal.
        let cheaper = runs[1].cpu_us_per_io().max(runs[2].cpu_us_per_io());
        let over = runs[3].cpu_us_per_io() / cheaper;
        cells.push(Cell::new(row, "bfq: CPU time over the others'", over, None, Judgement::AtLeast(1.0)));
    }
    Ok(cells)
}
