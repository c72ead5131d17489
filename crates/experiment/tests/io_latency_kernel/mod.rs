//! Groups under io.latency, compared with a real kernel: `data/recorded.jsonl` has experiments that `scripts/cgroup-kernel` drew
//! and recorded, one a line, simulated here on the same device. Rules: IL-2 to IL-10. One half of them only judges.

use std::collections::BTreeMap;

use hoistway_answer::ResultsDocument;
use hoistway_experiment::{Alone, CgroupFile, Comparison};
use serde::Deserialize;

use crate::on_null_device;

/// An experiment and what the kernel did.
#[derive(Deserialize)]
struct Experiment {
    name: String,
    half: String,
    kind: String,
    scheduler: String,
    settings: BTreeMap<String, String>,
    /// `io.latency` of each group; 0 for none.
    targets_us: BTreeMap<String, u32>,
    /// The groups with a job, which is named as the group, with `-` for `/`.
    leaves: Vec<String>,
    job: String,
    recorded: OfKernel,
}

#[derive(Deserialize)]
struct OfKernel {
    groups: BTreeMap<String, OfGroup>,
    max_sectors_kb: u32,
}

/// Figures of a job, with the lowest and the last depth that was seen; 0 for no limit.
#[derive(Deserialize)]
struct OfGroup {
    iops: f64,
    mean_us: f64,
    lowest: u32,
    last: u32,
}

/// Errors of a group.
struct GroupError {
    half: String,
    /// Percent of the kernel's figure: part of the IOPS of all groups, IOPS, mean latency.
    errors: [f64; 3],
    /// Whether the lowest and the last depth are the kernel's.
    agrees: [bool; 2],
}

fn experiments() -> Vec<Experiment> {
    include_str!("data/recorded.jsonl").lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn simulate(experiment: &Experiment, seed: u64) -> ResultsDocument {
    let target = |(cgroup, us): (&String, &u32)| CgroupFile { cgroup: cgroup.clone(), text: format!("target={us}") };
    let Experiment { job, settings, recorded, .. } = experiment;
    Comparison {
        io_latency: experiment.targets_us.iter().map(target).collect(),
        seed,
        ..on_null_device::comparison(job, &experiment.scheduler, settings, recorded.max_sectors_kb)
    }
    .run(&Alone)
    .unwrap_or_else(|error| panic!("{}: {error}", experiment.name))
}

/// Whether a depth is the kernel's: no limit in both, or within one or a third of it.
fn is_near(ours: Option<u32>, kernels: u32) -> bool {
    match (ours, kernels) {
        (None, 0) => true,
        (Some(ours), 1..) => ours.abs_diff(kernels) <= (kernels / 3).max(1),
        _ => false,
    }
}

/// Not those that rules were chosen with.
const SEEDS: [u64; 3] = [7, 8, 9];

fn errors_of(experiment: &Experiment, seed: u64) -> Vec<GroupError> {
    let document = simulate(experiment, seed);
    let run = &document.runs[0];
    let figures = |path: &String| {
        let job = path.replace('/', "-");
        let operation = &run.jobs.iter().find(|other| other.name == job).expect(&job).operations[0];
        (operation.iops, operation.lat_ns.mean / 1e3, &experiment.recorded.groups[&job])
    };
    let sum = |of: fn((f64, f64, &OfGroup)) -> f64| experiment.leaves.iter().map(|path| of(figures(path))).sum::<f64>();
    let (our_sum, kernel_sum) = (sum(|(iops, ..)| iops), sum(|(.., kernel)| kernel.iops));
    let of_group = |path: &String| {
        let (iops, mean_us, kernel) = figures(path);
        let group = run.io_latency[0].groups.iter().find(|group| group.cgroup == *path).expect(path);
        let error = |ours: f64, kernels: f64| 100.0 * (ours / kernels - 1.0).abs();
        let errors =
            [error(iops / our_sum, kernel.iops / kernel_sum), error(iops, kernel.iops), error(mean_us, kernel.mean_us)];
        let agrees = [is_near(group.lowest_depth, kernel.lowest), is_near(group.depth, kernel.last)];
        println!(
            "{:14} {:6} {:6} seed {seed} {path:5} {errors:6.1?} {agrees:?}",
            experiment.name, experiment.half, experiment.kind
        );
        GroupError { half: experiment.half.clone(), errors, agrees }
    };
    experiment.leaves.iter().map(of_group).collect()
}

/// The process with the target and three that are throttled for it, over eight tags: none must take a freed tag before the process that
/// was woken for it has run. Rule: IL-14.
#[test]
fn those_that_are_throttled_for_a_target_do_not_starve_the_process_that_has_it() {
    let experiments = experiments();
    let experiment = experiments.iter().find(|experiment| experiment.name == "latency-21-7").expect("it is recorded");
    let least = 0.8 * experiment.recorded.groups["v"].iops;
    for seed in 1..=5 {
        let document = simulate(experiment, seed);
        let iops = document.runs[0].jobs[0].operations[0].iops;
        assert!(iops > least, "seed {seed}: {iops:.0} reads per second, expected {least:.0} and more");
    }
}

/// The middle of some numbers, and the largest of them.
fn median_and_most(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    [f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]), values[values.len() - 1]]
}

/// The most that the median error may be, percent, over the groups of a half with three seeds; and in how many percent of them at least the lowest and the
/// last depth are the kernel's. Largest errors hang on the seed: a group may wait for tags for most of a run.
const BOUNDS: [(&str, [f64; 3], [usize; 2]); 2] =
    [("judged", [9.0, 8.0, 8.0], [84, 70]), ("fitted", [4.0, 4.0, 4.0], [94, 92])];

#[test]
fn shares_latencies_and_depths_of_groups_are_those_of_a_kernel_within_bounds() {
    let of_experiment = |experiment: &Experiment| SEEDS.map(|seed| errors_of(experiment, seed));
    let groups: Vec<GroupError> = experiments().iter().flat_map(of_experiment).flatten().collect();
    let mut beyond = Vec::new();
    for (half, bounds, agreements) in BOUNDS {
        let of_half: Vec<&GroupError> = groups.iter().filter(|group| group.half == half).collect();
        assert!(of_half.len() > 30, "{half}: {} groups", of_half.len());
        for (figure, (name, median)) in ["share", "IOPS", "mean latency"].iter().zip(bounds).enumerate() {
            let found = median_and_most(of_half.iter().map(|group| group.errors[figure]).collect());
            println!("{half} {name}: {found:.1?}");
            if found[0] > median {
                beyond.push(format!("{half}, {name}: {found:.1?}, at most {median} in the median"));
            }
        }
        for (figure, (name, least)) in ["lowest depth", "last depth"].iter().zip(agreements).enumerate() {
            let found = 100 * of_half.iter().filter(|group| group.agrees[figure]).count() / of_half.len();
            println!("{half} {name}: agrees in {found} %");
            if found < least {
                beyond.push(format!("{half}, {name}: agrees in {found} %, at least {least}"));
            }
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}
