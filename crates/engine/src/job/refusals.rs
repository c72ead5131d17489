//! Options of a load that a real run does not support, or ignores.

use hoistway_load::{Load, Process};

/// An option of a load that is not supported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{who}: {what}")]
pub struct Refusal {
    /// The process, or the files of the load.
    pub who: String,
    /// The option, why it is not supported, and what was expected.
    pub what: &'static str,
}

/// Checks that a load can be run.
///
/// # Errors
/// The first unsupported option.
pub fn check(load: &Load) -> Result<(), Refusal> {
    if load.files.len() > 1 {
        let who = load.files.join(", ");
        return Err(Refusal { who, what: "several files (expected one: a run has one target)" });
    }
    load.processes.iter().try_for_each(check_process)
}

/// Notices about options of a load that have no effect in a real run.
#[must_use]
pub fn notices(load: &Load) -> Vec<String> {
    let mut bound: Vec<&str> = Vec::new();
    for process in load.processes.iter().filter(|process| process.standing.cpus.is_some()) {
        if bound.last() != Some(&&*process.name) {
            bound.push(&process.name);
        }
    }
    let notice = format!(
        "cpus_allowed of {} has no effect: processes of a real run share worker threads, which may use every CPU.",
        bound.join(", ")
    );
    if bound.is_empty() { Vec::new() } else { vec![notice] }
}

fn check_process(process: &Process) -> Result<(), Refusal> {
    let unsupported = [
        (!process.caching.direct, "I/O through the page cache (expected direct=1: a run bypasses the page cache)"),
        (
            process.issue.polls,
            "hipri: the rings of a run complete by interrupt (expected jobs without it, or hoistway compare)",
        ),
        (
            process.plan.pattern.verify_backlog.is_some(),
            "verify: a run does not compare the data that it reads (expected jobs without it, or fio)",
        ),
    ];
    match unsupported.into_iter().find(|(is_used, _)| *is_used) {
        Some((_, what)) => Err(Refusal { who: process.name.clone(), what }),
        None => Ok(()),
    }
}
