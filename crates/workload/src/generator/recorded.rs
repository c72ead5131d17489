//! The I/Os of a recording.

use std::sync::Arc;

use super::Io;
use crate::replay::Replay;

/// Yields what was recorded, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    replay: Arc<Replay>,
    next: usize,
}

impl Recorded {
    pub(super) fn new(replay: &Arc<Replay>) -> Recorded {
        Recorded { replay: Arc::clone(replay), next: 0 }
    }

    pub(super) fn next(&mut self) -> Option<Io> {
        let record = self.replay.records.get(self.next)?;
        self.next += 1;
        Some(record.io)
    }
}
