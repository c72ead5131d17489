//! Where a stream stands as its steps are written: what comes before an I/O is its cause.

use hoistway_load::WAITS_MAX;

use crate::histogram::Histogram;
use crate::log::Kind as EntryKind;
use crate::steps::{Causes, Plug, Step};
use crate::stream::{Kind, Stream};

/// I/Os that follow each other within this are a plug, where plugs are not recorded (RP9).
const PLUG_NS: u64 = 20_000;

/// Where a stream stands on the last way through the log.
#[derive(Debug, Default)]
pub(crate) struct Track {
    outstanding: u64,
    completed: u64,
    last_completion_ns: Option<u64>,
    submitted_ns: Option<u64>,
    /// The last I/O, until it is known how its plug goes on.
    last: Option<(Step, Causes)>,
    pub(crate) is_plugged: bool,
    pub(crate) thinks: Histogram,
}

impl Track {
    pub(crate) fn note(&mut self, kind: EntryKind, now_ns: u64) {
        match kind {
            EntryKind::Submitted => self.submitted_ns = Some(now_ns),
            EntryKind::Completed => {
                self.outstanding -= 1;
                self.completed += 1;
                self.last_completion_ns = Some(now_ns);
            }
            EntryKind::GivenUp => self.outstanding -= 1,
            EntryKind::Plug => {
                self.is_plugged = true;
                // A plug is recorded behind the first bio that it holds.
                self.mark(Plug::Within);
            }
            EntryKind::Unplug => {
                self.mark(Plug::Last);
                self.is_plugged = false;
            }
            EntryKind::UnplugScheduled => {
                self.mark(Plug::LastScheduled);
                self.is_plugged = false;
            }
            EntryKind::Queued => {}
        }
    }

    fn mark(&mut self, plug: Plug) {
        if let Some((last, _)) = self.last.as_mut().filter(|_| self.is_plugged) {
            last.plug = plug;
        }
    }

    /// Takes in the next I/O; returns the one before.
    pub(crate) fn queued(&mut self, mut step: Step, causes: Causes, has_plugs: bool) -> Option<(Step, Causes)> {
        let follows = causes.submission_gap_ns.is_some_and(|gap_ns| gap_ns < PLUG_NS);
        if let Some((last, _)) = self.last.as_mut().filter(|_| !has_plugs && follows) {
            last.plug = Plug::Within;
            step.plug = Plug::Last;
        }
        self.outstanding += 1;
        self.submitted_ns = Some(step.at.0);
        self.last.replace((step, causes))
    }

    pub(crate) fn take(&mut self) -> Option<(Step, Causes)> {
        self.last.take()
    }
}

/// What came before an I/O of a stream (RP6 to RP10, RP16, RP18).
pub(crate) fn causes(stream: &Stream, at: usize, tracks: &[Track], now_ns: u64) -> Causes {
    let own = &tracks[at];
    let mut of = [None; WAITS_MAX];
    for (cause, on) in of.iter_mut().zip(stream.may_wait_for()) {
        let other = &tracks[on];
        if let Some(last_ns) = other.last_completion_ns.filter(|_| other.outstanding == 0) {
            *cause = Some((other.completed, now_ns - last_ns));
        }
    }
    Causes {
        is_fixed: stream.kind == Kind::WriteBack && own.outstanding == 0,
        own: own.completed,
        own_gap_ns: own.last_completion_ns.map(|last_ns| now_ns - last_ns),
        submission_gap_ns: own.submitted_ns.map(|submitted_ns| now_ns - submitted_ns),
        of,
    }
}
