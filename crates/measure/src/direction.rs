//! Reads, writes and trims.
//!
//! Used by: `io_log`, `operation`, `fio`, `measurement`; crates `answer`, `load`.
//! Tests: `crates/measure/tests/fio_output.rs`.

use serde::{Deserialize, Serialize};

/// Direction of an I/O, in fio's order; the index into [`ProcessResult::directions`](crate::ProcessResult::directions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Reads.
    Read = 0,
    /// Writes.
    Write = 1,
    /// Trims (discards).
    Trim = 2,
}

impl Direction {
    /// All directions, in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// The name fio's output uses: `read`, `write` or `trim`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}
