//! The states of a server in the last minute.

use std::collections::VecDeque;

use hoistway_serve::{ExportState, StateReport};

/// Length of the history, ns.
const HISTORY_NS: u64 = 60_000_000_000;
/// Number of samples without waiting requests after which the note appears.
const SAMPLES: usize = 5;
/// Bars from nothing to the maximum of the minute.
const BARS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// States of a server, the oldest first; at least one.
pub(super) struct History {
    past: VecDeque<StateReport>,
    now: StateReport,
}

impl History {
    /// Begins with this state.
    pub(super) fn new(now: StateReport) -> History {
        History { past: VecDeque::new(), now }
    }

    /// Adds a state. A state of another server on the same socket starts a new history.
    pub(super) fn push(&mut self, state: StateReport) {
        if state.at_ns < self.now.at_ns {
            *self = History::new(state);
            return;
        }
        self.past.push_back(std::mem::replace(&mut self.now, state));
        while self.past.len() > 1 && self.past[0].at_ns + HISTORY_NS < self.now.at_ns {
            self.past.pop_front();
        }
    }

    /// The last state.
    pub(super) fn now(&self) -> &StateReport {
        &self.now
    }

    /// The one before.
    pub(super) fn before(&self) -> Option<&StateReport> {
        self.past.back()
    }

    /// Bytes a second of an export as at most `width` bars, the newest last.
    pub(super) fn bars(&self, name: &str, width: usize) -> String {
        let bytes = |state: &StateReport| {
            let export = state.exports.iter().find(|export| export.name == name)?;
            Some(export.read_bytes + export.written_bytes)
        };
        let states: Vec<&StateReport> = self.past.iter().chain([&self.now]).collect();
        let rate = |pair: &[&StateReport]| {
            let ns = pair[1].at_ns.saturating_sub(pair[0].at_ns).max(1);
            let moved = bytes(pair[1]).zip(bytes(pair[0])).and_then(|(now, past)| now.checked_sub(past)).unwrap_or(0);
            moved as f64 / ns as f64
        };
        let rates: Vec<f64> = states.windows(2).map(rate).collect();
        let samples_per_bar = rates.len().div_ceil(width.max(1)).max(1);
        // Full groups, aligned to the newest sample.
        let groups: Vec<f64> =
            rates.rchunks(samples_per_bar).rev().map(|group| group.iter().copied().fold(0.0, f64::max)).collect();
        let rate_max = groups.iter().copied().fold(0.0, f64::max);
        let bar = |rate: &f64| BARS[if rate_max > 0.0 { (rate / rate_max * 7.0).ceil() as usize } else { 0 }];
        groups.iter().map(bar).collect()
    }

    /// Whether no request has recently waited for the scheduler, although several exports were used.
    pub(super) fn is_never_queued(&self) -> bool {
        let is_busy = |export: &&ExportState| {
            let past = self.past.front().and_then(|past| past.exports.iter().find(|other| other.name == export.name));
            past.is_some_and(|past| (past.reads, past.writes) != (export.reads, export.writes))
        };
        let recent = self.past.iter().rev().take(SAMPLES - 1).chain([&self.now]);
        self.past.len() + 1 >= SAMPLES
            && self.now.exports.iter().filter(is_busy).count() > 1
            && recent.map(waiting).sum::<u64>() == 0
    }
}

/// Commands at all disks.
pub(super) fn at_target(state: &StateReport) -> u64 {
    state.disks.iter().map(|disk| disk.at_target as u64).sum()
}

/// Requests that wait for the scheduler.
pub(super) fn waiting(state: &StateReport) -> u64 {
    let total = |figure: fn(&ExportState) -> u64| state.exports.iter().map(figure).sum::<u64>();
    total(|export| export.in_flight).saturating_sub(total(|export| export.held_back) + at_target(state))
}
