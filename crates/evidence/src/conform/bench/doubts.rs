//! Decisions whose place a recording leaves open.
//!
//! A decision is printed when its question is answered. If something else happened between the question and the answer -
//! another CPU had a question answered, an interrupt released a request, the task was pre-empted - the decision may have
//! been made before that or after it. Such a decision comes twice: first where it may have been made earliest, in doubt,
//! where it counts if our answer is the recorded one; and else where it was printed.

use hoistway_trace::iosched::{Dispatch, Event, EventKind};

/// How many events at most are looked back over: more do not happen while a question is answered.
const EVENTS_MAX: usize = 10_000;

/// For each event the decisions in doubt that may have been made before it, and not before the one before it.
pub(crate) fn before(events: &[Event], meet: impl Fn(&Dispatch, &Dispatch) -> bool) -> Vec<Vec<&Event>> {
    let mut in_doubt = vec![Vec::new(); events.len()];
    for (index, event) in events.iter().enumerate() {
        let EventKind::Dispatch(dispatch) = &event.kind else { continue };
        let meanwhile = events[..index].iter().enumerate().rev().take(EVENTS_MAX);
        let meanwhile = meanwhile.take_while(|(_, other)| other.t >= dispatch.asked);
        let matters = |other: &Event| match &other.kind {
            EventKind::Dispatch(other) => meet(dispatch, other),
            // On another CPU they are where they are; here they are interrupts.
            EventKind::Finish { .. } | EventKind::Free(_) => other.cpu == event.cpu,
            _ => false,
        };
        if let Some((first, _)) = meanwhile.filter(|(_, other)| matters(other)).last() {
            in_doubt[first].push(event);
        }
    }
    in_doubt
}
