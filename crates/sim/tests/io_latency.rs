//! `io.latency` in whole runs: who is throttled for whom, and what it brings the group with the target. Rules: IL-1 to IL-16.

use hoistway_blk::ground::Kernel;
use hoistway_cgroup::IoLatencyTarget;
use hoistway_device::Preset;
use hoistway_measure::{IoLatencyGroup, ProcessResult};
use hoistway_sim::{QueueSettings, RunResult};

use crate::support::{run_job, spec, writing};

const GLOBAL: &str = "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sda\nsize=20g\ntime_based\nbs=4k\n";

/// A database that reads one block after the other.
const DB: &str = "[db]\nrw=randread\niodepth=1\nruntime=2s\ncgroup=prod/db\n";

/// A batch job that keeps the drive busy.
const BATCH: &str = "[batch]\nrw=randread\niodepth=128\nruntime=2s\ncgroup=batch\n";

/// Runs jobs over eight requests, so that three steps down leave a depth of 1.
fn simulate(scheduler: &str, targets: &[(&str, u32)], jobs: &str) -> RunResult {
    simulate_with((scheduler, "8"), targets, jobs)
}

/// Runs jobs under a scheduler with this number of requests.
fn simulate_with((scheduler, requests): (&str, &str), targets: &[(&str, u32)], jobs: &str) -> RunResult {
    let preset = Preset::builtin("samsung-980pro-1tb").unwrap();
    let mut queue = QueueSettings::new(Kernel::V6_18, 8);
    if !targets.is_empty() {
        queue.io_latency =
            vec![targets.iter().map(|&(group, us)| (group.to_owned(), IoLatencyTarget { us })).collect()];
    }
    run_job(
        &format!("{GLOBAL}{jobs}"),
        &preset,
        queue,
        None,
        &writing(spec(scheduler, &[], 1), "nr_requests", requests),
    )
}

fn group<'a>(result: &'a RunResult, cgroup: &str) -> &'a IoLatencyGroup {
    result.io_latency[0].groups.iter().find(|group| group.cgroup == cgroup).unwrap()
}

fn ios(process: &ProcessResult) -> u64 {
    process.directions.iter().map(|direction| direction.ios).sum()
}

#[test]
fn a_target_that_cannot_be_met_leaves_the_others_one_io_at_a_time_under_every_scheduler() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let jobs = format!("{DB}{BATCH}");
        let without = simulate(scheduler, &[], &jobs);
        let with = simulate(scheduler, &[("prod", 1), ("prod/db", 1)], &jobs);
        let batch = group(&with, "batch");
        assert_eq!((batch.depth, batch.lowest_depth), (Some(1), Some(1)), "{scheduler}");
        assert!(batch.throttled_ms > 1000.0 && batch.delayed > 1000, "{scheduler}: {batch:?}");
        let [beside, alone] = [&with, &without].map(|result| ios(&result.processes[1]));
        assert!(4 * beside < 3 * alone, "{scheduler}: {beside} of {alone}");
        let db = group(&with, "prod/db");
        assert_eq!((db.depth, db.delayed, db.missed), (None, 0, db.windows), "{scheduler}");
        assert!(db.windows >= 17 && db.win_ms == 100.0, "{scheduler}: {db:?}");
    }
}

#[test]
fn the_victim_gets_nearer_to_its_target_than_without_it() {
    let jobs = format!("{DB}{BATCH}").replace("runtime=2s", "runtime=3s");
    let simulate = |targets: &[(&str, u32)], jobs: &str| simulate_with(("none", "64"), targets, jobs);
    let alone = group(&simulate(&[("prod/db", 1_000_000)], DB), "prod/db").avg_lat_us;
    let crowded = group(&simulate(&[("prod/db", 1_000_000)], &jobs), "prod/db").avg_lat_us;
    let target = 1.1 * alone;
    assert!(crowded > 1.2 * alone, "{crowded} us beside the batch job, {alone} us alone");
    let us = target as u32;
    let protected = simulate(&[("prod", us), ("prod/db", us)], &jobs);
    let measured = group(&protected, "prod/db");
    assert!(measured.avg_lat_us < (crowded + target) / 2.0, "{measured:?}; {alone} us alone, {crowded} us crowded");
    // A tenth of the reads take longer, though their mean is below the target.
    assert!(measured.avg_lat_us < target && measured.missed == measured.windows, "{measured:?}");
}

#[test]
fn a_target_that_is_met_changes_nothing() {
    let jobs = format!("{DB}{BATCH}");
    let counts = |result: &RunResult| result.processes.iter().map(ios).collect::<Vec<_>>();
    let without = simulate("none", &[], &jobs);
    let met = simulate("none", &[("prod", 1_000_000), ("prod/db", 1_000_000)], &jobs);
    assert_eq!(counts(&met), counts(&without));
    assert_eq!((group(&met, "batch").lowest_depth, group(&met, "batch").delayed), (None, 0));
    assert!(without.io_latency.is_empty() && simulate("none", &[("prod", 0)], &jobs).io_latency.is_empty());
}

#[test]
fn a_leaf_without_a_target_above_it_protects_nothing() {
    let jobs = format!("{DB}{BATCH}");
    let result = simulate("none", &[("prod/db", 1)], &jobs);
    assert!(group(&result, "prod/db").missed > 15);
    assert_eq!((group(&result, "batch").lowest_depth, group(&result, "batch").delayed), (None, 0));
    let without = simulate("none", &[], &jobs);
    assert_eq!(ios(&result.processes[1]), ios(&without.processes[1]));
}

#[test]
fn the_others_are_released_when_the_victim_has_ended() {
    let short = DB.replace("runtime=2s", "runtime=600ms");
    let run = |runtime: &str| {
        let jobs = format!("{short}{}", BATCH.replace("runtime=2s", runtime));
        let result = simulate("none", &[("prod", 1), ("prod/db", 1)], &jobs);
        let batch = group(&result, "batch");
        (batch.lowest_depth, batch.depth)
    };
    assert_eq!(run("runtime=6s"), (Some(4), Some(4)), "for six seconds it counts");
    assert_eq!(run("runtime=8s"), (Some(4), None));
}

#[test]
fn large_bios_that_the_queue_splits_are_all_counted_to_their_end() {
    let large = "[batch]\nrw=write\nbs=4m\niodepth=8\nruntime=1s\ncgroup=batch\n";
    let result = simulate("mq-deadline", &[("prod", 1), ("prod/db", 1)], &format!("{DB}{large}"));
    let batch = group(&result, "batch");
    assert_eq!(batch.lowest_depth, Some(1));
    assert!(ios(&result.processes[1]) > 100, "one after the other to the end: {batch:?}");
}
