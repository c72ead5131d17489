//! The clock readings that kyber sees at each event, derived from a recording.

use std::collections::HashMap;

use hoistway_blk::ground::{Hz, Instant, Nanos, Now, Tick};
use hoistway_trace::iosched::{BioNumber, Event, EventKind, RqNumber, Trace};

use crate::conform::bench::doubts;

/// The recorded time and tick counter of an event, if it has both.
fn tick_of(event: &Event) -> Option<(Instant, Tick)> {
    match &event.kind {
        EventKind::Insert(insert) => Some((event.t, insert.io.j?)),
        EventKind::Issue(issue) => Some((event.t, issue.io.j?)),
        EventKind::Dispatch(dispatch) => Some((dispatch.called_at, dispatch.j)),
        _ => None,
    }
}

/// An event with its time.
pub(super) struct Moment<'a> {
    /// The time.
    pub(super) now: Now,
    /// The event.
    pub(super) event: &'a Event,
    /// Whether this is a decision that may have been made here; if not, it is replayed again at its event.
    pub(super) in_doubt: bool,
}

/// The events in the order in which they happened, each with its time.
///
/// A decision [in doubt](doubts) occurs twice. Times are shifted so that ticks begin at multiples of their length.
pub(super) fn moments(trace: &Trace) -> Vec<Moment<'_>> {
    let hz = Hz(trace.header.hz.0);
    let tick_ns = i128::from(hz.tick_ns());
    let recorded = trace.events.iter().filter_map(tick_of);
    let first_tick = recorded.map(|(at, tick)| i128::from(at.0) - i128::from(tick.0) * tick_ns).min().unwrap_or(0);
    // Two additional ticks, so that no time is negative.
    let shift_ns = 2 * tick_ns - first_tick;
    let shifted = |at: Instant| Instant(u64::try_from(i128::from(at.0) + shift_ns).unwrap_or(0));

    let moment = |at, event, in_doubt| Moment { now: hz.now(shifted(at)), event, in_doubt };
    let in_doubt = doubts::in_doubt_before(&trace.events, |dispatch, other| dispatch.hctx == other.hctx);
    let mut moments: Vec<Moment<'_>> = Vec::with_capacity(trace.events.len());
    for (event, in_doubt) in trace.events.iter().zip(in_doubt) {
        moments.extend(in_doubt.into_iter().map(|decision| moment(event.t, decision, true)));
        moments.push(moment(event.t, event, false));
    }
    delay_ticks(trace, hz, &mut moments);
    moments
}

/// Sets the tick counter back where the recording shows it behind the clock: while interrupts are off, a tick comes
/// late. A late interrupt handles expired events in order, so a completion due before the tick did not see the tick.
fn delay_ticks(trace: &Trace, hz: Hz, moments: &mut [Moment<'_>]) {
    let service_ns = trace.header.device.get("completion_ns").and_then(serde_json::Value::as_u64);
    let mut served: HashMap<RqNumber, Instant> = HashMap::new();
    for Moment { now, event, .. } in moments.iter_mut() {
        match &event.kind {
            EventKind::Issue(issue) => {
                served.insert(issue.rq, now.at + Nanos(service_ns.unwrap_or(u64::MAX)));
            }
            EventKind::Sample { rq } => {
                if let Some(&served) = served.get(rq) {
                    now.tick = now.tick.min(hz.now(served).tick);
                }
            }
            _ => {}
        }
    }
    let mut next = Tick(u64::MAX);
    for Moment { now, event, .. } in moments.iter_mut().rev() {
        if let Some((at, tick)) = tick_of(event)
            && at == event.t
        {
            next = next.min(Tick(tick.0 + 2));
        }
        next = next.min(now.tick);
        now.tick = next;
    }
}

/// A task whose bio waits longer than this for its request has slept for a tag, ns; assumed. Sleeping flushes the plug, which
/// restarts the stopped clock.
const SLEPT_NS: u64 = 100_000;

/// The clocks of tasks: a plug stops the clock from its first request until its flush ends, including the issues.
#[derive(Default)]
pub(super) struct PlugClocks {
    /// The stopped clock of each pid.
    stopped_at: HashMap<u32, Instant>,
    /// When each pid's last bio was submitted.
    entered: HashMap<u32, Instant>,
    /// When each bio got its request.
    allocated: HashMap<BioNumber, Instant>,
}

impl PlugClocks {
    /// A task submits a bio.
    pub(super) fn enter(&mut self, pid: u32, at: Instant) {
        self.entered.insert(pid, at);
    }

    /// A bio gets its request.
    pub(super) fn allocate(&mut self, pid: u32, at: Instant, bio: BioNumber) {
        if self.entered.get(&pid).is_some_and(|entered| at.since(*entered).0 > SLEPT_NS) {
            self.stopped_at.remove(&pid);
        }
        let clock = *self.stopped_at.entry(pid).or_insert(at);
        self.allocated.insert(bio, clock);
    }

    /// The flush of a task's plug has ended, so its clock runs again.
    pub(super) fn restart(&mut self, pid: u32) {
        self.stopped_at.remove(&pid);
    }

    /// The reading of a task's clock.
    pub(super) fn read(&self, pid: u32, at: Instant) -> Instant {
        self.stopped_at.get(&pid).copied().unwrap_or(at)
    }

    /// When a bio got its request, by the clock of its task.
    pub(super) fn allocation(&self, bio: BioNumber) -> Option<Instant> {
        self.allocated.get(&bio).copied()
    }
}
