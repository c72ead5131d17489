//! Decisions whose position in the recording is uncertain.
//!
//! A decision is recorded after it was made. If something else happened in between (another CPU made a decision, an
//! interrupt released a request, the task was preempted), the decision may have been made before or after it. Such a
//! decision is in doubt and replayed up to twice: at the earliest possible position, where it counts if ours equals the
//! recorded one; otherwise again at its recorded position.

use hoistway_trace::iosched::{Dispatch, Event, EventKind};

/// Maximum number of events to look back; fewer happen during a decision.
const EVENTS_MAX: usize = 10_000;

/// For each event, the decisions in doubt whose earliest possible position is just before it.
pub(crate) fn in_doubt_before(events: &[Event], interferes: impl Fn(&Dispatch, &Dispatch) -> bool) -> Vec<Vec<&Event>> {
    let mut in_doubt = vec![Vec::new(); events.len()];
    for (index, event) in events.iter().enumerate() {
        let EventKind::Dispatch(dispatch) = &event.kind else { continue };
        let since_call = events[..index].iter().enumerate().rev().take(EVENTS_MAX);
        let since_call = since_call.take_while(|(_, other)| other.t >= dispatch.called_at);
        let matters = |other: &Event| match &other.kind {
            EventKind::Dispatch(other) => interferes(dispatch, other),
            // On another CPU such an event is concurrent; on the same CPU it is an interrupt.
            EventKind::Finish { .. } | EventKind::Free(_) => other.cpu == event.cpu,
            _ => false,
        };
        if let Some((first, _)) = since_call.filter(|(_, other)| matters(other)).last() {
            in_doubt[first].push(event);
        }
    }
    in_doubt
}
