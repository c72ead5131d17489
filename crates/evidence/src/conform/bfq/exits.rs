//! Exits of processes: bfq is notified of them, but a recording does not show them.
//!
//! An exit shows in a recording only if the process's queue is in service: the queue's timestamps then change, and no other
//! event is the cause. Otherwise it only changes reference counts, and is assumed shortly after the process's last event.

use std::collections::{HashMap, HashSet};

use hoistway_trace::iosched::bounds::TIME_NS_MAX;
use hoistway_trace::iosched::{Event, EventKind, Process, QueueName, RqNumber, Trace};

/// Time from the last I/O event of a process with one request at a time until it exits, ns; assumed.
const AFTER_LAST: u64 = 95_000;
/// Time from the last I/O event of a process with asynchronous I/O until it exits, ns; assumed. It is longer because the
/// process first tears down its asynchronous I/O.
const AFTER_LAST_DEEP: u64 = 12_000_000;
/// Maximum distance between a visible exit and the estimate, ns; assumed.
const VISIBLE_SLACK: u64 = 2_000_000_000;
/// If an exit is estimated at most this long before the last expiration of its queue, it is moved to just after it, ns.
/// Longer than an idle timer.
const EXPIRED_SLACK: u64 = 25_000_000;
/// Maximum time between the lines of one action, ns; assumed.
const ONE_ACTION: u64 = 30_000;
/// Maximum number of events, from a line on, up to the end of the dispatch that the line belongs to; assumed.
const DISPATCH_LOOKAHEAD: usize = 12;

/// The exits of a recording: time and process.
pub(super) fn exits(trace: &Trace, pid_of: &HashMap<RqNumber, u32>) -> Vec<(u64, u32)> {
    let mut last_event: HashMap<u32, u64> = HashMap::new();
    for event in &trace.events {
        let pid = match &event.kind {
            EventKind::Finish { rq } => pid_of.get(rq).copied(),
            EventKind::Queue(_) | EventKind::Getrq { .. } | EventKind::Insert(_) => event.pid,
            _ => None,
        };
        if let Some(pid) = pid {
            last_event.insert(pid, event.t.0);
        }
    }
    let estimate = |process: &Process| {
        let last = last_event.get(&process.pid)?;
        Some((last + linger(process) + exit_delay(process), process.pid))
    };
    let mut exits: Vec<(u64, u32)> = trace.header.processes.iter().filter_map(estimate).collect();
    exits.sort_unstable();
    let may_exit = |queue: QueueName, t: u64, pid: u32| {
        let ended = last_event.get(&pid).is_some_and(|&last| last < t);
        ended && queue.owner.is_none_or(|owner| owner == pid)
    };
    let (mut visible, mut visible_pids) = (Vec::new(), HashSet::new());
    for (t, queue) in unexplained(&trace.events) {
        // A shared queue does not show which process exits: take the one whose estimate is closest.
        let candidates = exits.iter().filter(|&&(exit, pid)| {
            !visible_pids.contains(&pid) && exit.abs_diff(t) < VISIBLE_SLACK && may_exit(queue, t, pid)
        });
        if let Some(&(_, pid)) = candidates.min_by_key(|(exit, _)| exit.abs_diff(t)) {
            // Just before the first line that shows it.
            visible.push((t - 1, pid));
            visible_pids.insert(pid);
        }
    }
    exits.retain(|(_, pid)| !visible_pids.contains(pid));
    // Until a queue's last expiration all of its processes existed; otherwise an exit would be visible. Only estimates that are
    // wrong by little are corrected.
    for (queue, t) in last_expirations(&trace.events) {
        for (exit, pid) in &mut exits {
            if may_exit(queue, t, *pid) && *exit < t && t - *exit < EXPIRED_SLACK {
                // After all lines of the expiration.
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

/// The number of this key in a process's job description; `None` if missing or too large for a time in us.
fn job_number(process: &Process, key: &str) -> Option<u64> {
    let words = process.job.split_whitespace().filter_map(|word| word.split_once('='));
    words.into_iter().find(|(name, _)| *name == key)?.1.parse().ok().filter(|&number| number <= TIME_NS_MAX / 1000)
}

/// Time that a process waits after its I/O before it exits, ns (in its description: us).
fn linger(process: &Process) -> u64 {
    job_number(process, "linger").unwrap_or(0) * 1000
}

/// Time that a process needs for its exit, ns.
fn exit_delay(process: &Process) -> u64 {
    if job_number(process, "qd").unwrap_or(1) > 1 { AFTER_LAST_DEEP } else { AFTER_LAST }
}

/// Finds where a queue's timestamps change, or it goes idle, without a line before it that is the cause. Returns the time and
/// the queue of each such change.
fn unexplained(events: &[Event]) -> Vec<(u64, QueueName)> {
    let mut found = Vec::new();
    let mut before: Option<(u64, &str, Option<QueueName>)> = None;
    let mut decision_until = 0;
    for (index, event) in events.iter().enumerate() {
        let EventKind::Bfq(state) = &event.kind else { continue };
        let t = event.t.0;
        let previous = before.filter(|&(last, _, queue)| t - last < ONE_ACTION && queue == state.queue);
        let kind: &str = &state.kind;
        // A line about the same queue less than ONE_ACTION before is the cause. A queue goes idle with a new budget or a merge;
        // its timestamps also change with an activation or an expiration, and in several lines of one change.
        let is_start = match kind {
            "idle" => previous.is_none_or(|(_, kind, _)| !matches!(kind, "budget" | "budget_inputs" | "merge")),
            "vtime" => previous.is_none_or(|(_, kind, _)| {
                !matches!(kind, "busy" | "expire" | "budget" | "budget_inputs" | "rebudget" | "vtime" | "idle")
            }),
            _ => false,
        };
        // A dispatch is recorded when it ends. Lines since its call belong to it, as an injected request changes timestamps, too.
        let dispatch = events[index..].iter().take(DISPATCH_LOOKAHEAD).find_map(|event| match &event.kind {
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
