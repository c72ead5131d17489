//! Classifies streams as open or closed: whether their I/Os wait for completions.
//!
//! Used by: `stream`, `activity`, `infer`, `alternatives`, `describe`; crate `experiment`.
//! Tests: `crates/program/tests/program/worked_example.rs`.

use serde::{Deserialize, Serialize};

/// How the I/Os of a stream arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// They wait for completions (RP12).
    Closed,
    /// They arrive independently of completions (RP13).
    Open,
    /// The recording does not decide (RP14): treated as closed, and an alternative tries open.
    Undecided,
}

/// The figures that decide the class.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Batches of I/Os.
    pub batches: u64,
    /// Share of the active time in which I/Os are outstanding.
    pub busy: f64,
    /// Share of batches that begin while I/Os are outstanding.
    pub over: f64,
    /// Rate of batches soon after the stream's own completions, relative to their mean rate.
    pub heels: f64,
    /// Time that its task was blocked during submission, relative to the total latency of its I/Os.
    pub blocked: f64,
    /// Maximum outstanding I/Os.
    pub depth_max: u32,
    /// Whether the recording has completions of the stream.
    pub has_completions: bool,
}

impl Evidence {
    /// Applies rules RP12 to RP14 in order; RP30 without completions.
    #[must_use]
    pub fn class(&self) -> Class {
        let Evidence { over, busy, heels, .. } = *self;
        if !self.has_completions {
            return Class::Open;
        }
        let batches = self.batches as f64;
        let is_no_chance = over <= 0.01 && (1.0 - busy).powf(batches) < 0.01;
        if is_no_chance || heels >= 3.0 {
            return Class::Closed;
        }
        let spread = 0.02 + 3.0 * (busy * (1.0 - busy) / batches).sqrt();
        if over > 0.01 && busy < 0.98 && heels < 2.0 && (over - busy).abs() <= spread {
            return Class::Open;
        }
        if self.blocked > 0.05 { Class::Closed } else { Class::Undecided }
    }

    /// The recorded depth, if the recorded queue limited it (RP15); else `None`.
    #[must_use]
    pub fn hidden_depth(&self) -> Option<u32> {
        (self.blocked > 0.05 && self.depth_max > 1).then_some(self.depth_max)
    }
}
