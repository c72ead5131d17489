//! Table `research-cffq`: shares by level and throughput without slices, and classes.

use super::{DRIVE, comparison_of_jobs, run_schedulers};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::Error;

pub(in crate::reproduction) const CFFQ: Table = Table {
    name: "research-cffq",
    title: "best-effort levels 0, 4 and 7, and a real-time process beside others, under cffq, bfq and none",
    source: "Yi, Lee, Eom, ACM IMCOM 2017 (in words): shares by priority while an SSD serves several processes",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "No figures of the paper are known here. Criteria are this project's: shares of 8 : 4 : 1 within 5 %, as MQFQ's weights are judged, at \
                     95 % of none's throughput.";

/// Processes of each level and requests that each has outstanding.
const LEVELS: [(u8, f64); 3] = [(0, 8.0), (4, 4.0), (7, 1.0)];

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let job = |name: &str, class: u8, level: u8, more: &str| {
        format!("[{name}]\nrw=randread\nprioclass={class}\nprio={level}\n{more}")
    };
    let deep = "iodepth=64\nnumjobs=2\n";
    let levels: String = LEVELS.iter().map(|(level, _)| job(&format!("level-{level}"), 2, *level, deep)).collect();
    let schedulers = ["none", "bfq", "cffq"];
    let runs = run_schedulers(comparison_of_jobs("research-cffq", DRIVE, &levels, setting), &schedulers, setting)?;
    let due: f64 = LEVELS.iter().map(|(_, weight)| weight).sum();
    let row = "levels 0, 4 and 7";
    let mut cells = Vec::new();
    for (level, weight) in LEVELS {
        let share = |run: usize| {
            let run = &runs[run];
            100.0 * run.bytes_per_second(&format!("level-{level}")) / run.all_bytes_per_second()
        };
        let published = Some(100.0 * weight / due);
        let column = format!("cffq: share of level {level}, %");
        cells.push(Cell::new(row, column, share(2), published, Judgement::Error(0.05)).beside(share(0)));
    }
    let none = runs[0].all_bytes_per_second();
    for (scheduler, run) in schedulers.iter().zip(&runs).skip(1) {
        let judgement = if *scheduler == "cffq" { Judgement::AtLeast(0.95) } else { Judgement::None };
        let column = format!("{scheduler}: throughput over none's");
        cells.push(Cell::ratio(row, column, run.all_bytes_per_second() / none, None, judgement));
    }
    let jobs = job("urgent", 1, 4, "iodepth=1\n") + &job("others", 2, 4, deep) + &job("idle", 3, 0, deep);
    let runs = run_schedulers(comparison_of_jobs("research-cffq", DRIVE, &jobs, setting), &["none", "cffq"], setting)?;
    let row = "a real-time process at depth 1, best effort and idle";
    let p99 = runs[0].p99_us("urgent") / runs[1].p99_us("urgent");
    cells.push(Cell::new(row, "p99 of none over cffq's", p99, None, Judgement::AtLeast(1.1)));
    let idle = 100.0 * runs[1].bytes_per_second("idle") / runs[1].all_bytes_per_second();
    cells.push(Cell::new(row, "cffq: share of the idle class, %", idle, None, Judgement::AtMost(1.0)));
    Ok(cells)
}
