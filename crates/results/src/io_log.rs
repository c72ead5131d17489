//! What fio writes into its log files: every I/O, or means over windows.

use crate::measurement::Direction;

/// Entries of one process at most (640 MiB); what comes after is not logged.
const ENTRIES_MAX: usize = 1 << 24;

/// The I/Os of a process, one by one or by window (`log_avg_msec`).
#[derive(Clone, Debug, PartialEq)]
pub struct IoLog {
    /// Length of a window, ns; 0 for an entry for each I/O.
    window_ns: u64,
    /// Whether submission has a latency of its own: not with synchronous engines.
    has_slat: bool,
    entries: Vec<LogEntry>,
    /// For each direction what was done since its last window ended.
    windows: [Window; 3],
    is_cut: bool,
}

/// An I/O, or a window of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// (Mean) submission latency, ns.
    pub slat_ns: u64,
    /// (Mean) total latency, ns.
    pub lat_ns: u64,
    /// End of the I/O, or of the window: ms since the process began.
    pub at_ms: u32,
    /// Bytes of the I/O; 0 of a window.
    pub bytes: u32,
    /// Bandwidth, KiB/s: of an I/O by itself its size over its latency.
    pub kib_per_second: u32,
    /// I/Os a second; of an I/O by itself 1, as fio has it.
    pub iops: u32,
    /// Read, write or trim.
    pub direction: Direction,
}

/// One finished I/O.
#[derive(Clone, Copy, Debug)]
pub struct LoggedIo {
    /// Read, write or trim.
    pub direction: Direction,
    /// Its size.
    pub bytes: u32,
    /// Its end, ns since the process began.
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
    slat_ns: u64,
    lat_ns: u64,
}

impl IoLog {
    /// An empty log. Windows of 0 ns are single I/Os. `from_ns` is when measuring begins. Without `has_slat` there is no
    /// log of submission latencies.
    pub fn new(window_ns: u64, from_ns: u64, has_slat: bool) -> Self {
        let window = Window { since_ns: from_ns, ..Window::default() };
        Self { window_ns, has_slat, entries: Vec::new(), windows: [window; 3], is_cut: false }
    }

    /// Logs an I/O.
    pub fn record(&mut self, io: &LoggedIo) {
        if self.window_ns == 0 {
            self.push(LogEntry {
                slat_ns: io.slat_ns,
                lat_ns: io.lat_ns,
                at_ms: limited(io.at_ns / 1_000_000),
                bytes: io.bytes,
                kib_per_second: kib_per_second(u64::from(io.bytes), io.lat_ns),
                iops: 1,
                direction: io.direction,
            });
            return;
        }
        let window = &mut self.windows[io.direction as usize];
        window.ios += 1;
        window.bytes += u64::from(io.bytes);
        window.slat_ns += io.slat_ns;
        window.lat_ns = window.lat_ns.saturating_add(io.lat_ns);
        let span_ns = io.at_ns.saturating_sub(window.since_ns);
        if span_ns >= self.window_ns {
            let done = std::mem::replace(window, Window { since_ns: io.at_ns, ..Window::default() });
            self.push(LogEntry {
                slat_ns: done.slat_ns / done.ios,
                lat_ns: done.lat_ns / done.ios,
                at_ms: limited(io.at_ns / 1_000_000),
                bytes: 0,
                kib_per_second: kib_per_second(done.bytes, span_ns),
                iops: limited((u128::from(done.ios) * 1_000_000_000 / u128::from(span_ns)) as u64),
                direction: io.direction,
            });
        }
    }

    fn push(&mut self, entry: LogEntry) {
        if self.entries.len() < ENTRIES_MAX {
            self.entries.push(entry);
        } else {
            self.is_cut = true;
        }
    }

    /// Whether submission has a latency of its own.
    pub fn has_slat(&self) -> bool {
        self.has_slat
    }

    /// The entries, in the order of their ends.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// Whether there were more I/Os than the log holds.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

fn kib_per_second(bytes: u64, ns: u64) -> u32 {
    limited((u128::from(bytes) * 1_000_000_000 / 1024 / u128::from(ns.max(1))).min(u128::from(u64::MAX)) as u64)
}

fn limited(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn io(at_ms: u64, direction: Direction) -> LoggedIo {
        LoggedIo { direction, bytes: 4096, at_ns: at_ms * MS, slat_ns: 1_000, lat_ns: 2 * MS }
    }

    #[test]
    fn without_a_window_each_io_is_an_entry_with_its_own_rate() {
        let mut log = IoLog::new(0, 0, true);
        log.record(&io(3, Direction::Write));
        let [entry] = log.entries() else { panic!() };
        assert_eq!((entry.at_ms, entry.bytes, entry.iops, entry.direction), (3, 4096, 1, Direction::Write));
        assert_eq!(entry.kib_per_second, 2000, "4 KiB in 2 ms");
    }

    #[test]
    fn a_window_ends_with_the_first_io_behind_it_each_direction_for_itself() {
        let mut log = IoLog::new(10 * MS, 0, true);
        (1..=20).for_each(|ms| log.record(&io(ms, Direction::Read)));
        log.record(&io(30, Direction::Write));
        let ends: Vec<_> = log.entries().iter().map(|entry| (entry.at_ms, entry.direction, entry.iops)).collect();
        assert_eq!(ends, [(10, Direction::Read, 1000), (20, Direction::Read, 1000), (30, Direction::Write, 33)]);
        let entry = log.entries()[0];
        assert_eq!((entry.bytes, entry.kib_per_second, entry.slat_ns, entry.lat_ns), (0, 4000, 1_000, 2 * MS));
    }

    #[test]
    fn impossible_times_do_no_harm() {
        let mut log = IoLog::new(1, 5, false);
        for at_ns in [u64::MAX, 0, u64::MAX] {
            log.record(&LoggedIo { direction: Direction::Trim, bytes: 1, at_ns, slat_ns: 0, lat_ns: u64::MAX });
        }
        assert_eq!(log.entries()[0].at_ms, u32::MAX);
    }
}
