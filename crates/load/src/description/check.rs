//! Validation of a single process.

use hoistway_blk::ground::Nanos;

use super::Process;
use crate::check::{Checked, ensure, times};
use crate::limits::{DEPTH, DEVICES};

/// Checks a process, independently of others.
pub fn process(process: &Process) -> Checked {
    let Process { schedule, issue, caching, pace, latency, standing, .. } = process;
    times("schedule.start_delay", [schedule.start_delay])?;
    times("schedule.ramp", [schedule.ramp])?;
    times("schedule.runtime", schedule.runtime)?;
    let depth_in_range = (1..=DEPTH).contains(&issue.depth);
    ensure(depth_in_range, "issue.depth", "out of range", format_args!("expected 1 to {DEPTH}"))?;
    let is_one_in_flight = caching.direct || issue.depth == 1;
    ensure(
        is_one_in_flight,
        "issue.depth",
        "I/O through the page cache has one in flight",
        "set caching.direct, or a depth of 1",
    )?;
    if let Some(think) = &pace.think {
        times("pace.think", [think.sleep, think.spin, think.io_time])?;
    }
    if let Some(flow) = &pace.flow {
        times("pace.flow", [flow.sleep])?;
        ensure(flow.weight > 0, "pace.flow", "the weight is 0", "expected at least 1")?;
    }
    times("latency.max", latency.max)?;
    if let Some(target) = &latency.target {
        times("latency.target", [target.target, target.window])?;
        let has_window = target.window > Nanos::ZERO;
        ensure(
            has_window,
            "latency.target",
            "the search for a depth needs a window",
            "say how long each depth is tried (latency_window)",
        )?;
        let percentile_in_range = (0.0..=100.0).contains(&target.percentile);
        ensure(percentile_in_range, "latency.target", "the percentile is out of range", "expected 0 to 100")?;
    }
    if let Some(steady) = &process.steady_state {
        const DAY_SECONDS: u32 = 86_400;
        times("steady_state", [steady.ramp])?;
        let length_in_range = (1..=DAY_SECONDS).contains(&steady.seconds);
        ensure(
            length_in_range,
            "steady_state",
            "out of range",
            format_args!("samples are one second long: expected 1 s to {DAY_SECONDS} s"),
        )?;
        ensure(steady.steadiness.limit >= 0.0, "steady_state", "the limit is invalid", "expected a number from 0 on")?;
    }
    ensure((-20..=19).contains(&standing.nice), "standing.nice", "out of range", "expected -20 to 19")?;
    let weight_in_range = standing.cgroup_weight.is_none_or(|weight| (1..=1000).contains(&weight));
    ensure(weight_in_range, "standing.cgroup_weight", "out of range", "expected 1 to 1000")?;
    let has_cpu = standing.cpus.as_ref().is_none_or(|cpus| !cpus.is_empty());
    ensure(has_cpu, "standing.cpus", "no CPU is left", "name one, or leave it out for all")?;
    let has_end = !process.plan.pattern.volume.time_based || schedule.runtime.is_some();
    ensure(has_end, "schedule.runtime", "a process that is time-based needs one", "say how long it runs")?;
    let devices = process.files.len();
    ensure(
        (1..=DEVICES).contains(&devices),
        "files",
        format_args!("{devices} devices"),
        format_args!("expected 1 to {DEVICES}"),
    )?;
    let exists = |device: usize| device < devices;
    let used = process.plan.files.iter().map(|file| usize::from(file.device));
    let replayed = process.plan.replay.iter().flat_map(|replay| 0..replay.summary.ends.len());
    let all_exist = used.chain(replayed).all(exists);
    ensure(all_exist, "plan.files", "a device that the process does not have", "an index into its files")?;
    process.plan.check()?;
    // Buffered I/O may have any size: the page cache reads and writes whole pages.
    if caching.direct { process.plan.pattern.check_whole_blocks() } else { Ok(()) }
}
