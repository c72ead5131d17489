//! Operations of jobs: reads, writes, trims and syncs, each with its own rows in a comparison.
//!
//! Used by: crates `answer`, `render`, `experiment`, `evidence`.
//! Tests: `crates/answer/tests/parts.rs`, `crates/answer/tests/document.rs`.

use serde::{Deserialize, Serialize};

use crate::direction::Direction;

/// An operation with a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims (discards).
    Trim,
    /// `fsync`, `fdatasync` and the like, which transfer no data of their own.
    Sync,
}

impl Operation {
    /// All operations, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Sync];

    /// The operation's name: `read`, `write`, `trim` or `sync`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
        }
    }
}

impl From<Direction> for Operation {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::Read,
            Direction::Write => Self::Write,
            Direction::Trim => Self::Trim,
        }
    }
}
