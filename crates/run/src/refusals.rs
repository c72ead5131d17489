//! What a load may ask for that cannot be done for real.

use hoistway_load::{Load, Process};

/// Something that a load asks for and that cannot be done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{who}: {what}")]
pub struct Refusal {
    /// The process, or the load.
    pub who: String,
    /// What cannot be done, and what would be right.
    pub what: &'static str,
}

/// Whether a load can be run.
///
/// # Errors
/// The first thing that cannot be done.
pub fn check(load: &Load) -> Result<(), Refusal> {
    if load.files.len() > 1 {
        let who = load.files.join(", ");
        return Err(Refusal { who, what: "several files (expected one: a run has one target)" });
    }
    load.processes.iter().try_for_each(check_process)
}

fn check_process(process: &Process) -> Result<(), Refusal> {
    let (issue, pace) = (&process.issue, &process.pace);
    let asked = [
        (!process.caching.direct, "I/O through the page cache (expected direct=1: a target is driven past it)"),
        (process.latency.target.is_some(), "latency_target: a run searches no depth (hoistway compare does)"),
        (
            process.steady_state.is_some(),
            "steadystate: a run ends by its time or its size (hoistway compare does that)",
        ),
        (pace.flow.is_some(), "flow: a run keeps no balance between processes (hoistway compare does)"),
        (
            pace.think.is_some_and(|think| think.spin.0 > 0),
            "thinktime_spin: processes share workers, and one that spins would stop them (expected thinktime)",
        ),
        (issue.polls, "hipri: a run cannot poll its target (expected jobs without it)"),
        (issue.serialize_overlap, "serialize_overlap: a run does not look for overlaps (hoistway compare does)"),
        (process.plan.has_priorities(), "cmdprio: a process of a run has one priority (expected prio and prioclass)"),
        (
            process.plan.pattern.verify_backlog.is_some(),
            "verify: a run does not check what it reads (expected jobs without it, or fio)",
        ),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(Refusal { who: process.name.clone(), what }),
        None => Ok(()),
    }
}
