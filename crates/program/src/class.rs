//! Open or closed: what the recording shows of how a stream's I/Os arrive.

use serde::{Deserialize, Serialize};

/// How the I/Os of a stream arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// They wait for completions (RP12).
    Closed,
    /// They come from outside, whatever completes (RP13).
    Open,
    /// The recording does not decide (RP14): closed unless the other is tried.
    Undecided,
}

/// The figures that decide.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Batches of I/Os.
    pub batches: u64,
    /// Share of the active time in which something is outstanding.
    pub busy: f64,
    /// Share of batches that begin in that time.
    pub over: f64,
    /// Rate of batches soon after own completions over their mean rate.
    pub heels: f64,
    /// Time in which its task was blocked, over the time that its I/Os took.
    pub blocked: f64,
    /// I/Os outstanding at most.
    pub depth_max: u32,
    /// Whether it has completions at all.
    pub has_completions: bool,
}

impl Evidence {
    /// The rules RP12 to RP14, in their order; RP30 without completions.
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

    /// The depth that was seen, if the stream wanted more than the old queue let it have (RP15).
    #[must_use]
    pub fn hidden_depth(&self) -> Option<u32> {
        (self.blocked > 0.05 && self.depth_max > 1).then_some(self.depth_max)
    }
}
