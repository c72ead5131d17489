//! Table `research-k2`: K2's claims for a real-time process next to three processes that keep the drive busy.

use super::{DRIVE, RunFigures, comparison_of_jobs, run_schedulers, vary};
use crate::reproduction::Table;
use crate::reproduction::cell::{Cell, Judgement};
use crate::reproduction::runs::Setting;
use hoistway_experiment::{Comparison, Error, QueueFile};

pub(in crate::reproduction) const K2: Table = Table {
    name: "research-k2",
    title: "a real-time process at depth 1 beside three at depth 32, under k2 and Linux's schedulers",
    source: "Miemietz, Weisbach, Roitzsch, Härtig, RTSS 2019 (abstract): p99.9 of reads up to 10 times lower, of writes up to 6.8 times, \
             background at most 2.7 times less",
    story: STORY,
    device: DRIVE,
    host: None,
    unknowns: &[],
    others: &[],
    repeats_max: 5,
    run: reproduce,
};

const STORY: &str = "The drive of the paper is not known here; this one is a coarse model of a drive of that time. \
                     Half of the published effect is required, since models differ. Confirmed: writes beside writes; \
                     that beyond the drive's parallelism the real-time tail grows by 1 / IOPS for each place; that \
                     lower levels starve. Reads beside reads gain only a factor of two, because under none they wait \
                     behind 97 requests that this model serves in order. If the background writes, the tail is one \
                     program or pause of the flash, which no limit on requests shortens; bfq does better there because \
                     it gives the background nothing. This drive needs 40 requests for its throughput.";

const BOUNDS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Maximum factor by which the background may lose throughput compared with none.
const LOSS_MAX: f64 = 2.7;

/// The background: its name, and the line of its job.
const BACKGROUNDS: [(&str, &str); 3] =
    [("reads", "rw=randread"), ("writes", "rw=randwrite"), ("both", "rw=randrw\nrwmixread=50")];

fn beside(urgent: &str, background: &str, depth: u32, setting: Setting) -> Comparison {
    let jobs = format!(
        "[urgent]\nrw={urgent}\nprioclass=1\nprio=0\niodepth=1\n[background]\n{background}\niodepth={depth}\nnumjobs=3\n"
    );
    comparison_of_jobs("research-k2", DRIVE, &jobs, setting)
}

fn reproduce(setting: Setting) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for (what, urgent, published, least) in [("reads", "randread", 10.0, 5.0), ("writes", "randwrite", 6.8, 3.0)] {
        for (background, line) in BACKGROUNDS {
            let others =
                if (what, background) == ("reads", "writes") { &["mq-deadline", "kyber", "bfq"][..] } else { &[] };
            let schedulers: Vec<&str> = ["none"].into_iter().chain(others.iter().copied()).chain(["k2"]).collect();
            let comparison =
                Comparison { vary: vary("k2", "max_inflight", &BOUNDS), ..beside(urgent, line, 32, setting) };
            let runs = run_schedulers(comparison, &schedulers, setting)?;
            let (linux, bounded) = runs.split_at(schedulers.len() - 1);
            let row = format!("{what} beside {background}");
            cells.extend(best_bound(&row, &linux[0], bounded, published, least));
            let at_default = &bounded[BOUNDS.iter().position(|&bound| bound == 32).unwrap_or_default()];
            for (name, run) in schedulers.iter().zip(linux).filter(|_| !others.is_empty()) {
                let over = run.p99_9_us("urgent") / at_default.p99_9_us("urgent");
                let judgement = if *name == "mq-deadline" { Judgement::None } else { Judgement::AtLeast(1.1) };
                let column = format!("p99.9 of {name} over k2's at its default");
                cells.push(Cell::ratio(&row, column, over, None, judgement));
            }
        }
    }
    cells.extend(saturating_bounds(setting)?);
    cells.extend(without_real_time(setting)?);
    cells.push(starvation(setting)?);
    Ok(cells)
}

/// The best bound among those that leave the background enough throughput.
fn best_bound(row: &str, none: &RunFigures, bounded: &[RunFigures], published: f64, least: f64) -> Vec<Cell> {
    let lost = |run: &RunFigures| none.iops("background") / run.iops("background").max(1.0);
    let gained = |run: &RunFigures| none.p99_9_us("urgent") / run.p99_9_us("urgent");
    let allowed = bounded.iter().zip(BOUNDS).filter(|(run, _)| lost(run) <= LOSS_MAX);
    let Some((best, _)) = allowed.max_by(|(left, _), (right, _)| gained(left).total_cmp(&gained(right))) else {
        return Vec::new();
    };
    vec![
        Cell::ratio(
            row,
            "p99.9 of none over k2's at the best bound",
            gained(best),
            Some(published),
            Judgement::AtLeast(least),
        ),
        Cell::ratio(row, "background of none over k2's there", lost(best), Some(LOSS_MAX), Judgement::AtMost(LOSS_MAX)),
    ]
}

/// Slope and linearity of the real-time p99.9 over bounds that saturate the drive, and throughput by bound.
fn saturating_bounds(setting: Setting) -> Result<Vec<Cell>, Error> {
    const RISING: [u32; 6] = [1, 2, 4, 8, 16, 32];
    const FLAT: [u32; 5] = [64, 128, 192, 256, 320];
    let bounds = [&RISING[..], &FLAT[..]].concat();
    let comparison =
        Comparison { vary: vary("k2", "max_inflight", &bounds), ..beside("randread", "rw=randread", 128, setting) };
    let runs = run_schedulers(comparison, &["k2"], setting)?;
    let total = |run: &RunFigures| run.iops("urgent") + run.iops("background");
    let (rising, flat) = runs.split_at(RISING.len());
    let points: Vec<(f64, f64)> =
        FLAT.iter().zip(flat).map(|(&bound, run)| (f64::from(bound), run.p99_9_us("urgent"))).collect();
    let (slope, r_squared) = line_through(&points);
    let most = flat.iter().map(total).fold(0.0, f64::max);
    let row = "reads beside reads at depth 128";
    let mut cells = vec![
        Cell::new(
            row,
            "p99.9 by bound: slope over 1 / IOPS of the drive",
            slope * most / 1e6,
            Some(1.0),
            Judgement::NearOne(0.3),
        ),
        Cell::new(row, "p99.9 by bound: R^2 of a line", r_squared, None, Judgement::AtLeast(0.95)),
    ];
    let least_flat = flat[1..].iter().map(total).fold(f64::INFINITY, f64::min);
    cells.push(Cell::ratio(
        row,
        "throughput from a bound of 128 on, least over most",
        least_flat / most,
        None,
        Judgement::AtLeast(0.97),
    ));
    // Up to about 20, half of the drive's parallelism, throughput must rise with the bound.
    for pair in rising[..5].windows(2).zip(RISING.windows(2)) {
        let ([lower, upper], [from, to]) = pair else { continue };
        let column = format!("throughput at {to} over that at {from}");
        cells.push(Cell::ratio(row, column, total(upper) / total(lower), None, Judgement::AtLeast(1.4)));
    }
    cells.push(Cell::new(
        row,
        "throughput at 8, % of the most",
        100.0 * total(&rising[3]) / most,
        Some(50.0),
        Judgement::Distance(15.0),
    ));
    Ok(cells)
}

/// Least-squares line through points: its slope, and R^2.
fn line_through(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |coordinate: fn(&(f64, f64)) -> f64| points.iter().map(coordinate).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |product: &dyn Fn(f64, f64) -> f64| points.iter().map(|&(x, y)| product(x - mean_x, y - mean_y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    (xy / xx, xy * xy / (xx * yy))
}

/// Without a real-time process, K2 only limits the depth: compares it with none at the same depth.
fn without_real_time(setting: Setting) -> Result<Vec<Cell>, Error> {
    let comparison = || Comparison {
        hw_queues: Some(1),
        ..comparison_of_jobs("research-k2-alone", DRIVE, "[background]\nrw=randread\niodepth=32\nnumjobs=3\n", setting)
    };
    let k2 = run_schedulers(comparison(), &["k2"], setting)?;
    let limit = QueueFile { file: "nr_requests".to_owned(), text: "32".to_owned() };
    let none = run_schedulers(Comparison { queue_files: vec![limit], ..comparison() }, &["none"], setting)?;
    let (k2, none) = (&k2[0], &none[0]);
    let row = "no real-time process";
    let throughput = k2.iops("background") / none.iops("background");
    let latency = k2.mean_us("background") / none.mean_us("background");
    Ok(vec![
        Cell::ratio(
            row,
            "throughput over that of none with nr_requests=32",
            throughput,
            None,
            Judgement::NearOne(0.03),
        ),
        Cell::ratio(row, "mean latency over that", latency, None, Judgement::NearOne(0.05)),
    ])
}

/// Level 0 has more waiting requests than K2 has places, so all other levels get nothing.
fn starvation(setting: Setting) -> Result<Cell, Error> {
    let others: String = (1..8)
        .map(|level| format!("[level-{level}]\nrw=randread\nprioclass=1\nprio={level}\niodepth=4\n"))
        .chain(["[ordinary]\nrw=randread\niodepth=4\n".to_owned()])
        .collect();
    let jobs = format!("[level-0]\nrw=randread\nprioclass=1\nprio=0\niodepth=16\nnumjobs=8\n{others}");
    let runs = run_schedulers(comparison_of_jobs("research-k2-levels", DRIVE, &jobs, setting), &["k2"], setting)?;
    let lower = (1..8).map(|level| format!("level-{level}")).chain(["ordinary".to_owned()]);
    // Each of the eight other jobs has four requests, which complete after level 0 ends.
    let ios = lower.map(|job| runs[0].ios(&job)).sum::<f64>() - 32.0;
    let column = "I/Os of all lower levels before level 0 ends";
    Ok(Cell::new("level 0 with 128 requests", column, ios, None, Judgement::AtMost(0.0)))
}

#[cfg(test)]
mod tests {
    use super::line_through;

    #[test]
    fn a_linear_fit_is_found_and_scatter_is_recognised() {
        assert_eq!(line_through(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), (2.0, 1.0));
        assert!(line_through(&[(0.0, 1.0), (1.0, -1.0), (2.0, 1.0), (3.0, -1.0)]).1 < 0.3);
    }
}
