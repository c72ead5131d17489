//! Remembers the last commands and how they ended, as the host saw them.

use std::collections::VecDeque;

use hoistway_blk::Instant;
use serde::{Deserialize, Serialize};

use crate::model::{Command, Completion, Device, Refusal, Schedule, Shape};

/// How much is remembered: the `[tracer]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracerParameters {
    /// Events that are kept: the last ones.
    pub keeps_events: u32,
}

/// What a device was told or has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// It took a command.
    Taken(Instant, Command),
    /// It refused one.
    Refused(Instant, Command, Refusal),
    /// It has said at that time how and when a command ends.
    Ends(Instant, Completion),
}

/// The wrapper.
pub struct Tracer {
    inner: Box<dyn Device>,
    keeps: usize,
    events: VecDeque<TraceEvent>,
}

impl Tracer {
    /// Traces `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, parameters: &TracerParameters) -> Tracer {
        let keeps = parameters.keeps_events as usize;
        Tracer { inner, keeps, events: VecDeque::with_capacity(keeps) }
    }

    /// What was remembered, the oldest first.
    pub fn events(&self) -> impl Iterator<Item = &TraceEvent> {
        self.events.iter()
    }

    fn remember(&mut self, event: TraceEvent) {
        if self.events.len() == self.keeps {
            self.events.pop_front();
        }
        if self.events.len() < self.keeps {
            self.events.push_back(event);
        }
    }

    fn remember_ends(&mut self, now: Instant, from: usize, schedule: &Schedule) {
        for completion in &schedule.completions[from..] {
            self.remember(TraceEvent::Ends(now, *completion));
        }
    }
}

impl Device for Tracer {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let from = schedule.completions.len();
        let answer = self.inner.submit(now, command, schedule);
        self.remember(match answer {
            Ok(()) => TraceEvent::Taken(now, command),
            Err(refusal) => TraceEvent::Refused(now, command, refusal),
        });
        self.remember_ends(now, from, schedule);
        answer
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        let from = schedule.completions.len();
        self.inner.wake(now, alarm, schedule);
        self.remember_ends(now, from, schedule);
    }

    fn tracer(&self) -> Option<&Tracer> {
        Some(self)
    }
}
