//! Reads measurements from fio's JSON output.

use super::schema::{DirectionStats, Job, LatencyStats, Output};
use crate::histogram::LatencyHistogram;
use crate::measurement::{CpuUsage, DirectionResult, ProcessResult, SyncResult};

impl Output {
    /// The measurements of each process, as far as the document has them. It must be one of json+ with `lat_percentiles=1` and without
    /// `group_reporting`: a latency without bins is empty. The sections of the job file are unknown, so `job` is the number of the process.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessResult> {
        (0..).zip(&self.jobs).map(|(number, job)| process(number, job)).collect()
    }
}

fn process(number: u32, job: &Job) -> ProcessResult {
    let directions = [&job.read, &job.write, &job.trim];
    let runtime_ms = directions.iter().map(|direction| direction.runtime).max().unwrap_or(0);
    let cpu_ns = |percent: f64| (job.job_runtime as f64 * 1e6 * percent / 100.0) as u64;
    ProcessResult {
        name: job.jobname.clone(),
        job: number,
        group: job.groupid,
        runtime_ns: runtime_ms * 1_000_000,
        error: job.error,
        directions: directions.map(direction),
        sync: SyncResult { total_ios: job.sync.total_ios, of_data: 0, lat: histogram(&job.sync.lat_ns) },
        cpu: CpuUsage {
            user_ns: cpu_ns(job.usr_cpu),
            system_ns: cpu_ns(job.sys_cpu),
            context_switches: job.ctx,
            major_faults: job.majf,
            minor_faults: job.minf,
        },
        ..ProcessResult::default()
    }
}

fn direction(stats: &DirectionStats) -> DirectionResult {
    DirectionResult {
        ios: stats.total_ios,
        bytes: stats.io_bytes,
        slat: histogram(&stats.slat_ns),
        clat: histogram(&stats.clat_ns),
        lat: histogram(&stats.lat_ns),
        ..DirectionResult::default()
    }
}

fn histogram(stats: &LatencyStats) -> LatencyHistogram {
    let bins = stats.bins.iter().flatten().filter_map(|(ns, count)| Some((ns.parse().ok()?, *count)));
    LatencyHistogram::from_bins(bins, [stats.min, stats.max], stats.mean, stats.stddev)
}
