//! Table `research-tabs`: TABS's claim for reads beside writes with FUA, by the share of the latter.

use super::{DRIVE, RunFigures, comparison_of_jobs, run_schedulers, run_with};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Devices, Error, Tunable, scenarios};

pub(in crate::reproduction) const TABS: Table = Table {
    name: "research-tabs",
    title: "reads beside writes with FUA on a drive on which these block reads, under tabs, none and kyber",
    source: "Kim et al., USENIX HotStorage 2022 (abstract): fairness 76 % in the mean and 99.5 % at best, against 18 % under none",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "40 requests of 4 KiB are outstanding, of which the share of the row are writes with FUA. A type's \
                     goal is what its job has alone under none, times its share; fairness is the least part of its \
                     goal that a type has. The drive is that of the bundled load `fua-writer`, on which FUA writes \
                     that wait together are programmed together. Usually tabs measures by itself what a type has \
                     alone.";

/// Requests outstanding.
const DEPTH: u32 = 40;
/// Shares of writes with FUA, percent.
const SHARES: [u32; 5] = [10, 30, 50, 70, 90];

/// So many reads and writes with FUA outstanding, on the drive of the bundled load.
fn comparison(reads: u32, fua_writes: u32, setting: Setting) -> Comparison {
    let job = |name: &str, depth: u32, options: &str| match depth {
        0 => String::new(),
        _ => format!("[{name}]\n{options}\niodepth={depth}\n"),
    };
    let jobs = job("reads", reads, "rw=randread") + &job("fua-writes", fua_writes, "rw=randwrite\nsync=dsync");
    let scenario = scenarios::named("fua-writer").expect("it is bundled");
    Comparison {
        devices: vec![Devices { common: Some(scenario.page.device_profile()), ..Devices::default() }],
        // Goals are corrected ten times a second.
        ramp_ns: Some(setting.duration_from_ms(1500, 5000)),
        ..comparison_of_jobs("research-tabs", DRIVE, &jobs, setting)
    }
}

/// The least part of its goal that a type has.
fn fairness(run: &RunFigures, alone: [f64; 2], share: f64) -> f64 {
    let part = |job: &str, goal: f64| run.bytes_per_second(job) / goal;
    part("reads", alone[0] * (1.0 - share)).min(part("fua-writes", alone[1] * share))
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    const SCHEDULERS: [&str; 3] = ["none", "kyber", "tabs"];
    let alone_of = |job: &str, reads, fua_writes| {
        let runs = run_schedulers(comparison(reads, fua_writes, setting), &["none"], setting)?;
        Ok::<f64, Error>(runs[0].bytes_per_second(job))
    };
    let mut cells = Vec::new();
    let given = |name: &str, bytes_per_s: f64| Tunable {
        scheduler: "tabs".to_owned(),
        name: name.to_owned(),
        text: format!("{:.0}", (bytes_per_s / 1e6).max(1.0)),
    };
    let mut sums = [0.0; 4];
    for percent in SHARES {
        let fua_writes = DEPTH * percent / 100;
        let load = || comparison(DEPTH - fua_writes, fua_writes, setting);
        let share = f64::from(percent) / 100.0;
        let alone = [alone_of("reads", DEPTH - fua_writes, 0)?, alone_of("fua-writes", 0, fua_writes)?];
        let mut runs = run_schedulers(load(), &SCHEDULERS, setting)?;
        let tunables = vec![given("read_mbps", alone[0]), given("fua_write_mbps", alone[1])];
        runs.push(run_with(load(), "tabs", tunables, setting)?);
        let columns = ["none: fairness", "kyber: fairness", "tabs: fairness", "tabs with given bandwidths: fairness"];
        for ((column, run), sum) in columns.into_iter().zip(&runs).zip(&mut sums) {
            let fairness = fairness(run, alone, share);
            *sum += fairness / SHARES.len() as f64;
            cells.push(Cell::new(format!("{percent} % FUA writes"), column, fairness, None, Judgement::None));
        }
    }
    let row = "10 to 90 % FUA writes";
    let [none, kyber, tabs, given] = sums;
    cells.extend([
        Cell::new(row, "none: mean fairness", none, Some(0.18), Judgement::AtMost(0.3)),
        Cell::new(row, "kyber: mean fairness", kyber, None, Judgement::None),
        Cell::new(row, "tabs: mean fairness", tabs, Some(0.76), Judgement::AtLeast(0.7)).beside(none),
        Cell::new(row, "tabs with given bandwidths: mean fairness", given, Some(0.76), Judgement::AtLeast(0.7))
            .beside(none),
    ]);
    Ok(cells)
}
