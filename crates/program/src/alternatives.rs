//! What the recording does not decide, to be run instead of guessed (RP23).

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::stream::{Kind, Stream};

/// Alternatives at most: the streams with most I/Os each by itself, the rest together.
const ALTERNATIVES_MAX: usize = 4;
/// Streams whose depth is hidden that are tried alone, beside all of them together.
const HIDDEN_ALONE_MAX: usize = 2;
/// A pool with fewer batches than this does not decide (RP13).
const POOL_BATCHES_MIN: u64 = 200;
/// Share of the I/Os that a pair has which matters (RP19).
const PAIR_SHARE_MIN: f64 = 0.05;

/// One thing that may be otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The stream's I/Os come at their recorded times (RP14).
    Open {
        /// Index of the stream.
        stream: usize,
    },
    /// The stream's I/Os wait for completions (RP13, pools).
    Closed {
        /// Index of the stream.
        stream: usize,
    },
    /// The stream keeps as many outstanding as the new queue lets it (RP15).
    Deeper {
        /// Index of the stream.
        stream: usize,
        /// Depth that was seen.
        seen: u32,
    },
    /// The stream keeps as many outstanding as its rate takes on a device with this latency, and waits for them (RP31). Not among
    /// those of a program, as the device is not known there.
    Kept {
        /// Index of the stream.
        stream: usize,
        /// Mean latency of its I/Os, in nanoseconds.
        latency_ns: u64,
    },
    /// One stream waits for another (RP19).
    Waits {
        /// Index of the stream that waits.
        stream: usize,
        /// Index of the one that it waits for.
        on: usize,
    },
}

impl Change {
    /// The stream that changes.
    #[must_use]
    pub const fn stream(self) -> usize {
        match self {
            Change::Open { stream }
            | Change::Closed { stream }
            | Change::Deeper { stream, .. }
            | Change::Kept { stream, .. }
            | Change::Waits { stream, .. } => stream,
        }
    }
}

/// A program that the recording allows as well: these changes, all at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Alternative {
    /// What is otherwise.
    pub changes: Vec<Change>,
    /// I/Os of the streams that change.
    pub ios: u64,
}

/// The alternatives of a program.
pub(crate) fn of(streams: &[Stream], untested: &[(usize, usize)], pools: &[(usize, u64)]) -> Vec<Alternative> {
    let mut changes = Vec::new();
    for (stream, its) in streams.iter().enumerate() {
        if its.class == Class::Undecided && its.kind != Kind::WriteBack {
            changes.push(Change::Open { stream });
        }
        if let Some(seen) = its.hidden_depth {
            changes.push(Change::Deeper { stream, seen });
        }
    }
    let small = pools.iter().filter(|(_, batches)| *batches < POOL_BATCHES_MIN);
    changes.extend(small.map(|&(stream, _)| Change::Closed { stream }));
    let all: u64 = streams.iter().map(|stream| stream.ios).sum();
    let matters = |one: usize, other: usize| {
        let ios = streams[one].ios + streams[other].ios;
        ios as f64 > PAIR_SHARE_MIN * all as f64
    };
    // Waiting can only be supposed of a stream that waits for completions at all.
    let may_wait = |stream: usize| streams[stream].class != Class::Open;
    let of_pairs = untested.iter().filter(|(one, other)| matters(*one, *other) && may_wait(*one));
    changes.extend(of_pairs.map(|&(stream, on)| Change::Waits { stream, on }));
    changes.sort_by_key(|change| std::cmp::Reverse(streams[change.stream()].ios));
    let ios = |changes: &[Change]| {
        let mut its: Vec<usize> = changes.iter().map(|change| change.stream()).collect();
        its.sort_unstable();
        its.dedup();
        its.into_iter().map(|stream| streams[stream].ios).sum()
    };
    // The queue was full for all of them at once: together they are a reading of their own.
    let is_hidden = |change: &Change| matches!(change, Change::Deeper { .. });
    let (mut hidden, changes): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(is_hidden);
    let mut all: Vec<Vec<Change>> = hidden.iter().take(HIDDEN_ALONE_MAX).map(|change| vec![*change]).collect();
    if hidden.len() > 1 {
        all.push(std::mem::take(&mut hidden));
    }
    let left = ALTERNATIVES_MAX - all.len();
    let alone = if changes.len() <= left { changes.len() } else { left - 1 };
    all.extend(changes[..alone].iter().map(|change| vec![*change]));
    all.push(changes[alone..].to_vec());
    let all = all.into_iter().filter(|changes| !changes.is_empty());
    all.map(|changes| Alternative { ios: ios(&changes), changes }).collect()
}
