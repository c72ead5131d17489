//! Determines the causes of each I/O while the steps of a stream are written.
//!
//! Used by: `infer`.
//! Tests: `crates/program/tests/program/worked_example.rs`, `crates/program/tests/program/tables.rs`.

use hoistway_load::WAITS_MAX;

use crate::histogram::Histogram;
use crate::log::Kind as EntryKind;
use crate::steps::{Causes, Plug, Step};
use crate::stream::{Kind, Stream};

/// If plugs are not recorded, I/Os that follow each other within this time count as plugged, ns (RP9).
pub(crate) const PLUG_NS: u64 = 20_000;

/// A task reaps completions this close to each other at once, ns, so the recording does not show which of them its next I/Os
/// waited for.
const TOGETHER_NS: u64 = 100_000;

/// The state of a stream in the last pass over the log.
#[derive(Debug, Default)]
pub(crate) struct StreamCursor {
    outstanding: u64,
    completed: u64,
    last_completion_ns: Option<u64>,
    /// Completions since the last I/O was queued.
    completions_since_queued: Vec<u64>,
    /// Times of the completions that the I/Os of the current batch may have waited for.
    batch_completions: Vec<u64>,
    /// Completions before these.
    completed_before_batch: u64,
    /// Number of these completions already assigned to an I/O.
    assigned: usize,
    submitted_ns: Option<u64>,
    /// The last I/O, kept until it is known how its plug continues.
    last: Option<(Step, Causes)>,
    /// Whether the one before it left its plug open.
    has_open_plug: bool,
    pub(crate) is_plugged: bool,
    pub(crate) thinks: Histogram,
}

impl StreamCursor {
    pub(crate) fn add_event(&mut self, kind: EntryKind, now_ns: u64) {
        match kind {
            EntryKind::Submitted => self.submitted_ns = Some(now_ns),
            EntryKind::Completed => {
                self.outstanding -= 1;
                self.completed += 1;
                self.last_completion_ns = Some(now_ns);
                self.completions_since_queued.push(now_ns);
            }
            EntryKind::GivenUp => self.outstanding -= 1,
            EntryKind::Plug => {
                self.is_plugged = true;
                // A plug is recorded after the first bio under it.
                self.set_last_plug(Plug::Within);
            }
            EntryKind::Unplug => {
                self.set_last_plug(Plug::Last);
                self.is_plugged = false;
            }
            EntryKind::UnplugScheduled => {
                self.set_last_plug(Plug::LastScheduled);
                self.is_plugged = false;
            }
            EntryKind::Queued | EntryKind::Withdrawn => {}
        }
    }

    fn set_last_plug(&mut self, plug: Plug) {
        if let Some((last, _)) = self.last.as_mut().filter(|_| self.is_plugged) {
            last.plug = plug;
        }
    }

    /// Adds the next I/O; returns the previous one.
    pub(crate) fn queued(&mut self, mut step: Step, causes: Causes, has_plugs: bool) -> Option<(Step, Causes)> {
        let follows = causes.submission_gap_ns.is_some_and(|gap_ns| gap_ns < PLUG_NS);
        if let Some((last, _)) = self.last.as_mut().filter(|_| !has_plugs && follows) {
            last.plug = Plug::Within;
            step.plug = Plug::Last;
        }
        self.outstanding += 1;
        self.submitted_ns = Some(step.at.0);
        let previous = self.take_last();
        self.last = Some((step, causes));
        previous
    }

    /// The last I/O, whose plug is now known: one that is alone in it is the kernel's doing.
    pub(crate) fn take_last(&mut self) -> Option<(Step, Causes)> {
        let (mut last, causes) = self.last.take()?;
        let is_last = matches!(last.plug, Plug::Last | Plug::LastScheduled);
        if is_last && !self.has_open_plug {
            last.plug = Plug::Lone;
        }
        self.has_open_plug = last.plug == Plug::Within;
        Some((last, causes))
    }

    /// The number and time of the completion that the I/O queued now waited for; `None` if it follows the previous submission.
    /// Completions that came together are assigned to one I/O each, so that a program keeps its depth if they come one at a time.
    fn completion(&mut self) -> Option<(u64, u64)> {
        let submitted_ns = self.submitted_ns.unwrap_or(0);
        if let Some(&last) = self.completions_since_queued.last().filter(|last| **last > submitted_ns) {
            let is_together = |time: &u64| *time > submitted_ns && *time + TOGETHER_NS >= last;
            self.batch_completions.clear();
            self.batch_completions.extend(self.completions_since_queued.iter().copied().filter(is_together));
            (self.completed_before_batch, self.assigned) = (self.completed - self.batch_completions.len() as u64, 0);
        }
        self.completions_since_queued.clear();
        let time_ns = *self.batch_completions.get(self.assigned)?;
        self.assigned += 1;
        Some((self.completed_before_batch + self.assigned as u64, time_ns))
    }
}

/// The possible causes of an I/O that a stream queues now (RP6 to RP10, RP16, RP18).
pub(crate) fn causes(stream: &Stream, index: usize, cursors: &mut [StreamCursor], now_ns: u64) -> Causes {
    let completion = cursors[index].completion();
    let own = &cursors[index];
    let mut others = [None; WAITS_MAX];
    for (cause, on) in others.iter_mut().zip(stream.may_wait_for()) {
        let other = &cursors[on];
        if let Some(last_ns) = other.last_completion_ns.filter(|_| other.outstanding == 0) {
            *cause = Some((other.completed, now_ns - last_ns));
        }
    }
    Causes {
        is_fixed: stream.kind == Kind::WriteBack && own.outstanding == 0,
        own_completions: completion.map_or(own.completed, |(count, _)| count),
        own_gap_ns: completion.map(|(_, time_ns)| now_ns - time_ns),
        submission_gap_ns: own.submitted_ns.map(|submitted_ns| now_ns - submitted_ns),
        others,
    }
}
