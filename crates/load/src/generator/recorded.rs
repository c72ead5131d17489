//! Replay of the I/Os of a recording.

use std::fmt;

use crate::Io;
use crate::replay::{Pause, Record, RecordError, Replay};

/// Yields the recorded I/Os in order.
pub(super) struct Recorded {
    records: Box<dyn Iterator<Item = Result<Record, RecordError>> + Send>,
    /// I/Os that are still expected.
    left: u64,
    /// The sizes of the devices.
    device_bytes: Vec<u64>,
    /// The pause before the last I/O.
    pub(super) pause: Option<Pause>,
    /// Whether the records differed from those of the first reading.
    pub(super) has_failed: bool,
}

impl Recorded {
    pub(super) fn new(replay: &Replay, seed: u64, device_bytes: &dyn Fn(usize) -> u64) -> Recorded {
        let opened = replay.records.open(seed);
        Recorded {
            has_failed: opened.is_err(),
            records: opened.unwrap_or_else(|_| Box::new(std::iter::empty())),
            left: replay.summary.ios,
            device_bytes: (0..replay.summary.ends.len()).map(device_bytes).collect(),
            pause: None,
        }
    }

    pub(super) fn next(&mut self) -> Option<Io> {
        self.left = self.left.checked_sub(1)?;
        match self.records.next() {
            Some(Ok(Record { io, pause })) if self.fits(&io) => {
                self.pause = Some(pause);
                Some(io)
            }
            // The records differ from those that were read when the load was made.
            _ => {
                (self.left, self.has_failed) = (0, true);
                None
            }
        }
    }

    fn fits(&self, io: &Io) -> bool {
        let bytes = self.device_bytes.get(usize::from(io.file)).copied().unwrap_or(0);
        let end = io.offset_bytes.checked_add(u64::from(io.bytes));
        end.is_some_and(|end| end <= bytes) && io.offset_bytes.is_multiple_of(512)
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").field("left", &self.left).finish_non_exhaustive()
    }
}
