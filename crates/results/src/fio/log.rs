//! fio's log files (3.33): `NAME_bw.1.log` and the like.
//!
//! One line for each entry, `time in ms, value, direction, block size, priority`. The block size of a window is 0; the
//! priority is 1 for the real-time class, which no log of ours tells apart yet: 0.

use std::io::{self, Write};

use crate::io_log::{IoLog, LogEntry};

/// A kind of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Bandwidth, KiB/s.
    Bandwidth,
    /// I/Os a second.
    Iops,
    /// Submission latency, ns.
    Slat,
    /// Completion latency, ns.
    Clat,
    /// Total latency, ns.
    Lat,
}

impl LogKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bandwidth, Self::Iops, Self::Slat, Self::Clat, Self::Lat];

    /// What stands in the name of its file: `PREFIX_bw.1.log`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Slat => "slat",
            Self::Clat => "clat",
            Self::Lat => "lat",
        }
    }

    fn value(self, entry: &LogEntry) -> u64 {
        match self {
            Self::Bandwidth => u64::from(entry.kib_per_second),
            Self::Iops => u64::from(entry.iops),
            Self::Slat => entry.slat_ns,
            Self::Clat => entry.lat_ns - entry.slat_ns.min(entry.lat_ns),
            Self::Lat => entry.lat_ns,
        }
    }

    /// Writes the log. That of submission latencies is empty with a synchronous engine, as fio's is.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write(self, log: &IoLog, out: &mut dyn Write) -> io::Result<()> {
        if self == Self::Slat && !log.has_slat() {
            return Ok(());
        }
        for entry in log.entries() {
            let LogEntry { at_ms, bytes, direction, .. } = entry;
            writeln!(out, "{at_ms}, {}, {}, {bytes}, 0", self.value(entry), *direction as u32)?;
        }
        Ok(())
    }
}
