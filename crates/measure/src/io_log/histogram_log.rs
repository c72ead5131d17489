//! Histograms of completion latencies over windows of time: fio's `log_hist_msec`.

use super::{LogParameters, LoggedIo};
use crate::direction::Direction;
use crate::histogram::{FIO_BIN_COUNT, LatencyHistogram};

/// The histograms of a process. As in fio, the window in progress at the end of the process is lost.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramLog {
    window_ns: u64,
    coarseness: u8,
    windows: [Window; 3],
    rows: Vec<HistogramRow>,
}

/// The histogram of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// End of the window: ms since the process began.
    pub at_ms: u64,
    /// Read, write or trim.
    pub direction: Direction,
    /// Size of the last I/O in the window, bytes.
    pub bytes: u32,
    /// The non-empty bins: number and count.
    counts: Vec<(u16, u64)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Window {
    since_ns: u64,
    latencies: LatencyHistogram,
}

impl HistogramLog {
    pub(crate) fn new(parameters: &LogParameters) -> Self {
        let window = || Window { since_ns: parameters.from_ns, latencies: LatencyHistogram::new() };
        Self {
            window_ns: parameters.histogram_window_ns,
            coarseness: parameters.histogram_coarseness,
            windows: [window(), window(), window()],
            rows: Vec::new(),
        }
    }

    pub(crate) fn record(&mut self, io: &LoggedIo, clat_ns: u64) {
        let window = &mut self.windows[io.direction as usize];
        window.latencies.record(clat_ns);
        if io.at_ns.saturating_sub(window.since_ns) < self.window_ns {
            return;
        }
        let mut counts: Vec<(u16, u64)> = Vec::new();
        for (bin, count) in window.latencies.fio_counts() {
            let bin = bin >> self.coarseness;
            match counts.last_mut() {
                Some((last, sum)) if *last == bin => *sum += count,
                _ => counts.push((bin, count)),
            }
        }
        let (at_ms, direction) = (io.at_ns / 1_000_000, io.direction);
        self.rows.push(HistogramRow { at_ms, direction, bytes: io.bytes, counts });
        window.latencies.reset();
        window.since_ns = io.at_ns;
    }

    /// The histograms, ordered by their ends.
    pub fn rows(&self) -> &[HistogramRow] {
        &self.rows
    }

    /// Bins of each histogram.
    pub fn bin_count(&self) -> usize {
        FIO_BIN_COUNT >> self.coarseness
    }

    /// All counts of a row, including those of empty bins.
    pub fn counts<'a>(&self, row: &'a HistogramRow) -> impl Iterator<Item = u64> + use<'a> {
        let mut non_empty = row.counts.iter().copied().peekable();
        (0..self.bin_count() as u16)
            .map(move |bin| non_empty.next_if(|(non_empty, _)| *non_empty == bin).map_or(0, |(_, count)| count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn log(coarseness: u8) -> HistogramLog {
        let parameters = LogParameters {
            histogram_window_ns: 10 * MS,
            histogram_coarseness: coarseness,
            ..LogParameters::default()
        };
        let mut log = HistogramLog::new(&parameters);
        for at_ms in 1..=25 {
            let io = LoggedIo {
                direction: Direction::Write,
                bytes: 4096,
                offset_bytes: 0,
                ioprio: 0,
                at_ns: at_ms * MS,
                slat_ns: 0,
                lat_ns: 0,
            };
            log.record(&io, at_ms % 3);
        }
        log
    }

    #[test]
    fn a_row_has_the_counts_of_its_window_and_an_unfinished_one_has_none() {
        let log = log(0);
        let ends: Vec<_> = log.rows().iter().map(|row| (row.at_ms, row.direction, row.bytes)).collect();
        assert_eq!(ends, [(10, Direction::Write, 4096), (20, Direction::Write, 4096)]);
        let counts: Vec<u64> = log.counts(&log.rows()[0]).collect();
        assert_eq!((counts.len(), &counts[..4]), (1856, &[3, 4, 3, 0][..]));
        assert_eq!(log.counts(&log.rows()[1]).sum::<u64>(), 10);
    }

    #[test]
    fn coarser_bins_hold_the_same() {
        for (coarseness, bins, first) in [(1, 928, [7, 3]), (6, 29, [10, 0])] {
            let log = log(coarseness);
            let counts: Vec<u64> = log.counts(&log.rows()[0]).collect();
            assert_eq!((counts.len(), &counts[..2]), (bins, &first[..]));
        }
    }
}
