//! Small hand-made documents.

pub mod judged;
pub mod place;

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{
    Front, JobSummary, LatencySummary, OperationSummary, REVISION, Run, RunLabel, SeriesSummary,
};
use hoistway_measure::{Direction, Operation, Settling};
use serde_json::{Map, json};

/// One direction with these IOPS of 4 KiB, and this mean latency; the other latencies are multiples of it.
pub fn direction(direction: Direction, iops: f64, mean_ns: f64) -> OperationSummary {
    let times = |factor: f64| (mean_ns * factor) as u64;
    OperationSummary {
        operation: direction.into(),
        ios: (iops * 2.0) as u64,
        bytes: (iops * 2.0) as u64 * 4096,
        iops,
        bytes_per_second: iops * 4096.0,
        lat_ns: LatencySummary {
            by_time: None,
            min: times(0.2),
            mean: mean_ns,
            stddev: mean_ns / 3.0,
            p50: times(0.9),
            p95: None,
            p99: times(4.0),
            p99_9: times(11.0),
            max: times(30.5),
        },
        distribution: Default::default(),
        outstanding: None,
        series: SeriesSummary::default(),
        settling: Settling::Settled,
    }
}

/// Syncs with these latencies.
pub fn syncs(syncs_per_second: f64, lat_ns: LatencySummary) -> OperationSummary {
    OperationSummary {
        operation: Operation::Sync,
        ios: 4000,
        bytes: 0,
        iops: syncs_per_second,
        bytes_per_second: 0.0,
        lat_ns,
        distribution: Default::default(),
        outstanding: None,
        series: SeriesSummary::default(),
        settling: Settling::Unknown,
    }
}

pub fn run(scheduler: &str, jobs: Vec<(&str, u32, Vec<OperationSummary>)>) -> Run {
    let jobs = jobs.into_iter().zip(0..);
    Run {
        scheduler: scheduler.to_owned(),
        front: Front::Mq,
        ran_as: None,
        research: None,
        tunables: Map::new(),
        queue_files: Map::new(),
        variant: RunLabel::new(scheduler, Map::new()),
        setup: 0,
        repeat: 0,
        seed: 42,
        simulated_seconds: 2.0,
        simulated_ios: 100,
        wall_seconds: 0.1,
        cpu_us_per_io: None,
        disks: Vec::new(),
        locks: None,
        page_cache: None,
        io_cost: Vec::new(),
        io_latency: Vec::new(),
        jobs: jobs
            .map(|((name, processes, operations), job)| JobSummary {
                name: name.to_owned(),
                job,
                processes,
                failed: Vec::new(),
                cpu_us_per_io: None,
                equivalent_to: None,
                random: None,
                demand: None,
                done_seconds: None,
                fairness: None,
                operations,
            })
            .collect(),
        excerpt: None,
    }
}

pub fn document(runs: Vec<Run>) -> ResultsDocument {
    ResultsDocument {
        format: Default::default(),
        revision: REVISION,
        writes: Vec::new(),
        version: "0.1.0".to_owned(),
        command: "hoistway compare mixed.fio".to_owned(),
        arguments: ["hoistway", "compare", "mixed.fio"].map(str::to_owned).to_vec(),
        job_file: "mixed.fio".to_owned(),
        job_text: String::new(),
        recording: None,
        window: None,
        device: json!({"name": "nvme-datacenter"}),
        guests: None,
        kernel: "6.18".to_owned(),
        cpus: 8,
        hw_queues: 1,
        nr_requests: 256,
        host: json!("ideal"),
        seed: 42,
        seeds: vec![42],
        setups: Vec::new(),
        wall_seconds: 0.5,
        simulated_ios: 300,
        is_real: false,
        real_place: None,
        partial: false,
        notices: Vec::new(),
        default_scheduler: None,
        baseline: None,
        focus: None,
        disk_groups: Vec::new(),
        focuses: Vec::new(),
        smallest_effect: None,
        doubts: Vec::new(),
        device_checks: Vec::new(),
        verdicts: Vec::new(),
        conclusion: Vec::new(),
        advice: Vec::new(),
        statistics: None,
        runs,
    }
}
