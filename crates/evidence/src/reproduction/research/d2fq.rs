//! Table `research-d2fq`: D2FQ's claims for flows on a drive with weighted round robin.

use super::{RunFigures, comparison_of_jobs, run_schedulers, run_with, tunable};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Error, Tunable};

pub(in crate::reproduction) const D2FQ: Table = Table {
    name: "research-d2fq",
    title: "flows of different depths and weights on a drive with weighted round robin, under d2fq, mqfq and none",
    source: "Woo, Ahn, Lee, Jeong, USENIX FAST 2021 (abstract): as fair as MQFQ at up to 45 % fewer CPU cycles",
    story: STORY,
    device: DEVICE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 3,
    run: reproduce,
};

const STORY: &str = "The drive is a class of drives with assumed numbers. Under none a deep flow gets less than its \
                     depth: the drive takes one command of each queue in turn. Of CPU time nothing is claimed, because \
                     the simulator charges locks alone. A flow of weight 8 leads by the default threshold after 20 \
                     reads of 4 KiB, fewer than its depth of 64: its share ends at 3 : 1, and adaptation brings 8 : 1 \
                     only with a larger threshold. A process at depth 1 probably waits for the dies.";

const DEVICE: &str = "nvme-wrr";

fn on_8_cpus(jobs: &str, setting: Setting) -> Comparison {
    Comparison { cpus: Some(8), ..comparison_of_jobs("research-d2fq", DEVICE, jobs, setting) }
}

fn job(name: &str, depth: u32, count: u32, others: &str) -> String {
    format!("[{name}]\nrw=randread\niodepth={depth}\nnumjobs={count}\n{others}")
}

/// The runs of a load under schedulers with their defaults.
fn run(jobs: &str, schedulers: &[&str], setting: Setting) -> Result<Vec<RunFigures>, Error> {
    run_schedulers(on_8_cpus(jobs, setting), schedulers, setting)
}

/// The run of a load under d2fq with these tunables.
fn run_d2fq(jobs: &str, tunables: Vec<Tunable>, setting: Setting) -> Result<RunFigures, Error> {
    run_with(on_8_cpus(jobs, setting), "d2fq", tunables, setting)
}

/// The part of a job in all I/Os, %.
fn share(run: &RunFigures, job: &str) -> f64 {
    100.0 * run.bytes_per_second(job) / run.all_bytes_per_second()
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = depths(setting)?;
    cells.extend(weights(setting)?);
    cells.extend(cpu_time(setting)?);
    cells.extend(shallow(setting)?);
    Ok(cells)
}

fn depths(setting: Setting) -> Result<Vec<Cell>, Error> {
    let deep = job("deep", 256, 1, "") + &job("others", 64, 3, "");
    let runs = run(&deep, &["none", "d2fq"], setting)?;
    let raised = run_d2fq(&deep, tunable("d2fq", "threshold", "131072"), setting)?;
    let row = "depth 256 beside three of depth 64";
    let tail = raised.p99_us("deep") / runs[1].p99_us("deep");
    let few = job("deep", 16, 1, "") + &job("others", 4, 3, "");
    let few = run(&few, &["none", "d2fq"], setting)?;
    let unchanged = share(&few[1], "deep") / share(&few[0], "deep");
    Ok(vec![
        Cell::new(row, "none: share of the deep one, %", share(&runs[0], "deep"), Some(57.1), Judgement::Error(0.15)),
        Cell::new(row, "d2fq: share of the deep one, %", share(&runs[1], "deep"), Some(25.0), Judgement::Error(0.05))
            .beside(share(&runs[0], "deep")),
        Cell::new(row, "threshold times 16: its share, %", share(&raised, "deep"), Some(25.0), Judgement::Error(0.05))
            .beside(share(&runs[0], "deep")),
        Cell::ratio(
            row,
            "threshold times 16: its p99 over that at the default",
            tail,
            Some(3.7),
            Judgement::AtLeast(2.0),
        ),
        Cell::ratio(
            "depth 16 beside three of depth 4: nothing waits at the drive",
            "share of the deep one: d2fq over none",
            unchanged,
            None,
            Judgement::NearOne(0.05),
        ),
    ])
}

fn weights(setting: Setting) -> Result<Vec<Cell>, Error> {
    let jobs = job("w8", 64, 4, "prioclass=2\nprio=0\n") + &job("w1", 64, 4, "prioclass=2\nprio=7\n");
    let ratio = |run: &RunFigures| run.bytes_per_second("w8") / run.bytes_per_second("w1");
    let fixed = run_d2fq(&jobs, tunable("d2fq", "ratio", "3"), setting)?;
    let adapt = || tunable("d2fq", "adapt", "1");
    let adapted = run_d2fq(&jobs, adapt(), setting)?;
    let raised = [adapt(), tunable("d2fq", "threshold", "131072")].concat();
    let raised = run_d2fq(&jobs, raised, setting)?;
    let row = "four of weight 8 beside four of weight 1, depth 64";
    Ok(vec![
        Cell::ratio(row, "ratio=3: bytes of 8 over those of 1", ratio(&fixed), Some(3.0), Judgement::Error(0.1)),
        Cell::ratio(row, "adapt=1: bytes of 8 over those of 1", ratio(&adapted), Some(8.0), Judgement::Error(0.1)),
        Cell::ratio(row, "adapt=1 and threshold times 16: the same", ratio(&raised), Some(8.0), Judgement::Error(0.1)),
    ])
}

fn cpu_time(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for (cores, cpus) in [("one core", "0"), ("8 cores", "0-7")] {
        let jobs = job("p", 64, 4, &format!("cpus_allowed={cpus}\n"));
        let runs = run(&jobs, &["none", "mqfq", "d2fq"], setting)?;
        let [none, mqfq, d2fq] = [0, 1, 2].map(|scheduler: usize| runs[scheduler].cpu_us_per_io());
        let row = format!("four of depth 64 on {cores}");
        cells.push(Cell::ratio(&row, "CPU time of an I/O: d2fq over none", d2fq / none, None, Judgement::None));
        cells.push(Cell::ratio(&row, "d2fq over mqfq", d2fq / mqfq, Some(0.55), Judgement::None));
    }
    Ok(cells)
}

fn shallow(setting: Setting) -> Result<Vec<Cell>, Error> {
    let one = job("one", 1, 1, "");
    let alone = run_d2fq(&one, Vec::new(), setting)?;
    let beside = run_d2fq(&(one + &job("others", 64, 3, "")), Vec::new(), setting)?;
    let slowed = beside.p99_us("one") / alone.p99_us("one");
    Ok(vec![Cell::new(
        "depth 1 beside three of depth 64",
        "d2fq: its p99 over that alone",
        slowed,
        None,
        Judgement::AtMost(1.5),
    )])
}
