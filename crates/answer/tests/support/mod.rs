//! Builds documents of comparisons of two jobs from their figures.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use hoistway_answer::document::{LatencySummary, OperationSummary, Verdict};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, ResultsDocument};
use hoistway_measure::{Direction, Operation, Settling};
use serde_json::json;

/// The figures of a job in one run: I/Os a second, and latencies in ns.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub iops: f64,
    pub mean: f64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// Syncs that all have this latency.
pub fn syncs(syncs_per_second: f64, lat_ns: u64) -> OperationSummary {
    let measured =
        Measured { iops: syncs_per_second, mean: lat_ns as f64, p50: lat_ns, p99: 2 * lat_ns, max: 3 * lat_ns };
    let summary = summary(measured, Direction::Write);
    OperationSummary { operation: Operation::Sync, bytes: 0, bytes_per_second: 0.0, ..summary }
}

pub fn summary(measured: Measured, direction: Direction) -> OperationSummary {
    OperationSummary {
        operation: direction.into(),
        ios: 5000,
        bytes: 5000 * 4096,
        iops: measured.iops,
        bytes_per_second: measured.iops * 4096.0,
        lat_ns: LatencySummary {
            mean: measured.mean,
            p50: measured.p50,
            p99: measured.p99,
            p99_9: measured.p99,
            max: measured.max,
            ..LatencySummary::default()
        },
        distribution: Default::default(),
        outstanding: None,
        series: Default::default(),
        settling: Settling::Settled,
    }
}

/// Schedulers by repeats, each with a job that reads and one that writes.
pub type Figures = Vec<Vec<[Measured; 2]>>;

pub const NAMES: [&str; 4] = ["mq-deadline", "none", "kyber", "bfq"];

pub fn document(figures: &Figures) -> ResultsDocument {
    let run = |name: &str, repeat: usize, [reads, writes]: [Measured; 2]| {
        let job = |name: &str, job: u32, summary: OperationSummary| json!({"name": name, "job": job, "processes": 1, "operations": [summary]});
        json!({
            "scheduler": name, "front": "mq", "tunables": {}, "repeat": repeat, "seed": repeat, "simulated_seconds": 1.0,
            "simulated_ios": 10_000, "wall_seconds": 0.0, "cpu_us_per_io": null,
            "jobs": [job("reads", 0, summary(reads, Direction::Read)), job("writes", 1, summary(writes, Direction::Write))],
        })
    };
    let runs: Vec<_> = NAMES
        .iter()
        .zip(figures)
        .flat_map(|(name, repeats)| repeats.iter().enumerate().map(move |(repeat, of)| run(name, repeat, *of)))
        .collect();
    serde_json::from_value(json!({
        "format": "hoistway-results/2", "version": "0.1.0", "command": "", "job_file": "a.fio", "job_text": "",
        "device": "null", "kernel": "6.18", "cpus": 1, "hw_queues": 1, "nr_requests": 2, "host": "instant", "seed": 1,
        "wall_seconds": 0.0, "simulated_ios": 30, "partial": false, "default_scheduler": "mq-deadline", "runs": runs,
    }))
    .unwrap()
}

pub fn verdict(document: &ResultsDocument) -> Verdict {
    verdicts(&Analysis::of(document)).remove(0)
}
