//! Table `research-mqfq`: MQFQ's claims for flows with different depths, sizes and weights on 16 CPUs with a hardware queue each.

use super::{DRIVE, RunFigures, comparison_of_jobs, run_schedulers, tunable, vary};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_answer::document::SeriesSummary;
use hoistway_experiment::{Comparison, Error};

pub(in crate::reproduction) const MQFQ: Table = Table {
    name: "research-mqfq",
    title: "flows of different depths, sizes and weights on 16 CPUs, under mqfq, none and bfq",
    source: "Hedayati, Shen, Scott, Marty, USENIX ATC 2019 (abstract): slowdown beside an antagonist 3.78 to 1.33 and 6.57 to 1.03; 20 \
             times the IOPS of bfq",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 5,
    run: reproduce,
};

const STORY: &str = "A flow at depth 8, or of small requests at depth 64, has all of them in the 64 slots, so the rest goes to the \
                     other flow: with slots=8 it has its half. From two cores on the drive is the limit, for bfq as well.";

const CPUS: u16 = 16;

/// Jobs on a host of 16 CPUs with a hardware queue each.
fn on_16_cpus(name: &str, jobs: &str, setting: Setting) -> Comparison {
    Comparison { cpus: Some(CPUS), hw_queues: Some(CPUS), ..comparison_of_jobs(name, DRIVE, jobs, setting) }
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = depths(setting)?;
    cells.extend(sizes(setting)?);
    cells.extend(slowdown(setting)?);
    cells.extend(weights(setting)?);
    cells.extend(cores(setting)?);
    cells.extend(thresholds(setting)?);
    Ok(cells)
}

/// The first job's share of the bytes of both, %.
fn share(run: &RunFigures, first: &str, second: &str) -> f64 {
    let [first, second] = [first, second].map(|job| run.bytes_per_second(job));
    100.0 * first / (first + second).max(1.0)
}

fn depths(setting: Setting) -> Result<Vec<Cell>, Error> {
    let jobs = "[shallow]\nrw=randread\niodepth=8\n[deep]\nrw=randread\niodepth=128\n";
    let comparison = || on_16_cpus("research-mqfq-depths", jobs, setting);
    let runs = run_schedulers(comparison(), &["none", "mqfq"], setting)?;
    let few =
        run_schedulers(Comparison { tunables: tunable("mqfq", "slots", "8"), ..comparison() }, &["mqfq"], setting)?;
    let row = "4 KiB at depth 8 beside depth 128";
    let under_none = runs[0].iops("deep") / runs[0].iops("shallow");
    let shallow_share = |run: &RunFigures| share(run, "shallow", "deep");
    Ok(vec![
        Cell::new(row, "none: deep over shallow", under_none, None, Judgement::None),
        Cell::new(row, "mqfq: share of shallow, %", shallow_share(&runs[1]), Some(50.0), Judgement::Distance(5.0))
            .beside(shallow_share(&runs[0])),
        Cell::new(
            row,
            "mqfq with slots=8: share of shallow, %",
            shallow_share(&few[0]),
            Some(50.0),
            Judgement::Distance(5.0),
        )
        .beside(shallow_share(&runs[0])),
    ])
}

fn sizes(setting: Setting) -> Result<Vec<Cell>, Error> {
    let job =
        |name: &str, size: &str| format!("[{name}]\nrw=randread\nbs={size}\niodepth=16\nnumjobs=4\ncgroup={name}\n");
    let jobs = job("small", "4k") + &job("large", "128k");
    let runs = run_schedulers(on_16_cpus("research-mqfq-sizes", &jobs, setting), &["none", "mqfq"], setting)?;
    let row = "4 KiB beside 128 KiB, depth 64 each";
    let under_none = runs[0].bytes_per_second("large") / runs[0].bytes_per_second("small");
    let under_mqfq = share(&runs[1], "small", "large");
    Ok(vec![
        Cell::new(row, "none: bytes of large over those of small", under_none, None, Judgement::None),
        Cell::new(row, "mqfq: share of small, % of bytes", under_mqfq, Some(50.0), Judgement::Distance(5.0))
            .beside(share(&runs[0], "small", "large")),
    ])
}

fn slowdown(setting: Setting) -> Result<Vec<Cell>, Error> {
    let job = |name: &str, depth: u32| {
        format!(
            "[{name}]\nrw=randread\niodepth={depth}\nnumjobs=8\ncpus_allowed=0-7\ncpus_allowed_policy=split\ncgroup={name}\n"
        )
    };
    let (victim, antagonist) = (job("victim", 1), job("antagonist", 128));
    let schedulers = ["none", "mqfq"];
    let alone = run_schedulers(on_16_cpus("research-mqfq-alone", &victim, setting), &schedulers, setting)?;
    let beside =
        run_schedulers(on_16_cpus("research-mqfq-beside", &(victim + &antagonist), setting), &schedulers, setting)?;
    let row = "depth 1 on each of 8 CPUs beside depth 128 on each";
    let slowdown_under = |scheduler: usize| alone[scheduler].iops("victim") / beside[scheduler].iops("victim").max(1.0);
    Ok(vec![
        Cell::new(row, "none: slowdown of the victim", slowdown_under(0), Some(6.57), Judgement::AtLeast(3.0)),
        Cell::new(row, "mqfq: slowdown of the victim", slowdown_under(1), Some(1.33), Judgement::AtMost(2.2))
            .beside(slowdown_under(0)),
    ])
}

fn weights(setting: Setting) -> Result<Vec<Cell>, Error> {
    const WEIGHTS: [u32; 4] = [1, 2, 4, 8];
    let job = |weight: u32| {
        format!("[w{weight}]\nrw=randread\niodepth=64\nnumjobs=4\ncgroup=w{weight}\ncgroup_weight={}\n", 100 * weight)
    };
    let jobs: String = WEIGHTS.into_iter().map(job).collect();
    let runs = run_schedulers(on_16_cpus("research-mqfq-weights", &jobs, setting), &["mqfq"], setting)?;
    let all = runs[0].all_bytes_per_second();
    let cell = |weight: u32| {
        let share = 1500.0 * runs[0].bytes_per_second(&format!("w{weight}")) / all;
        let due = 100.0 * f64::from(weight);
        Cell::new(
            "weights 1 : 2 : 4 : 8",
            format!("share of {weight}, % of 1/15"),
            share,
            Some(due),
            Judgement::Error(0.05),
        )
        .beside(1500.0 / WEIGHTS.len() as f64)
    };
    Ok(WEIGHTS.into_iter().map(cell).collect())
}

fn cores(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for cores in [1, 2, 4, 8, 15] {
        let jobs =
            format!("[p]\nrw=randread\niodepth=128\nnumjobs={cores}\ncpus_allowed=0-14\ncpus_allowed_policy=split\n");
        let runs =
            run_schedulers(on_16_cpus("research-mqfq-cores", &jobs, setting), &["none", "mqfq", "bfq"], setting)?;
        let [none, mqfq, bfq] = [0, 1, 2].map(|run| runs[run].iops("p"));
        let row = format!("{cores} saturating cores");
        cells.push(Cell::ratio(&row, "IOPS of mqfq over none's", mqfq / none, None, Judgement::AtLeast(0.9)));
        if cores == 15 {
            cells.push(Cell::ratio(&row, "IOPS of mqfq over bfq's", mqfq / bfq, Some(20.0), Judgement::AtLeast(5.0)));
        }
    }
    Ok(cells)
}

/// The time series of a job.
fn series<'a>(run: &'a RunFigures, job: &'a str) -> Option<&'a SeriesSummary> {
    run.operations(job).map(|operation| &operation.series).next()
}

/// The range of the difference between the bytes of two jobs, over all interval ends.
fn widest_difference(run: &RunFigures) -> f64 {
    let (Some(one), Some(other)) = (series(run, "one"), series(run, "other")) else { return 0.0 };
    let mut difference = 0.0_f64;
    let mut extremes = (0.0_f64, 0.0_f64);
    for (one, other) in one.ios.iter().zip(&other.ios) {
        difference += 4096.0 * (*one as f64 - *other as f64);
        extremes = (extremes.0.min(difference), extremes.1.max(difference));
    }
    extremes.1 - extremes.0
}

fn thresholds(setting: Setting) -> Result<Vec<Cell>, Error> {
    const KIB: [u32; 7] = [0, 10, 40, 160, 640, 2560, 10_240];
    /// Maximum data of either job at the drive, bytes: 64 slots of 4 KiB.
    const AT_DRIVE: f64 = 64.0 * 4096.0;
    let job = |name: &str, cpus: &str, depth: u32| {
        format!(
            "[{name}]\nrw=randread\niodepth={depth}\nnumjobs=4\ncpus_allowed={cpus}\ncpus_allowed_policy=split\ncgroup={name}\n"
        )
    };
    let jobs = job("one", "0-3", 32) + &job("other", "4-7", 128);
    let comparison = on_16_cpus("research-mqfq-thresholds", &jobs, setting);
    let none = run_schedulers(comparison.clone(), &["none"], setting)?;
    let runs =
        run_schedulers(Comparison { vary: vary("mqfq", "threshold_kb", &KIB), ..comparison }, &["mqfq"], setting)?;
    let mut cells = Vec::new();
    for (index, (kib, run)) in KIB.iter().zip(&runs).enumerate() {
        let row = format!("threshold {kib} KiB, depth 32 beside 128 on 4 CPUs each");
        let bound = 2.0 * (f64::from(*kib) * 1024.0 + 4096.0) + AT_DRIVE;
        let [ours, of_none] = [run, &none[0]].map(|run| widest_difference(run) / bound);
        cells.push(
            Cell::new(&row, "worst difference in 1 s over its bound", ours, None, Judgement::AtMost(1.0))
                .beside(of_none),
        );
        if let Some(before) = index.checked_sub(1) {
            let steps = run.all_bytes_per_second() / runs[before].all_bytes_per_second();
            cells.push(Cell::ratio(
                &row,
                "throughput over that at the step before",
                steps,
                None,
                Judgement::AtLeast(0.98),
            ));
        }
    }
    let (least, most) = (widest_difference(&runs[0]), widest_difference(&runs[KIB.len() - 1]));
    cells.push(Cell::ratio(
        "threshold 10240 KiB",
        "worst difference over that at 0",
        most / least.max(1.0),
        None,
        Judgement::AtLeast(2.0),
    ));
    Ok(cells)
}
