//! The parts of a recording between changes of scheduler, each as a recording of its own.
//!
//! The marks `begin` and `end` are written by the writer of `queue/scheduler`, before and after it, so they bracket
//! the change and do not place it: the queue drains, the scheduler is exchanged, who waited at the entrance comes into
//! the *new* one, and only then the writer goes on (BL-104).

use std::collections::HashSet;

use hoistway_trace::iosched::{Event, EventKind, Mark, RqNumber, Trace};

/// Whether a scheduler is changed during the recording.
pub(crate) fn switches(trace: &Trace) -> bool {
    trace.events.iter().any(|event| matches!(event.kind, EventKind::Mark(Mark::SwitchBegin(_))))
}

/// The parts. A change drains the queue, so nothing is carried over; the new scheduler has default tunables and
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
        part_until(&header, place_of_change(&trace.events[..end]));
        header.scheduler = name.to_string();
        header.tunables.clear();
        let depth = header.queue.queue_depth;
        header.queue.nr_requests = if &**name == "none" { depth } else { 2 * depth.min(128) };
    }
    part_until(&header, trace.events.len());
    parts
}

/// Where the change happened that has ended behind these events: the first event of the new scheduler.
///
/// The kernel's own message stands there, where it was recorded. Otherwise it is the last moment at which no request was
/// alive: not the first, because a queue may run empty before it is frozen.
fn place_of_change(events: &[Event]) -> usize {
    let begin = events.iter().rposition(|event| matches!(event.kind, EventKind::Mark(Mark::SwitchBegin(_))));
    let begin = begin.unwrap_or(events.len());
    let is_done = |event: &Event| matches!(event.kind, EventKind::Mark(Mark::SwitchDone(_)));
    if let Some(done) = events[begin..].iter().position(is_done) {
        return begin + done;
    }
    let mut alive: HashSet<RqNumber> = HashSet::new();
    let mut empty_since = None;
    for (at, event) in events.iter().enumerate() {
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
        if at >= begin && alive.is_empty() {
            empty_since = Some(at + 1);
        }
    }
    // What no request needs may stand before the change: it begins with the next request.
    let comes =
        |event: &Event| matches!(event.kind, EventKind::Getrq { .. } | EventKind::Insert(_) | EventKind::Issue(_));
    let from = empty_since.unwrap_or(events.len());
    events[from..].iter().position(comes).map_or(events.len(), |next| from + next)
}
