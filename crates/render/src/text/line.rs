//! A one-line summary of a run, shown as soon as it has ended.

use hoistway_answer::document::Run;

use hoistway_measure::units;

/// Maximum number of named jobs.
const JOBS_MAX: usize = 3;

/// The scheduler, and the first operation of each job: `kyber: a read 1.25 k IOPS, p99 3.26 ms`.
#[must_use]
pub fn run_line(label: &str, run: &Run) -> String {
    let all = run.jobs.iter().filter_map(|job| {
        let summary = job.operations.first()?;
        let (iops, p99) = (units::rate(summary.iops), units::latency(summary.lat_ns.p99 as f64, false));
        Some(format!("{} {} {iops} IOPS, p99 {p99}", job.name, summary.operation.name()))
    });
    let mut jobs: Vec<String> = all.collect();
    let more = jobs.len().saturating_sub(JOBS_MAX);
    jobs.truncate(JOBS_MAX);
    if more > 0 {
        jobs.push(format!("{more} more"));
    }
    format!("{label}: {}", if jobs.is_empty() { "no I/O".to_owned() } else { jobs.join("; ") })
}
