//! A wrapper that records the last commands of a device, and its completions in the order in which it schedules them.

use std::collections::VecDeque;

use hoistway_blk::ground::Instant;
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape, TraceEvent};

/// The length of the trace: the `[tracer]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracerParameters {
    /// Number of most recent events that are kept.
    pub keeps_events: u32,
}

/// A device whose last commands are kept: it wraps another one.
pub struct Tracer {
    inner: Box<dyn Device>,
    events_max: usize,
    /// The events, oldest first.
    events: VecDeque<TraceEvent>,
}

impl Tracer {
    /// Traces `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, parameters: &TracerParameters) -> Tracer {
        let events_max = parameters.keeps_events as usize;
        Tracer { inner, events_max, events: VecDeque::with_capacity(events_max) }
    }

    fn record(&mut self, event: TraceEvent) {
        if self.events.len() == self.events_max {
            self.events.pop_front();
        }
        if self.events.len() < self.events_max {
            self.events.push_back(event);
        }
    }

    fn record_completions(&mut self, now: Instant, from: usize, schedule: &Schedule) {
        for completion in &schedule.completions[from..] {
            self.record(TraceEvent::Ends(now, *completion));
        }
    }
}

impl Device for Tracer {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn inner(&self) -> Option<&dyn Device> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(&mut *self.inner)
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let from = schedule.completions.len();
        let result = self.inner.submit(now, command, schedule);
        self.record(match result {
            Ok(()) => TraceEvent::Taken(now, command),
            Err(refusal) => TraceEvent::Refused(now, command, refusal),
        });
        self.record_completions(now, from, schedule);
        result
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        let from = schedule.completions.len();
        self.inner.wake(now, alarm, schedule);
        self.record_completions(now, from, schedule);
    }

    fn traced(&self) -> Option<&VecDeque<TraceEvent>> {
        Some(&self.events)
    }
}
