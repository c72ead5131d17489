//! Exits of processes: bfq is notified of them, but a recording does not show them.
//!
//! An exit is visible only if the process's queue was in service: its timestamps then change without another cause.
//! Otherwise it only changes reference counts, and is assumed shortly after the process's last completion.

use std::collections::{HashMap, HashSet};

use hoistway_trace::iosched::bounds::TIME_NS_MAX;
use hoistway_trace::iosched::{Event, EventKind, Process, QueueName, RqNumber, Trace};

/// Time from its last completion until a process with one request at a time exits, ns.
const AFTER_LAST: u64 = 95_000;
/// Time from the last completion until a process with asynchronous I/O exits, which it must tear down first, ns.
const AFTER_LAST_DEEP: u64 = 12_000_000;
/// Maximum distance between a visible exit and the estimate, ns.
const VISIBLE_SLACK: u64 = 2_000_000_000;
/// An exit assumed less than this before its queue's last expiration is moved after it, ns; longer than an idle timer.
const EXPIRED_SLACK: u64 = 25_000_000;
/// Maximum time between the lines of one action, ns.
const ONE_ACTION: u64 = 30_000;

/// The exits of a recording: time and process.
pub(super) fn exits(trace: &Trace, pid_of: &HashMap<RqNumber, u32>) -> Vec<(u64, u32)> {
    let mut last_io: HashMap<u32, u64> = HashMap::new();
    for event in &trace.events {
        let pid = match &event.kind {
            EventKind::Finish { rq } => pid_of.get(rq).copied(),
            EventKind::Queue(_) | EventKind::Getrq { .. } | EventKind::Insert(_) => event.pid,
            _ => None,
        };
        if let Some(pid) = pid {
            last_io.insert(pid, event.t.0);
        }
    }
    let estimate = |process: &Process| {
        let last = last_io.get(&process.pid)?;
        Some((last + linger(process) + delay(process), process.pid))
    };
    let mut exits: Vec<(u64, u32)> = trace.header.processes.iter().filter_map(estimate).collect();
    exits.sort_unstable();
    let may_exit = |queue: QueueName, t: u64, pid: u32| {
        let ended = last_io.get(&pid).is_some_and(|&last| last < t);
        ended && queue.owner.is_none_or(|owner| owner == pid)
    };
    let (mut visible, mut visible_pids) = (Vec::new(), HashSet::new());
    for (t, queue) in unexplained(&trace.events) {
        // A shared queue does not show which process exits: take the one whose estimate is closest.
        let candidates = exits.iter().filter(|&&(exit, pid)| {
            !visible_pids.contains(&pid) && exit.abs_diff(t) < VISIBLE_SLACK && may_exit(queue, t, pid)
        });
        if let Some(&(_, pid)) = candidates.min_by_key(|(exit, _)| exit.abs_diff(t)) {
            visible.push((t - 1, pid));
            visible_pids.insert(pid);
        }
    }
    exits.retain(|(_, pid)| !visible_pids.contains(pid));
    // Until a queue's last expiration all of its processes existed; otherwise an exit would be visible.
    for (queue, t) in last_expirations(&trace.events) {
        for (exit, pid) in &mut exits {
            if may_exit(queue, t, *pid) && *exit < t && t - *exit < EXPIRED_SLACK {
                *exit = t + ONE_ACTION;
            }
        }
    }
    exits.append(&mut visible);
    exits.sort_unstable();
    exits
}

/// The last expiration of each queue.
fn last_expirations(events: &[Event]) -> Vec<(QueueName, u64)> {
    let mut last: Vec<(QueueName, u64)> = Vec::new();
    for event in events {
        let EventKind::Bfq(state) = &event.kind else { continue };
        let ("expire", Some(queue)) = (&*state.kind, state.queue) else { continue };
        last.retain(|&(other, _)| other != queue);
        last.push((queue, event.t.0));
    }
    last
}

/// A number in a process's job description; `None` if missing or implausible.
fn job_number(process: &Process, name: &str) -> Option<u64> {
    let words = process.job.split_whitespace().filter_map(|word| word.split_once('='));
    words.into_iter().find(|(key, _)| *key == name)?.1.parse().ok().filter(|&number| number <= TIME_NS_MAX / 1000)
}

fn linger(process: &Process) -> u64 {
    job_number(process, "linger").unwrap_or(0) * 1000
}

fn delay(process: &Process) -> u64 {
    if job_number(process, "qd").unwrap_or(1) > 1 { AFTER_LAST_DEEP } else { AFTER_LAST }
}

/// Finds changes of a queue's timestamps (and its going idle with them) that no other line explains: time of the first
/// line, and the queue.
fn unexplained(events: &[Event]) -> Vec<(u64, QueueName)> {
    let mut found = Vec::new();
    let mut before: Option<(u64, &str, Option<QueueName>)> = None;
    let mut decision_until = 0;
    for (index, event) in events.iter().enumerate() {
        let EventKind::Bfq(state) = &event.kind else { continue };
        let t = event.t.0;
        let previous = before.filter(|&(last, _, queue)| t - last < ONE_ACTION && queue == state.queue);
        let kind: &str = &state.kind;
        let is_start = match kind {
            "idle" => previous.is_none_or(|(_, kind, _)| !matches!(kind, "budget" | "budget_inputs" | "merge")),
            "vtime" => previous.is_none_or(|(_, kind, _)| {
                !matches!(kind, "busy" | "expire" | "budget" | "budget_inputs" | "rebudget" | "vtime" | "idle")
            }),
            _ => false,
        };
        // Lines within a dispatch are explained by an injected request.
        let dispatch = events[index..].iter().take(12).find_map(|event| match &event.kind {
            EventKind::Dispatch(dispatch) => Some((dispatch.called_at.0, event.t.0)),
            _ => None,
        });
        if let Some((called, returned)) = dispatch
            && called <= t
        {
            decision_until = returned;
        }
        if let (true, Some(queue)) = (is_start && t > decision_until, state.queue) {
            found.push((t, queue));
        }
        before = Some((t, kind, state.queue));
    }
    found
}
