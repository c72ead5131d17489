//! Groups under io.cost, compared with a real kernel: `data/recorded.jsonl` has experiments that `scripts/cgroup-kernel` drew
//! and recorded, one a line, simulated here on the same device. Rules: IC-1, IC-7, IC-8, IC-11, IC-14 and IC-19. One half of
//! them only judges.

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
    settings: BTreeMap<String, String>,
    /// `io.weight` of each group.
    groups: BTreeMap<String, u32>,
    qos: String,
    model: String,
    job: String,
    recorded: OfKernel,
}

#[derive(Deserialize)]
struct OfKernel {
    groups: BTreeMap<String, OfGroup>,
    rates_percent: Vec<f64>,
    max_sectors_kb: u32,
}

#[derive(Deserialize)]
struct OfGroup {
    iops: f64,
    mean_us: f64,
    device_time_us: f64,
}

/// Errors of a group, percent of the kernel's figure.
struct GroupError {
    half: String,
    /// Part of the device time of all groups, IOPS, mean latency, rate of device time.
    errors: [f64; 4],
}

fn experiments() -> Vec<Experiment> {
    include_str!("data/recorded.jsonl").lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn simulate(experiment: &Experiment) -> ResultsDocument {
    let weight = |(cgroup, weight): (&String, &u32)| CgroupFile { cgroup: cgroup.clone(), text: weight.to_string() };
    let Experiment { job, settings, recorded, .. } = experiment;
    Comparison {
        io_cost: vec![experiment.qos.clone(), experiment.model.clone()],
        io_weight: experiment.groups.iter().map(weight).collect(),
        ..on_null_device::comparison(job, "none", settings, recorded.max_sectors_kb)
    }
    .run(&Alone)
    .unwrap_or_else(|error| panic!("{}: {error}", experiment.name))
}

fn errors_of(experiment: &Experiment) -> Vec<GroupError> {
    let document = simulate(experiment);
    let run = &document.runs[0];
    let of_disk = &run.io_cost[0];
    let kernel = &experiment.recorded;
    let our_sum: f64 = of_disk.groups.iter().map(|group| group.device_time_ms).sum();
    let kernel_sum: f64 = kernel.groups.values().map(|group| group.device_time_us).sum();
    let kernel_rate = kernel.rates_percent.iter().sum::<f64>() / kernel.rates_percent.len() as f64;
    let of_group = |(name, of_kernel): (&String, &OfGroup)| {
        let cost = of_disk.groups.iter().find(|group| group.cgroup == *name).expect(name);
        let operation = &run.jobs.iter().find(|job| job.name == *name).expect(name).operations[0];
        let error = |ours: f64, kernels: f64| 100.0 * (ours / kernels - 1.0).abs();
        let errors = [
            error(cost.device_time_ms / our_sum, of_kernel.device_time_us / kernel_sum),
            error(operation.iops, of_kernel.iops),
            error(operation.lat_ns.mean / 1e3, of_kernel.mean_us),
            error(of_disk.mean_rate_percent, kernel_rate),
        ];
        println!("{:12} {:6} {:4} {name} {errors:6.1?}", experiment.name, experiment.half, experiment.kind);
        GroupError { half: experiment.half.clone(), errors }
    };
    kernel.groups.iter().map(of_group).collect()
}

/// The middle of some numbers, and the largest of them.
fn median_and_most(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    [f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]), values[values.len() - 1]]
}

/// The most that the median and the largest error may be, percent, over the groups of a half.
const BOUNDS: [(&str, [[f64; 2]; 4]); 2] = [
    ("judged", [[1.0, 12.0], [1.5, 20.0], [1.5, 25.0], [0.5, 10.0]]),
    ("fitted", [[1.5, 9.0], [3.0, 12.0], [3.0, 12.0], [1.0, 6.0]]),
];

#[test]
fn shares_and_latencies_of_groups_are_those_of_a_kernel_within_bounds() {
    let groups: Vec<GroupError> = experiments().iter().flat_map(errors_of).collect();
    let mut beyond = Vec::new();
    for (half, bounds) in BOUNDS {
        let of_half: Vec<&GroupError> = groups.iter().filter(|group| group.half == half).collect();
        assert!(of_half.len() > 10, "{half}: {} groups", of_half.len());
        for (figure, (name, [median, most])) in ["share", "IOPS", "mean latency", "rate"].iter().zip(bounds).enumerate()
        {
            let found = median_and_most(of_half.iter().map(|group| group.errors[figure]).collect());
            println!("{half} {name}: {found:.1?}");
            if found[0] > median || found[1] > most {
                beyond.push(format!("{half}, {name}: {found:.1?}, at most {median} and {most}"));
            }
        }
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
}
