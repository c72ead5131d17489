//! Read-ahead: a process that reads a file from one end to the other finds the next pages in memory.
//!
//! A read that continues where another one ended, or begins a file, is sequential. The first one has a window of at least
//! 16 KiB read beyond what was asked for; when the reader comes into it, the next one of twice the size follows, up to
//! `read_ahead_kb`. So there is always about one window between the reader and the disk. Any other read gets what was
//! asked for.

use super::pages::{PAGE_BYTES, PageRange};

/// Pages of the smallest window.
const WINDOW_PAGES_MIN: u64 = 16 * 1024 / PAGE_BYTES;
/// A process that reads more files of a disk in turn than this is not found to be sequential.
const STREAMS_MAX: usize = 16;

/// Where a reader is.
#[derive(Clone, Copy, Default)]
struct SequentialStream {
    /// The page after the last that was asked for.
    next: u64,
    /// The newest window; empty if the last read was not sequential.
    window: PageRange,
}

/// What a process reads of a disk.
#[derive(Default)]
pub(super) struct ReadAhead {
    streams: Vec<SequentialStream>,
    /// The stream that is given up for the next.
    oldest: usize,
}

impl ReadAhead {
    /// The process asks for these pages of its file. Returns what to read beyond them: at most `pages_max`, and nothing if that is 0.
    pub(super) fn asked(&mut self, asked: PageRange, file: PageRange, pages_max: u64) -> PageRange {
        // Small reads may end and go on within a page.
        let goes_on = |stream: &SequentialStream| stream.next == asked.first || stream.next == asked.first + 1;
        let at = self.streams.iter().position(goes_on).unwrap_or_else(|| self.begin());
        let stream = &mut self.streams[at];
        let is_sequential = goes_on(stream) || asked.first == file.first;
        if !is_sequential || asked.first == file.first {
            stream.window = PageRange::default();
        }
        stream.next = asked.end;
        if !is_sequential {
            return PageRange::default();
        }
        let window = stream.window.pages();
        if window > 0 && asked.end <= stream.window.first {
            return PageRange::default();
        }
        let size = if window == 0 { (2 * asked.pages()).max(WINDOW_PAGES_MIN) } else { 2 * window };
        let first = stream.window.end.max(asked.end);
        stream.window = PageRange { first, end: first + size.min(pages_max) };
        PageRange { first: first.min(file.end), end: stream.window.end.min(file.end) }
    }

    /// Takes the place of the oldest stream.
    fn begin(&mut self) -> usize {
        let nowhere = SequentialStream { next: u64::MAX, ..SequentialStream::default() };
        if self.streams.len() < STREAMS_MAX {
            self.streams.push(nowhere);
            return self.streams.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % STREAMS_MAX;
        self.streams[at] = nowhere;
        at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of 128 KiB.
    const MAX: u64 = 32;
    const FILE: PageRange = PageRange { first: 1000, end: 2000 };

    fn pages(first: u64, end: u64) -> PageRange {
        PageRange { first, end }
    }

    /// The windows that reads of one page each lead to, and at which page.
    fn windows(reads: impl Iterator<Item = u64>, read_ahead: &mut ReadAhead) -> Vec<(u64, u64, u64)> {
        let ahead = reads.map(|page| (page, read_ahead.asked(pages(page, page + 1), FILE, MAX)));
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
        read_ahead.asked(pages(1990, 1995), FILE, MAX);
        assert_eq!(read_ahead.asked(pages(1995, 1998), FILE, MAX), pages(1998, 2000));
        assert_eq!(read_ahead.asked(pages(1998, 2000), FILE, MAX).pages(), 0);
    }

    #[test]
    fn a_read_ahead_window_never_exceeds_128_kib_for_any_request_size() {
        let mut read_ahead = ReadAhead::default();
        for read in 0..3 {
            let first = 1000 + read * 256;
            let ahead = read_ahead.asked(pages(first, first + 256), FILE, MAX);
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
        /// Whatever is asked for, a window ends with the file and is no larger than the limit.
        #[test]
        fn no_window_exceeds_the_limit(
            reads in proptest::collection::vec((0u64..1000, 1u64..100), 1..40), pages_max in 0u64..300,
        ) {
            let mut read_ahead = ReadAhead::default();
            for (offset, length) in reads {
                let first = FILE.first + offset;
                let ahead = read_ahead.asked(pages(first, (first + length).min(FILE.end)), FILE, pages_max);
                prop_assert!(ahead.pages() <= pages_max && ahead.end <= FILE.end.max(ahead.first), "{:?}", ahead);
            }
        }
    }
}
