//! Splits a recording at changes of the scheduler into separate recordings.
//!
//! The writer of `queue/scheduler` records the marks `begin` and `end` before and after its write, which enclose the
//! change but do not locate it: the queue drains, the scheduler is exchanged, waiting submitters enter the *new*
//! scheduler, and only then does the writer continue (BL-104).

use std::collections::HashSet;

use hoistway_trace::iosched::{Event, EventKind, Mark, RqNumber, Trace};

/// Whether the scheduler changes during the recording.
pub(crate) fn switches(trace: &Trace) -> bool {
    trace.events.iter().any(|event| matches!(event.kind, EventKind::Mark(Mark::SwitchBegin(_))))
}

/// Splits a recording. A change drains the queue, so parts share no state; a new scheduler has default tunables and
/// `nr_requests` (BL-101).
pub(crate) fn parts(trace: &Trace) -> Vec<Trace> {
    let mut parts = Vec::new();
    let (mut header, mut from) = (trace.header.clone(), 0);
    let mut part_until = |header: &_, until: usize| {
        parts.push(Trace { header: Clone::clone(header), events: trace.events[from..until].to_vec() });
        from = until;
    };
    for (end, event) in trace.events.iter().enumerate() {
        let EventKind::Mark(Mark::SwitchEnd(name)) = &event.kind else { continue };
        part_until(&header, index_of_change(&trace.events[..end]));
        header.scheduler = name.to_string();
        header.tunables.clear();
        let depth = header.queue.queue_depth;
        header.queue.nr_requests = if &**name == "none" { depth } else { 2 * depth.min(128) };
    }
    part_until(&header, trace.events.len());
    parts
}

/// The position of the last change within these events: the index of the new scheduler's first event.
///
/// If the kernel's own message was recorded, it marks that position. Otherwise it is the last point without live
/// requests; not the first, because a queue may become empty before it is frozen.
fn index_of_change(events: &[Event]) -> usize {
    let begin = events.iter().rposition(|event| matches!(event.kind, EventKind::Mark(Mark::SwitchBegin(_))));
    let begin = begin.unwrap_or(events.len());
    let is_done = |event: &Event| matches!(event.kind, EventKind::Mark(Mark::SwitchDone(_)));
    if let Some(done) = events[begin..].iter().position(is_done) {
        return begin + done;
    }
    let mut alive: HashSet<RqNumber> = HashSet::new();
    let mut empty_since = None;
    for (index, event) in events.iter().enumerate() {
        match &event.kind {
            EventKind::Insert(insert) => {
                alive.insert(insert.rq);
            }
            EventKind::Issue(issue) if !issue.io.flushseq => {
                alive.insert(issue.rq);
            }
            EventKind::Free(free) => {
                alive.remove(&free.rq);
            }
            _ => {}
        }
        if index >= begin && alive.is_empty() {
            empty_since = Some(index + 1);
        }
    }
    // Events that need no request may precede the change: the new part begins with the next request.
    let needs_request =
        |event: &Event| matches!(event.kind, EventKind::Getrq { .. } | EventKind::Insert(_) | EventKind::Issue(_));
    let from = empty_since.unwrap_or(events.len());
    events[from..].iter().position(needs_request).map_or(events.len(), |next| from + next)
}
