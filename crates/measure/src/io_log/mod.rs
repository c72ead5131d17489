//! The contents of fio's log files: every I/O, or means over windows.
//!
//! Used by: `fio`, `measurement`; crate `load`.
//! Tests: below, `crates/measure/src/io_log/histogram_log.rs`.

mod histogram_log;

use crate::direction::Direction;

pub use histogram_log::{HistogramLog, HistogramRow};

/// Maximum entries of one process (768 MiB, and 128 MiB of offsets); later ones are not logged.
const ENTRIES_MAX: usize = 1 << 24;

/// The parameters of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogParameters {
    /// Length of a window (`log_avg_msec`), ns; 0 for one entry per I/O.
    pub window_ns: u64,
    /// Start of the measurement, ns since the start of the process.
    pub from_ns: u64,
    /// Whether there are submission latencies: not with synchronous engines.
    pub has_slat: bool,
    /// Whether a window contains the largest latencies (`log_max_value`) instead of their means.
    pub is_maximum: bool,
    /// Whether offsets are logged (`log_offset`).
    pub has_offsets: bool,
    /// Whether the log contains full priorities (`log_prio`).
    pub has_priorities: bool,
    /// Length of the windows of histograms (`log_hist_msec`), ns; 0 for none.
    pub histogram_window_ns: u64,
    /// Number of powers of two by which histogram bins are merged (`log_hist_coarseness`).
    pub histogram_coarseness: u8,
}

/// The I/Os of a process, individually or by window.
#[derive(Clone, Debug, PartialEq)]
pub struct IoLog {
    parameters: LogParameters,
    entries: Vec<LogEntry>,
    /// Offsets of the entries, if kept.
    offsets_bytes: Vec<u64>,
    histograms: Option<HistogramLog>,
    /// For each direction, its I/O since the end of its last window.
    windows: [Window; 3],
    is_cut: bool,
}

/// An I/O, or a window of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// (Mean or largest) submission latency, ns.
    pub slat_ns: u64,
    /// (Mean or largest) completion latency, ns.
    pub clat_ns: u64,
    /// (Mean or largest) total latency, ns.
    pub lat_ns: u64,
    /// End of the I/O, or of the window: ms since the process began.
    pub at_ms: u32,
    /// Bytes of the I/O; 0 for a window.
    pub bytes: u32,
    /// Bandwidth, KiB/s; for a single I/O its size divided by its latency.
    pub kib_per_second: u32,
    /// I/Os per second; 1 for a single I/O, as in fio.
    pub iops: u32,
    /// I/O priority in the kernel's encoding, 0 if none was set; 0 for a window.
    pub ioprio: u16,
    /// Read, write or trim.
    pub direction: Direction,
}

/// One finished I/O.
#[derive(Clone, Copy, Debug)]
pub struct LoggedIo {
    /// Read, write or trim.
    pub direction: Direction,
    /// Size, bytes.
    pub bytes: u32,
    /// Offset on the device, bytes.
    pub offset_bytes: u64,
    /// I/O priority in the kernel's encoding, 0 if none was set.
    pub ioprio: u16,
    /// Completion time, ns since the process began.
    pub at_ns: u64,
    /// Submission latency, ns; 0 with a synchronous engine.
    pub slat_ns: u64,
    /// Total latency, ns.
    pub lat_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Window {
    since_ns: u64,
    ios: u64,
    bytes: u64,
    slat: Sum,
    clat: Sum,
    lat: Sum,
}

/// Latencies of a window, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    all: u64,
    largest: u64,
}

impl Sum {
    fn add(&mut self, ns: u64) {
        self.all = self.all.saturating_add(ns);
        self.largest = self.largest.max(ns);
    }
}

impl IoLog {
    /// An empty log.
    pub fn new(parameters: LogParameters) -> Self {
        let window = Window { since_ns: parameters.from_ns, ..Window::default() };
        let histograms = (parameters.histogram_window_ns > 0).then(|| HistogramLog::new(&parameters));
        Self {
            parameters,
            entries: Vec::new(),
            offsets_bytes: Vec::new(),
            histograms,
            windows: [window; 3],
            is_cut: false,
        }
    }

    /// Logs an I/O.
    pub fn record(&mut self, io: &LoggedIo) {
        let clat_ns = io.lat_ns - io.slat_ns.min(io.lat_ns);
        if let Some(histograms) = &mut self.histograms {
            histograms.record(io, clat_ns);
        }
        if self.parameters.window_ns == 0 {
            if self.parameters.has_offsets && self.entries.len() < ENTRIES_MAX {
                self.offsets_bytes.push(io.offset_bytes);
            }
            self.push(LogEntry {
                slat_ns: io.slat_ns,
                clat_ns,
                lat_ns: io.lat_ns,
                at_ms: saturating_u32(io.at_ns / 1_000_000),
                bytes: io.bytes,
                kib_per_second: kib_per_second(u64::from(io.bytes), io.lat_ns),
                iops: 1,
                ioprio: io.ioprio,
                direction: io.direction,
            });
            return;
        }
        let window = &mut self.windows[io.direction as usize];
        window.ios += 1;
        window.bytes += u64::from(io.bytes);
        window.slat.add(io.slat_ns);
        window.clat.add(clat_ns);
        window.lat.add(io.lat_ns);
        if io.at_ns.saturating_sub(window.since_ns) >= self.parameters.window_ns {
            self.end_window(io.direction, io.at_ns);
        }
    }

    /// Ends the log with the process: its windows end, too, as in fio, except those of histograms.
    pub fn finish(&mut self, at_ns: u64) {
        for direction in Direction::ALL {
            if self.windows[direction as usize].ios > 0 {
                self.end_window(direction, at_ns);
            }
        }
    }

    fn end_window(&mut self, direction: Direction, at_ns: u64) {
        let window = &mut self.windows[direction as usize];
        let ended_window = std::mem::replace(window, Window { since_ns: at_ns, ..Window::default() });
        let span_ns = at_ns.saturating_sub(ended_window.since_ns).max(1);
        let is_maximum = self.parameters.is_maximum;
        let value_of = |sum: Sum| if is_maximum { sum.largest } else { sum.all / ended_window.ios };
        self.push(LogEntry {
            slat_ns: value_of(ended_window.slat),
            clat_ns: value_of(ended_window.clat),
            lat_ns: value_of(ended_window.lat),
            at_ms: saturating_u32(at_ns / 1_000_000),
            bytes: 0,
            kib_per_second: kib_per_second(ended_window.bytes, span_ns),
            iops: saturating_u32((u128::from(ended_window.ios) * 1_000_000_000 / u128::from(span_ns)) as u64),
            ioprio: 0,
            direction,
        });
    }

    fn push(&mut self, entry: LogEntry) {
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(entry);
        } else {
            self.is_cut = true;
        }
    }

    /// The parameters of the log.
    pub fn parameters(&self) -> &LogParameters {
        &self.parameters
    }

    /// The offset of an entry, bytes: 0 for a window. `None` if offsets are not logged.
    pub fn offset_bytes(&self, entry: usize) -> Option<u64> {
        self.parameters.has_offsets.then(|| self.offsets_bytes.get(entry).copied().unwrap_or(0))
    }

    /// The histograms, if enabled.
    pub fn histograms(&self) -> Option<&HistogramLog> {
        self.histograms.as_ref()
    }

    /// The entries, ordered by their ends.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// Whether there were more I/Os than the log can hold.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

fn kib_per_second(bytes: u64, ns: u64) -> u32 {
    saturating_u32((u128::from(bytes) * 1_000_000_000 / 1024 / u128::from(ns.max(1))).min(u128::from(u64::MAX)) as u64)
}

fn saturating_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn io(at_ms: u64, direction: Direction) -> LoggedIo {
        LoggedIo {
            direction,
            bytes: 4096,
            offset_bytes: at_ms * 4096,
            ioprio: 0x2003,
            at_ns: at_ms * MS,
            slat_ns: 1_000,
            lat_ns: 2 * MS,
        }
    }

    #[test]
    fn there_are_histograms_if_they_have_a_window() {
        let has = |histogram_window_ns| {
            let log = IoLog::new(LogParameters { histogram_window_ns, ..LogParameters::default() });
            log.histograms().is_some()
        };
        assert_eq!([has(0), has(1)], [false, true]);
    }

    #[test]
    fn without_a_window_each_io_is_an_entry_with_its_own_rate() {
        let mut log = IoLog::new(LogParameters::default());
        log.record(&io(3, Direction::Write));
        let [entry] = log.entries() else { panic!() };
        assert_eq!((entry.at_ms, entry.bytes, entry.iops, entry.direction), (3, 4096, 1, Direction::Write));
        assert_eq!(entry.kib_per_second, 2000, "4 KiB in 2 ms");
    }

    #[test]
    fn a_window_ends_with_the_first_io_behind_it_each_direction_for_itself() {
        let mut log = IoLog::new(LogParameters { window_ns: 10 * MS, ..LogParameters::default() });
        (1..=20).for_each(|ms| log.record(&io(ms, Direction::Read)));
        log.record(&io(30, Direction::Write));
        let ends: Vec<_> = log.entries().iter().map(|entry| (entry.at_ms, entry.direction, entry.iops)).collect();
        assert_eq!(ends, [(10, Direction::Read, 1000), (20, Direction::Read, 1000), (30, Direction::Write, 33)]);
        let entry = log.entries()[0];
        assert_eq!((entry.bytes, entry.kib_per_second, entry.slat_ns, entry.lat_ns), (0, 4000, 1_000, 2 * MS));
    }

    #[test]
    fn a_window_may_have_the_largest_latencies_and_the_last_one_ends_with_the_process() {
        let of = |is_maximum| {
            let mut log = IoLog::new(LogParameters { window_ns: 10 * MS, is_maximum, ..LogParameters::default() });
            log.record(&LoggedIo { lat_ns: 8 * MS, ..io(1, Direction::Read) });
            log.record(&io(2, Direction::Read));
            log.finish(4 * MS);
            log.entries().iter().map(|entry| (entry.at_ms, entry.lat_ns, entry.iops)).collect::<Vec<_>>()
        };
        assert_eq!(of(true), [(4, 8 * MS, 500)]);
        assert_eq!(of(false), [(4, 5 * MS, 500)]);
    }

    #[test]
    fn offsets_are_kept_if_they_are_wanted() {
        for (has_offsets, expected) in [(true, Some(7 * 4096)), (false, None)] {
            let mut log = IoLog::new(LogParameters { has_offsets, ..LogParameters::default() });
            log.record(&io(7, Direction::Read));
            assert_eq!(log.offset_bytes(0), expected);
        }
    }

    #[test]
    fn impossible_times_do_no_harm() {
        let mut log = IoLog::new(LogParameters { window_ns: 1, from_ns: 5, ..LogParameters::default() });
        for at_ns in [u64::MAX, 0, u64::MAX] {
            log.record(&LoggedIo { at_ns, lat_ns: u64::MAX, ..io(0, Direction::Trim) });
        }
        assert_eq!(log.entries()[0].at_ms, u32::MAX);
    }
}
