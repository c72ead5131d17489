//! Detects replays that fell behind their log: such a replay offered less load than was recorded.

use std::collections::BTreeMap;

use hoistway_answer::document::Run;
use hoistway_load::Load;

/// A replay is behind if it takes more than this factor of its log's duration.
const BEHIND_FACTOR: f64 = 1.1;

/// Returns a clause for each job whose replay fell behind in some run.
pub(crate) fn doubts(workload: &Load, runs: &[Run]) -> Vec<String> {
    let mut doubts = Vec::new();
    for process in &workload.processes {
        let Some(replay) = &process.plan.replay else { continue };
        let log_s = replay.summary.last_due_ns as f64 / 1e9;
        let mut slowest: BTreeMap<&str, f64> = BTreeMap::new();
        for run in runs {
            let job = run.jobs.iter().find(|job| job.job as usize == process.schedule.job);
            // With a single process, rates are computed over its own runtime.
            let Some(summary) = job.filter(|job| job.processes == 1) else { continue };
            let (ios, iops) =
                summary.transfers().fold((0, 0.0), |(ios, iops), summary| (ios + summary.ios, iops + summary.iops));
            let run_s = if iops > 0.0 { ios as f64 / iops } else { 0.0 };
            if run_s > BEHIND_FACTOR * log_s && log_s > 0.0 {
                let known = slowest.entry(run.variant.label.as_str()).or_insert(run_s);
                *known = known.max(run_s);
            }
        }
        if !slowest.is_empty() {
            let under: Vec<String> =
                slowest.iter().map(|(label, run_s)| format!("{run_s:.2} s under {label}")).collect();
            doubts.push(format!(
                "the replay of {} fell behind its log of {log_s:.2} s: it took {}, so less was offered than was recorded, and \
                 schedulers were judged at saturation",
                process.name,
                under.join(", ")
            ));
        }
    }
    doubts
}
