//! The clocks of bfq, which a recording does not show: a plug stops the nanosecond clock, and tick boundaries have to
//! be inferred.

use std::collections::{HashMap, HashSet};

use hoistway_blk::ground::{Hz, Tick};
use hoistway_trace::iosched::{BioNumber, Event, EventKind, Trace};

use crate::conform::kernel_of;
use crate::conform::plugs::unplugged;

/// A task has slept for a tag if the allocation comes this much later than the bio, ns; assumed.
const TAG_SLEEP_NS: u64 = 100_000;
/// Our first tick, so high that a scheduler created at tick 0 is no longer in its start-up phase.
const FIRST_TICK: u64 = 1_000_000;

/// The offset of tick boundaries. All recorded tick counts together determine it to a microsecond.
pub(super) struct TickPhase {
    /// Added to a time so that ticks begin at multiples of their length, ns.
    shift: i64,
    length: i64,
}

impl TickPhase {
    /// Finds the phase that fits all tick counts of a recording, each read when its event was recorded.
    pub fn fit(trace: &Trace, hz: Hz) -> Self {
        let length = hz.tick_ns() as i64;
        // A count may have been read slightly later than the event's time, but never earlier.
        let (mut lower_bounds, mut upper_bound) = (Vec::new(), length);
        for event in &trace.events {
            let tick = match &event.kind {
                EventKind::Insert(insert) => insert.io.j,
                EventKind::Issue(issue) => issue.io.j,
                EventKind::Dispatch(dispatch) => Some(dispatch.j),
                _ => None,
            };
            let Some(tick) = tick else { continue };
            let start = tick.0 as i64 * length - event.t.0 as i64;
            lower_bounds.push(start);
            upper_bound = upper_bound.min(start + length);
        }
        let low = lower_bounds.into_iter().filter(|&low| low < upper_bound).max().unwrap_or(0);
        TickPhase { shift: i64::midpoint(low, upper_bound), length }
    }

    /// The tick of a time.
    pub fn tick_at(&self, ns: u64) -> Tick {
        Tick(FIRST_TICK + ((ns as i64 + self.shift) / self.length).max(0) as u64)
    }

    /// Converts a recorded tick count to our ticks.
    pub fn from_recorded(tick: Tick) -> Tick {
        Tick(FIRST_TICK + tick.0)
    }
}

/// Bios whose requests see the running clock: those without a plug, and before 6.9 all (BFQ-4).
pub(super) fn with_running_clock(trace: &Trace) -> HashSet<BioNumber> {
    if kernel_of(&trace.header).generation().plug_stops_clock {
        return unplugged(trace);
    }
    let allocated = trace.events.iter().filter_map(|event| match &event.kind {
        EventKind::Getrq { bio, .. } => Some(bio.bio),
        _ => None,
    });
    allocated.collect()
}

/// The clock of a task under a plug.
#[derive(Clone, Copy, Default)]
struct PlugClock {
    /// The time of its first allocation, if the clock is stopped.
    stopped_at: Option<u64>,
    /// The number of its requests still to be inserted, while it is flushed.
    flushing: Option<u32>,
}

/// The clocks of all plugs.
pub(super) struct PlugClocks<'a> {
    /// Bios whose requests see the running clock.
    running: &'a HashSet<BioNumber>,
    by_task: HashMap<u32, PlugClock>,
    queued_at: HashMap<BioNumber, u64>,
}

impl<'a> PlugClocks<'a> {
    pub fn new(running: &'a HashSet<BioNumber>) -> Self {
        PlugClocks { running, by_task: HashMap::new(), queued_at: HashMap::new() }
    }

    /// The nanosecond clock at an event; must be called in the order of the file. `real_ns` is the time without a plug.
    pub fn read(&mut self, event: &Event, real_ns: u64) -> u64 {
        let Some(pid) = event.pid else { return real_ns };
        let plug = self.by_task.entry(pid).or_default();
        let t = event.t.0;
        match &event.kind {
            EventKind::Queue(bio) => {
                self.queued_at.insert(bio.bio, t);
                plug.reset_if_flushed();
            }
            EventKind::Plug => plug.reset_if_flushed(),
            EventKind::Getrq { bio, .. } if self.running.contains(&bio.bio) => *plug = PlugClock::default(),
            EventKind::Getrq { bio, .. } => {
                plug.reset_if_flushed();
                let slept = self.queued_at.get(&bio.bio).is_some_and(|&queued| t - queued > TAG_SLEEP_NS);
                if plug.stopped_at.is_none() || slept {
                    plug.stopped_at = Some(t);
                }
            }
            EventKind::Unplug { nr, .. } => plug.flushing = Some(*nr),
            EventKind::Insert(_) | EventKind::Rqmerge(_) => {
                if let Some(remaining) = &mut plug.flushing {
                    *remaining = remaining.saturating_sub(1);
                }
            }
            EventKind::RunEnd if plug.flushing == Some(0) => {
                *plug = PlugClock::default();
                return real_ns;
            }
            _ => {}
        }
        match &event.kind {
            // These happen in interrupts, independent of the running task.
            EventKind::Finish { .. } | EventKind::Free(_) | EventKind::Complete(_) | EventKind::BfqIdleTimer => real_ns,
            _ => plug.stopped_at.unwrap_or(real_ns),
        }
    }
}

impl PlugClock {
    fn reset_if_flushed(&mut self) {
        if self.flushing.is_some() {
            *self = PlugClock::default();
        }
    }
}
