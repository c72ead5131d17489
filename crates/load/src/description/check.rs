//! Whether a process can be run, without regard to the other processes.

use hoistway_blk::ground::Nanos;

use super::Process;
use crate::check::{Checked, ensure, times};
use crate::limits::{DEPTH, DEVICES};

/// A process by itself.
pub fn process(process: &Process) -> Checked {
    let Process { schedule, issue, caching, pace, latency, standing, .. } = process;
    times("schedule.start_delay", [schedule.start_delay])?;
    times("schedule.ramp", [schedule.ramp])?;
    times("schedule.runtime", schedule.runtime)?;
    let is_depth = (1..=DEPTH).contains(&issue.depth);
    ensure(is_depth, "issue.depth", "out of range", format_args!("expected 1 to {DEPTH}"))?;
    let is_one = caching.direct || issue.depth == 1;
    ensure(
        is_one,
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
        let is_window = target.window > Nanos::ZERO;
        ensure(
            is_window,
            "latency.target",
            "the search for a depth needs a window",
            "say how long each depth is tried (latency_window)",
        )?;
        let is_percentile = (0.0..=100.0).contains(&target.percentile);
        ensure(is_percentile, "latency.target", "the percentile is out of range", "expected 0 to 100")?;
    }
    if let Some(steady) = &process.steady_state {
        const DAY_SECONDS: u32 = 86_400;
        times("steady_state", [steady.ramp])?;
        let is_length = (1..=DAY_SECONDS).contains(&steady.seconds);
        ensure(
            is_length,
            "steady_state",
            "out of range",
            format_args!("samples are of a second: expected 1 s to {DAY_SECONDS} s"),
        )?;
        ensure(steady.steadiness.limit >= 0.0, "steady_state", "the limit is no limit", "expected a number from 0 on")?;
    }
    ensure((-20..=19).contains(&standing.nice), "standing.nice", "out of range", "expected -20 to 19")?;
    let is_weight = standing.cgroup_weight.is_none_or(|weight| (1..=1000).contains(&weight));
    ensure(is_weight, "standing.cgroup_weight", "out of range", "expected 1 to 1000")?;
    let has_cpu = standing.cpus.as_ref().is_none_or(|cpus| !cpus.is_empty());
    ensure(has_cpu, "standing.cpus", "no CPU is left", "name one, or leave it out for all")?;
    let ends = !process.plan.pattern.volume.time_based || schedule.runtime.is_some();
    ensure(ends, "schedule.runtime", "a process that is time-based needs one", "say how long it runs")?;
    let devices = process.files.len();
    ensure(
        (1..=DEVICES).contains(&devices),
        "files",
        format_args!("{devices} devices"),
        format_args!("expected 1 to {DEVICES}"),
    )?;
    let is_device = |device: usize| device < devices;
    let used = process.plan.files.iter().map(|file| usize::from(file.device));
    let replayed = process.plan.replay.iter().flat_map(|replay| 0..replay.summary.ends.len());
    let are_known = used.chain(replayed).all(is_device);
    ensure(are_known, "plan.files", "a device that the process does not have", "a place in its files")?;
    process.plan.check()?;
    // Buffered I/O may have any size: the page cache reads and writes whole pages.
    if caching.direct { process.plan.pattern.check_whole_blocks() } else { Ok(()) }
}
