//! Alternatives: other programs that the recording also allows, which are simulated instead of guessing (RP23).
//!
//! Used by: `infer`, `describe`, `replay`; crates `experiment`, `evidence`.
//! Tests: below.

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::stream::{Kind, Stream};

/// Maximum alternatives: one for each stream with the most I/Os, and one for the rest together.
const ALTERNATIVES_MAX: usize = 4;
/// Maximum streams with a hidden depth that are tried alone, in addition to all of them together.
const HIDDEN_ALONE_MAX: usize = 2;
/// Minimum batches for a pool to decide a class (RP13).
const POOL_BATCHES_MIN: u64 = 200;
/// Minimum share of all I/Os that a pair of streams must have to matter (RP19).
const PAIR_SHARE_MIN: f64 = 0.05;

/// One change of the inferred program.
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
    /// The stream keeps more I/Os outstanding than the recorded queue allowed (RP15).
    Deeper {
        /// Index of the stream.
        stream: usize,
        /// Recorded depth.
        seen: u32,
        /// How many more.
        #[serde(default)]
        to: DepthBound,
    },
    /// The stream keeps as many I/Os outstanding as its rate needs on a device with this latency, and waits for them (RP31).
    /// Never one of a program's alternatives, since the device is not known there.
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
        /// Index of the stream that it waits for.
        on: usize,
    },
}

/// A depth above the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DepthBound {
    /// As many as the new queue allows.
    #[default]
    Queue,
    /// The geometric mean of the recorded depth and that.
    Middle,
}

impl DepthBound {
    /// The depth of a stream whose recorded depth is `seen`, with a queue of this depth.
    pub(crate) fn depth(self, seen: u32, queue_depth: u32) -> u32 {
        match self {
            DepthBound::Queue => queue_depth,
            DepthBound::Middle => (f64::from(seen) * f64::from(queue_depth)).sqrt().round() as u32,
        }
    }
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

/// Another program that the recording also allows: the inferred one with all of these changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Alternative {
    /// The changes.
    pub changes: Vec<Change>,
    /// Total I/Os of the changed streams.
    pub ios: u64,
}

/// The alternatives of a program.
pub(crate) fn find(streams: &[Stream], untested: &[(usize, usize)], pools: &[(usize, u64)]) -> Vec<Alternative> {
    let mut changes = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        if stream.class == Class::Undecided && stream.kind != Kind::WriteBack {
            changes.push(Change::Open { stream: index });
        }
        if let Some(seen) = stream.hidden_depth {
            changes.push(Change::Deeper { stream: index, seen, to: DepthBound::Queue });
        }
    }
    let small_pools = pools.iter().filter(|(_, batches)| *batches < POOL_BATCHES_MIN);
    changes.extend(small_pools.map(|&(stream, _)| Change::Closed { stream }));
    let total_ios: u64 = streams.iter().map(|stream| stream.ios).sum();
    let matters = |one: usize, other: usize| {
        let ios = streams[one].ios + streams[other].ios;
        ios as f64 > PAIR_SHARE_MIN * total_ios as f64
    };
    // An open stream waits for no completions, so not for those of others either.
    let may_wait = |stream: usize| streams[stream].class != Class::Open;
    let untested_waits = untested.iter().filter(|(one, other)| matters(*one, *other) && may_wait(*one));
    changes.extend(untested_waits.map(|&(stream, on)| Change::Waits { stream, on }));
    changes.sort_by_key(|change| std::cmp::Reverse(streams[change.stream()].ios));
    let ios = |changes: &[Change]| {
        let mut indexes: Vec<usize> = changes.iter().map(|change| change.stream()).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|stream| streams[stream].ios).sum()
    };
    let is_hidden = |change: &Change| matches!(change, Change::Deeper { .. });
    let (hidden, changes): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(is_hidden);
    let mut change_sets = depth_alternatives(hidden);
    let remaining = ALTERNATIVES_MAX - change_sets.len();
    let alone = if changes.len() <= remaining { changes.len() } else { remaining - 1 };
    change_sets.extend(changes[..alone].iter().map(|change| vec![*change]));
    change_sets.push(changes[alone..].to_vec());
    let change_sets = change_sets.into_iter().filter(|changes| !changes.is_empty());
    change_sets.map(|changes| Alternative { ios: ios(&changes), changes }).collect()
}

/// The alternatives for streams with a hidden depth: the largest alone, and all together.
fn depth_alternatives(hidden: Vec<Change>) -> Vec<Vec<Change>> {
    if hidden.len() < 2 {
        return hidden.into_iter().map(|change| vec![change]).collect();
    }
    // One stream that fills the new queue beside others of their recorded depths is unlikely, so it only gets halfway there.
    let halfway = |change: &Change| match *change {
        Change::Deeper { stream, seen, .. } => vec![Change::Deeper { stream, seen, to: DepthBound::Middle }],
        other => vec![other],
    };
    let mut change_sets: Vec<Vec<Change>> = hidden.iter().take(HIDDEN_ALONE_MAX).map(halfway).collect();
    // The queue was full for all of them at once, so all together fill the new one.
    change_sets.push(hidden);
    change_sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_alone_gets_halfway_to_the_depth_of_the_queue_and_all_together_get_there() {
        let to = |stream, to| Change::Deeper { stream, seen: 4, to };
        let hidden: Vec<Change> = (0..3).map(|stream| to(stream, DepthBound::Queue)).collect();
        let alone = |stream| vec![to(stream, DepthBound::Middle)];
        assert_eq!(depth_alternatives(hidden.clone()), [alone(0), alone(1), hidden.clone()]);
        assert_eq!(depth_alternatives(hidden[..1].to_vec()), [hidden[..1].to_vec()]);
        assert_eq!([DepthBound::Queue, DepthBound::Middle].map(|bound| bound.depth(4, 64)), [64, 16]);
    }
}
