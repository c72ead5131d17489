//! Closed loops compared with a real kernel: fio job files that Linux 6.18 ran on an exactly known device, simulated here. Every
//! process reacts to the others, so an error in any part of the model shows. The host is calibrated on the scenario
//! `reader-writers` under `none` only; nothing was fitted to other rows.
//!
//! `cargo test --release -p hoistway-experiment --test evidence -- --nocapture` prints every cell.

mod errors;
mod placement;
mod recorded;

use errors::{Figure, Spread};
use hoistway_experiment::{Alone, Comparison, Devices, FioOutputs, Load, Profile, QueueFile, Tunable};
use hoistway_measure::Direction;
use hoistway_measure::fio::{DirectionStats, Job};
use recorded::{Row, Scenario, rows, scenarios};

/// Single cells vary by chance, so simulated ones are medians over this many seeds.
const SEEDS: u32 = 10;

/// Maximum error of the median and the 90th percentile over all cells of a scheduler, percent: IOPS, mean latency, p99. Which
/// processes starve under bfq is decided by chance, and a second recording of the kernel differs, too. So does which process begins
/// first, which is random here and the same in all recordings.
const BOUNDS: [(&str, [[f64; 2]; 3]); 4] = [
    ("none", [[1.5, 30.0], [1.5, 38.0], [25.0, 60.0]]),
    ("mq-deadline", [[1.2, 8.0], [1.2, 8.5], [6.0, 18.0]]),
    ("kyber", [[1.2, 5.0], [1.2, 5.0], [3.0, 27.0]]),
    ("bfq", [[4.0, 42.0], [6.0, 50.0], [14.0, 240.0]]),
];

/// A simulated scenario under one scheduler: the jobs of each seed.
fn simulate(scenario: &Scenario, scheduler: &str) -> Vec<Vec<Job>> {
    let of_profile = |name: &str, text: String| Profile::Text { name: name.to_owned(), text };
    let device = of_profile("null.device.toml", scenario.device());
    // The recording set it only where a scheduler was active.
    let nr_requests = scenario.nr_requests.filter(|_| scheduler != "none");
    let file = |file: &str, text: String| QueueFile { file: file.to_owned(), text };
    let mut queue_files = vec![file("wbt_lat_usec", "0".to_owned())];
    queue_files.extend(nr_requests.map(|requests| file("nr_requests", requests.to_string())));
    let outputs = FioOutputs::default();
    let document = Comparison {
        load: Load::Text { name: format!("{}.fio", scenario.name), text: scenario.job() },
        devices: vec![Devices { common: Some(device), ..Devices::default() }],
        kernels: vec!["6.18".to_owned()],
        hosts: vec![of_profile("guest-host.toml", include_str!("data/guest-host.toml").to_owned())],
        cpus: Some(scenario.cpus),
        schedulers: vec![scheduler.to_owned()],
        tunables: scenario
            .tunables()
            .filter(|(of, ..)| *of == scheduler)
            .map(|(of, name, text)| Tunable { scheduler: of.to_owned(), name: name.to_owned(), text: text.to_owned() })
            .collect(),
        queue_files,
        repeats: SEEDS,
        ..Comparison::default()
    }
    .run_observed(&Alone, &outputs)
    .unwrap_or_else(|error| panic!("{}, {scheduler}: {error}", scenario.name));
    outputs.of_runs(&document).into_iter().map(|fio| fio.jobs).collect()
}

/// The simulated counterpart of a recorded row: the median over seeds of the means over a job's clones. Under bfq one seed in ten has a
/// process that waits for seconds, which a single recording may or may not contain.
fn ours(row: &Row, runs: &[Vec<Job>]) -> [f64; 3] {
    let direction = |job: &Job| -> DirectionStats {
        match row.direction() {
            Direction::Read => job.read.clone(),
            _ => job.write.clone(),
        }
    };
    let of_run = |jobs: &Vec<Job>, figure: fn(&DirectionStats) -> f64| {
        let clones: Vec<f64> =
            jobs.iter().filter(|job| job.jobname == row.job).map(|job| figure(&direction(job))).collect();
        clones.iter().sum::<f64>() / clones.len() as f64
    };
    let median = |figure: fn(&DirectionStats) -> f64| {
        let mut of_runs: Vec<f64> = runs.iter().map(|jobs| of_run(jobs, figure)).collect();
        of_runs.sort_by(f64::total_cmp);
        let middle = of_runs.len() / 2;
        f64::midpoint(of_runs[(of_runs.len() - 1) / 2], of_runs[middle])
    };
    let p99 = |stats: &DirectionStats| {
        let percentiles = stats.lat_ns.percentile.as_ref();
        percentiles.and_then(|all| all.get("99.000000")).map_or(0.0, |&ns| ns as f64 / 1e3)
    };
    [median(|stats| stats.iops), median(|stats| stats.lat_ns.mean / 1e3), median(p99)]
}

/// Runs a scenario under every scheduler that was recorded, prints each cell, and returns the errors.
fn check(scenario: &Scenario) -> Vec<errors::Cell> {
    let mut cells = Vec::new();
    for (scheduler, _) in BOUNDS {
        let of = |row: &Row| row.scenario == scenario.name && row.scheduler == scheduler;
        let recorded: Vec<Row> = rows().into_iter().filter(of).collect();
        if recorded.is_empty() {
            continue;
        }
        let runs = simulate(scenario, scheduler);
        for row in recorded {
            let ours = ours(&row, &runs);
            for (figure, (ours, kernel)) in Figure::ALL.into_iter().zip(ours.into_iter().zip(row.figures())) {
                cells.push(errors::Cell { scheduler, figure, ours, kernel });
            }
            let of_kernel = row.figures();
            let shown = |at: usize| {
                format!("{:>9.1} {:>9.1} {:>+7.1}%", ours[at], of_kernel[at], 100.0 * (ours[at] / of_kernel[at] - 1.0))
            };
            println!(
                "{:18} {:12} {:8} {:5} {} {} {}",
                scenario.name,
                scheduler,
                row.job,
                row.direction,
                shown(0),
                shown(1),
                shown(2)
            );
        }
    }
    cells
}

#[test]
fn simulated_figures_match_the_real_kernels_within_bounds() {
    println!("{:46}      IOPS: here, kernel           mean lat us: here, kernel      p99 us: here, kernel", "");
    let cells: Vec<_> = scenarios().iter().flat_map(check).collect();
    let mut beyond = Vec::new();
    for (scheduler, bounds) in BOUNDS {
        let spreads = Figure::ALL.map(|figure| Spread::of(&cells, scheduler, figure));
        for (spread, [median, ninety]) in spreads.iter().zip(bounds) {
            if spread.median > median || spread.ninety > ninety {
                beyond.push(format!("{scheduler}: {spread}; at most {median} and {ninety}"));
            }
        }
        println!("{scheduler:12} {}", spreads.map(|spread| spread.to_string()).join("  "));
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}
