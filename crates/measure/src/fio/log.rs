//! fio's log files (3.33): `NAME_bw.1.log` and the like.
//!
//! One line per entry: `time in ms, value, direction, block size, priority`; with `log_offset`, an offset precedes the
//! priority. Block size and offset of a window are 0. The priority is 1 for the real-time class and 0 otherwise; with
//! `log_prio` it is the full priority. Histograms: `time in ms, direction, block size, bins`.

use std::io::{self, Write};

use crate::io_log::HistogramLog;
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
    /// All kinds of logs.
    pub const ALL: [Self; 5] = [Self::Bandwidth, Self::Iops, Self::Slat, Self::Clat, Self::Lat];

    /// The kind's part of the file name: `bw` in `PREFIX_bw.1.log`.
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
            Self::Clat => entry.clat_ns,
            Self::Lat => entry.lat_ns,
        }
    }

    /// Writes the log. With a synchronous engine the log of submission latencies is empty, as in fio.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write(self, log: &IoLog, out: &mut dyn Write) -> io::Result<()> {
        let parameters = log.parameters();
        if self == Self::Slat && !parameters.has_slat {
            return Ok(());
        }
        for (number, entry) in log.entries().iter().enumerate() {
            let LogEntry { at_ms, bytes, direction, ioprio, .. } = entry;
            write!(out, "{at_ms}, {}, {}, {bytes}, ", self.value(entry), *direction as u32)?;
            if let Some(offset_bytes) = log.offset_bytes(number) {
                write!(out, "{offset_bytes}, ")?;
            }
            if parameters.has_priorities {
                writeln!(out, "{ioprio:#06x}")?;
            } else {
                writeln!(out, "{}", u8::from(ioprio >> CLASS_SHIFT == REAL_TIME))?;
            }
        }
        Ok(())
    }
}

/// Position of the class in the kernel's encoding of an I/O priority, and the class that fio marks with 1.
const CLASS_SHIFT: u32 = 13;
const REAL_TIME: u16 = 1;

/// Writes histograms: `PREFIX_clat_hist.1.log`.
///
/// # Errors
/// If `out` fails.
pub fn write_histograms(log: &HistogramLog, out: &mut dyn Write) -> io::Result<()> {
    for row in log.rows() {
        write!(out, "{}, {}, {}", row.at_ms, row.direction as u32, row.bytes)?;
        for count in log.counts(row) {
            write!(out, ", {count}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
