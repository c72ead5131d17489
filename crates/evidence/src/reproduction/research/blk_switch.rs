//! Table `research-blk-switch`: blk-switch's claims for latency and throughput processes on the same CPUs, behind a transport.

use super::{RunFigures, comparison_of_jobs, run_with, tunable};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Error};

pub(in crate::reproduction) const BLK_SWITCH: Table = Table {
    name: "research-blk-switch",
    title: "processes that wait for small reads beside ones with large reads on the same CPUs, behind a transport, under blk-switch and none",
    source: "Hwang, Vuppalapati, Peter, Agarwal, USENIX OSDI 2021 (a survey's summary): mean latency up to 130 times lower, p99 up to 24 times, \
             at 84 to 100 % of the throughput",
    story: STORY,
    device: DEVICE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "The costs of the transport are assumed, so that only ratios mean something. Half of the published effects is \
                     required.";

/// The device behind a transport.
const DEVICE: &str = "nvme-over-tcp";

/// Jobs on a host with this many CPUs; L are the processes that wait, T the others.
fn on_cpus(cpus: u16, jobs: &str, setting: Setting) -> Comparison {
    Comparison { cpus: Some(cpus), ..comparison_of_jobs("research-blk-switch", DEVICE, jobs, setting) }
}

fn l_apps(count: u32, cpus: &str) -> String {
    format!("[l]\nrw=randread\nprioclass=1\nprio=4\niodepth=1\nnumjobs={count}\ncpus_allowed={cpus}\n")
}

fn t_apps(name: &str, count: u32, depth: u32, cpus: &str) -> String {
    format!("[{name}]\nrw=randread\nbs=64k\niodepth={depth}\nnumjobs={count}\ncpus_allowed={cpus}\n")
}

/// A load under none, and under blk-switch in a mode.
fn none_and_mode(comparison: impl Fn() -> Comparison, mode: &str, setting: Setting) -> Result<[RunFigures; 2], Error> {
    Ok([run_with(comparison(), "none", Vec::new(), setting)?, in_mode(comparison(), mode, setting)?])
}

fn in_mode(comparison: Comparison, mode: &str, setting: Setting) -> Result<RunFigures, Error> {
    run_with(comparison, "blk-switch", tunable("blk-switch", "mode", mode), setting)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = one_core(setting)?;
    cells.extend(latency_processes(setting)?);
    cells.extend(breakdown(setting)?);
    cells.extend(depths(setting)?);
    Ok(cells)
}

/// One T process with 32 reads of 64 KiB beside L processes on one CPU.
fn one_core(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for count in [1, 2, 4] {
        let jobs = l_apps(count, "0") + &t_apps("t", 1, 32, "0");
        let [none, switch] = none_and_mode(|| on_cpus(2, &jobs, setting), "0", setting)?;
        let row = format!("one CPU, one T, {count} L, mode 0");
        let mean = none.mean_us("l") / switch.mean_us("l");
        let p99 = none.p99_us("l") / switch.p99_us("l");
        let kept = 100.0 * switch.bytes_per_second("t") / none.bytes_per_second("t");
        cells.push(Cell::ratio(&row, "mean of L: none over blk-switch", mean, Some(130.0), Judgement::half_of(130.0)));
        cells.push(Cell::ratio(&row, "p99 of L: none over blk-switch", p99, Some(24.0), Judgement::AtLeast(8.0)));
        let judgement = Judgement::AtLeast(84.0);
        cells.push(Cell::new(&row, "T's throughput, % of none's", kept, Some(84.0), judgement).beside(100.0));
    }
    Ok(cells)
}

/// The largest of some figures over the least.
fn spread(figures: &[f64]) -> f64 {
    let most = figures.iter().copied().fold(0.0, f64::max);
    most / figures.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Six to 24 L processes beside six T processes on six CPUs.
fn latency_processes(setting: Setting) -> Result<Vec<Cell>, Error> {
    let (mut cells, mut p99, mut p99_of_none) = (Vec::new(), Vec::new(), Vec::new());
    for count in [6, 12, 24] {
        let jobs = l_apps(count, "0-5") + &t_apps("t", 6, 16, "0-5");
        let [none, switch] = none_and_mode(|| on_cpus(6, &jobs, setting), "2", setting)?;
        let row = format!("six CPUs, six T of depth 16, {count} L, mode 2");
        let kept = 100.0 * switch.all_bytes_per_second() / none.all_bytes_per_second();
        p99.push(switch.p99_us("l"));
        p99_of_none.push(none.p99_us("l"));
        let judgement = Judgement::AtLeast(84.0);
        cells.push(Cell::new(&row, "all throughput, % of none's", kept, None, judgement).beside(100.0));
        let gained = none.p99_us("l") / switch.p99_us("l");
        cells.push(Cell::ratio(&row, "p99 of L: none over blk-switch", gained, None, Judgement::None));
    }
    let row = "six CPUs, six T of depth 16, 6 to 24 L, mode 2";
    let ours = Cell::new(row, "p99 of L: most over least", spread(&p99), None, Judgement::AtMost(2.0));
    cells.push(ours.beside(spread(&p99_of_none)));
    Ok(cells)
}

/// A T process of another depth on each CPU, the deepest on that of L.
fn breakdown(setting: Setting) -> Result<Vec<Cell>, Error> {
    let t_apps: String = [64, 32, 16, 8, 4, 2]
        .iter()
        .enumerate()
        .map(|(cpu, &depth)| t_apps(&format!("t{depth}"), 1, depth, &cpu.to_string()))
        .collect();
    let jobs = l_apps(1, "0") + &t_apps;
    let alone = run_with(on_cpus(6, &t_apps, setting), "none", Vec::new(), setting)?;
    let priority = in_mode(on_cpus(6, &jobs, setting), "0", setting)?;
    let steered = in_mode(on_cpus(6, &jobs, setting), "1", setting)?;
    let [alone, priority, steered] = [alone, priority, steered].map(|run| run.bytes_per_second("t64"));
    let row = "six CPUs, one L beside T of depth 64, T of 32 to 2 elsewhere";
    let lost = 100.0 * (1.0 - priority / alone);
    let back = 100.0 * (steered - priority) / (alone - priority);
    Ok(vec![
        Cell::new(row, "mode 0: taken from T of depth 64, %", lost, None, Judgement::AtLeast(30.0)).beside(0.0),
        Cell::new(row, "mode 1: given back of that, %", back, None, Judgement::AtLeast(80.0)).beside(0.0),
    ])
}

/// Six of each, T's depth from 2 to 64.
fn depths(setting: Setting) -> Result<Vec<Cell>, Error> {
    const DEPTHS: [u32; 4] = [2, 8, 16, 64];
    let (mut under_none, mut under_switch) = (Vec::new(), Vec::new());
    for depth in DEPTHS {
        let jobs = l_apps(6, "0-5") + &t_apps("t", 6, depth, "0-5");
        let [none, switch] = none_and_mode(|| on_cpus(6, &jobs, setting), "2", setting)?;
        under_none.push(none.p99_us("l"));
        under_switch.push(switch.p99_us("l"));
    }
    let row = "six L and six T, T's depth 2 to 64";
    let grown = under_none[3] / under_none[2];
    Ok(vec![
        Cell::new(row, "mode 2: p99 of L, most over least", spread(&under_switch), None, Judgement::AtMost(1.5))
            .beside(spread(&under_none)),
        Cell::new(row, "none: p99 of L at depth 64 over 16", grown, None, Judgement::AtLeast(4.0)),
    ])
}
