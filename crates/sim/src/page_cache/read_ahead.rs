//! Read-ahead: a sequential reader finds the next pages in memory.
//!
//! A read that continues where another ended, or starts a file, is sequential. The first one also reads a window of at least 16 KiB
//! beyond the request. When the reader reaches the window, the next one follows with twice the size, up to `read_ahead_kb`, so the
//! disk is always about one window ahead of the reader. Any other read gets only the requested pages.

use super::pages::{PAGE_BYTES, PageRange};

/// Pages of the smallest window.
const WINDOW_PAGES_MIN: u64 = 16 * 1024 / PAGE_BYTES;
/// Sequential streams that are tracked per process and disk; with more of them, none is detected.
const STREAMS_MAX: usize = 16;

/// The position of a sequential reader.
#[derive(Clone, Copy, Default)]
struct SequentialStream {
    /// The page after the last requested one.
    next: u64,
    /// The newest window; empty if the last read was not sequential.
    window: PageRange,
}

/// Read-ahead state of a process on a disk.
#[derive(Default)]
pub(super) struct ReadAhead {
    streams: Vec<SequentialStream>,
    /// Index of the stream that is replaced next.
    oldest: usize,
}

impl ReadAhead {
    /// Records a read of these pages of a file. Returns the pages to read ahead: at most `pages_max`, none if that is 0.
    pub(super) fn record_read(&mut self, requested: PageRange, file: PageRange, pages_max: u64) -> PageRange {
        // Small reads may end and continue within a page.
        let continues =
            |stream: &SequentialStream| stream.next == requested.first || stream.next == requested.first + 1;
        let index = self.streams.iter().position(continues).unwrap_or_else(|| self.begin());
        let stream = &mut self.streams[index];
        let is_sequential = continues(stream) || requested.first == file.first;
        if !is_sequential || requested.first == file.first {
            stream.window = PageRange::default();
        }
        stream.next = requested.end;
        if !is_sequential {
            return PageRange::default();
        }
        let window = stream.window.pages();
        if window > 0 && requested.end <= stream.window.first {
            return PageRange::default();
        }
        let size = if window == 0 { (2 * requested.pages()).max(WINDOW_PAGES_MIN) } else { 2 * window };
        let first = stream.window.end.max(requested.end);
        stream.window = PageRange { first, end: first + size.min(pages_max) };
        PageRange { first: first.min(file.end), end: stream.window.end.min(file.end) }
    }

    /// Replaces the oldest stream. Returns its index.
    fn begin(&mut self) -> usize {
        let unused = SequentialStream { next: u64::MAX, ..SequentialStream::default() };
        if self.streams.len() < STREAMS_MAX {
            self.streams.push(unused);
            return self.streams.len() - 1;
        }
        let index = self.oldest;
        self.oldest = (index + 1) % STREAMS_MAX;
        self.streams[index] = unused;
        index
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages of 128 KiB.
    const MAX: u64 = 32;
    const FILE: PageRange = PageRange { first: 1000, end: 2000 };

    fn pages(first: u64, end: u64) -> PageRange {
        PageRange { first, end }
    }

    /// The windows that single-page reads trigger, each with the page that was read.
    fn windows(reads: impl Iterator<Item = u64>, read_ahead: &mut ReadAhead) -> Vec<(u64, u64, u64)> {
        let ahead = reads.map(|page| (page, read_ahead.record_read(pages(page, page + 1), FILE, MAX)));
        ahead.filter(|(_, ahead)| ahead.pages() > 0).map(|(page, ahead)| (page, ahead.first, ahead.end)).collect()
    }

    #[test]
    fn the_read_ahead_window_doubles_up_to_128_kib_as_a_reader_enters_it() {
        let seen = windows(1000..1100, &mut ReadAhead::default());
        let expected = [(1000, 1001, 1005), (1001, 1005, 1013), (1005, 1013, 1029), (1013, 1029, 1061)];
        assert_eq!(seen[..4], expected);
        assert_eq!(seen[4..], [(1029, 1061, 1093), (1061, 1093, 1125), (1093, 1125, 1157)]);
    }

    #[test]
    fn a_reader_starting_mid_file_is_sequential_from_its_second_read() {
        let seen = windows([1500, 1501].into_iter(), &mut ReadAhead::default());
        assert_eq!(seen, [(1501, 1502, 1506)]);
    }

    #[test]
    fn random_reads_get_no_read_ahead() {
        let seen = windows([1500, 1300, 1700, 1100, 1900].into_iter(), &mut ReadAhead::default());
        assert_eq!(seen, []);
    }

    #[test]
    fn reading_ahead_ends_with_the_file() {
        let mut read_ahead = ReadAhead::default();
        read_ahead.record_read(pages(1990, 1995), FILE, MAX);
        assert_eq!(read_ahead.record_read(pages(1995, 1998), FILE, MAX), pages(1998, 2000));
        assert_eq!(read_ahead.record_read(pages(1998, 2000), FILE, MAX).pages(), 0);
    }

    #[test]
    fn a_read_ahead_window_never_exceeds_128_kib_for_any_request_size() {
        let mut read_ahead = ReadAhead::default();
        for read in 0..3 {
            let first = 1000 + read * 256;
            let ahead = read_ahead.record_read(pages(first, first + 256), FILE, MAX);
            assert_eq!(ahead, pages(first + 256, first + 256 + 32));
        }
    }

    #[test]
    fn files_that_are_read_in_turn_are_each_read_ahead() {
        let mut read_ahead = ReadAhead::default();
        let turns = (0..8).flat_map(|page| [1100 + page, 1400 + page, 1700 + page]);
        let of_second: Vec<_> = windows(turns, &mut read_ahead).into_iter().filter(|w| w.0 / 100 == 14).collect();
        assert_eq!(of_second, [(1401, 1402, 1406), (1402, 1406, 1414), (1406, 1414, 1430)]);
    }

    proptest! {
        /// For any read, a window ends with the file and does not exceed the limit.
        #[test]
        fn no_window_exceeds_the_limit(
            reads in proptest::collection::vec((0u64..1000, 1u64..100), 1..40), pages_max in 0u64..300,
        ) {
            let mut read_ahead = ReadAhead::default();
            for (offset, length) in reads {
                let first = FILE.first + offset;
                let ahead = read_ahead.record_read(pages(first, (first + length).min(FILE.end)), FILE, pages_max);
                prop_assert!(ahead.pages() <= pages_max && ahead.end <= FILE.end.max(ahead.first), "{:?}", ahead);
            }
        }
    }
}
