//! A map of a file's data and holes, built with limited effort.
//!
//! `SEEK_HOLE` is unbounded: on a dense file it searches to the end of the file, for milliseconds, on a worker's thread. So data that
//! a search has found is remembered, and searches for reads get only a small share of the time: once it is used up, unknown ranges
//! count as data. That is always correct, since a hole reads as zeroes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hoistway_blk::ground::SECTOR_BYTES;
use rustix::fs::{SeekFrom, seek};

use crate::backend::Extent;

/// After a search for a read, no other one starts for this many times its duration.
const SEARCH_PAUSE_FACTOR: u32 = 100;
/// After a shorter search the next one may start at once.
const FREE_SEARCH: Duration = Duration::from_millis(1);
/// Maximum remembered ranges of data.
const RANGES_MAX: usize = 1024;
/// Unit of the allocated space reported by `stat`.
const ALLOCATION_BYTES: u64 = 512;

/// What is known about the holes of a file. All positions are in bytes.
#[derive(Debug, Default)]
pub struct DataMap(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Ranges without holes, as start and end; disjoint and not adjacent.
    data: BTreeMap<u64, u64>,
    /// When the next search may start.
    search_at: Option<Instant>,
}

impl Known {
    /// The end of the known data at `at`, if it is known to be data.
    fn data_end(&self, at: u64) -> Option<u64> {
        self.data.range(..=at).next_back().map(|(_, &end)| end).filter(|&end| end > at)
    }

    /// The start of the next known data after `at`.
    fn next_data(&self, at: u64) -> u64 {
        self.data.range(at..).next().map_or(u64::MAX, |(&start, _)| start)
    }

    fn add(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) =
            self.data.range(..=range.end).next_back().filter(|&(_, &end)| end >= range.start)
        {
            range = range.start.min(start)..range.end.max(end);
            self.data.remove(&start);
        }
        if self.data.len() >= RANGES_MAX {
            self.data.clear();
        }
        self.data.insert(range.start, range.end);
    }

    fn remove(&mut self, range: Range<u64>) {
        while let Some((&start, &end)) = self.data.range(..range.end).next_back().filter(|&(_, &end)| end > range.start)
        {
            self.data.remove(&start);
            if end > range.end {
                self.data.insert(range.end, end);
            }
            if start < range.start {
                self.data.insert(start, range.start);
            }
        }
    }
}

/// Finds data and holes in a file.
trait Search {
    /// Whether the file is fully allocated, and its length.
    fn is_dense(&self) -> io::Result<(bool, u64)>;
    /// The next data from `at`, as `SEEK_DATA`.
    fn data(&self, at: u64) -> rustix::io::Result<u64>;
    /// The next hole from `at`, as `SEEK_HOLE`.
    fn hole(&self, at: u64) -> rustix::io::Result<u64>;
}

impl Search for File {
    fn is_dense(&self) -> io::Result<(bool, u64)> {
        let metadata = self.metadata()?;
        let allocated = metadata.blocks() * ALLOCATION_BYTES;
        Ok((metadata.is_file() && allocated >= metadata.len(), metadata.len()))
    }

    fn data(&self, at: u64) -> rustix::io::Result<u64> {
        seek(self, SeekFrom::Data(at))
    }

    fn hole(&self, at: u64) -> rustix::io::Result<u64> {
        seek(self, SeekFrom::Hole(at))
    }
}

impl DataMap {
    /// Data and holes of a range of whole sectors: the first `extents_max` parts, at least one.
    ///
    /// The range after the end of a file that has become shorter is not a hole: it would be taken for zeroes, while reads of it
    /// fail.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn extents(&self, file: &File, bytes: Range<u64>, extents_max: usize) -> io::Result<Vec<Extent>> {
        self.search(file, bytes, extents_max, false)
    }

    /// All data and holes of a range that is about to be read. If finding holes takes too long, the rest counts as data.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn extents_of_read(&self, file: &File, bytes: Range<u64>) -> io::Result<Vec<Extent>> {
        self.search(file, bytes, usize::MAX, true)
    }

    /// Forgets data that may become a hole.
    pub fn forget(&self, range: Range<u64>) {
        self.lock().remove(range);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn search(
        &self,
        file: &impl Search,
        bytes: Range<u64>,
        extents_max: usize,
        may_guess: bool,
    ) -> io::Result<Vec<Extent>> {
        let Range { start: mut offset, end } = bytes;
        let mut known = self.lock();
        let mut extents: Vec<Extent> = Vec::new();
        let push = |extents: &mut Vec<Extent>, extent_start: u64, extent_end: u64, is_hole| {
            let bytes = extent_end - extent_start;
            match extents.last_mut() {
                Some(last) if last.is_hole == is_hole => last.bytes += bytes,
                _ if bytes > 0 => extents.push(Extent { bytes, is_hole }),
                _ => {}
            }
        };
        while offset < end && (extents.is_empty() || extents.len() < extents_max) {
            if let Some(data_end) = known.data_end(offset) {
                let extent_end = data_end.min(end);
                push(&mut extents, offset, extent_end, false);
                offset = extent_end;
                continue;
            }
            let now = Instant::now();
            if may_guess && known.search_at.is_some_and(|search_at| now < search_at) {
                let extent_end = known.next_data(offset).min(end);
                push(&mut extents, offset, extent_end, false);
                offset = extent_end;
                continue;
            }
            let (is_dense, length) = file.is_dense()?;
            if is_dense {
                known.add(0..length.max(end));
                continue;
            }
            // Data that begins or ends within a sector counts as the whole sector.
            let data = match file.data(offset) {
                Ok(data) => (data / SECTOR_BYTES * SECTOR_BYTES).min(end),
                // A hole up to the end of the file, which may have changed.
                Err(rustix::io::Errno::NXIO) => length.next_multiple_of(SECTOR_BYTES).clamp(offset, end),
                // A file system without support for holes.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => offset,
                Err(errno) => return Err(errno.into()),
            };
            push(&mut extents, offset, data, true);
            offset = data;
            if data < end {
                let hole = file.hole(data).unwrap_or(end).next_multiple_of(SECTOR_BYTES);
                // After the end of the file everything counts as data.
                known.add(data..if hole > data { hole } else { end });
            }
            let elapsed = now.elapsed();
            if elapsed > FREE_SEARCH {
                known.search_at = Some(now + elapsed * (SEARCH_PAUSE_FACTOR + 1));
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;

    use super::*;

    /// A file of these sectors, in which each search takes some time.
    struct Sectors {
        is_data: Vec<bool>,
        takes: Duration,
        searches: Cell<u32>,
    }

    impl Sectors {
        fn of(text: &str) -> Sectors {
            Sectors {
                is_data: text.chars().map(|it| it == 'd').collect(),
                takes: Duration::ZERO,
                searches: Cell::new(0),
            }
        }

        fn next(&self, at: u64, is_data: bool) -> Option<u64> {
            thread::sleep(self.takes);
            self.searches.set(self.searches.get() + 1);
            let from = (at / SECTOR_BYTES) as usize;
            let found = self.is_data.iter().skip(from).position(|&it| it == is_data)?;
            Some((from + found) as u64 * SECTOR_BYTES)
        }
    }

    impl Search for Sectors {
        fn is_dense(&self) -> io::Result<(bool, u64)> {
            Ok((self.is_data.iter().all(|&it| it), self.is_data.len() as u64 * SECTOR_BYTES))
        }

        fn data(&self, at: u64) -> rustix::io::Result<u64> {
            self.next(at, true).ok_or(rustix::io::Errno::NXIO)
        }

        fn hole(&self, at: u64) -> rustix::io::Result<u64> {
            Ok(self.next(at, false).unwrap_or(self.is_data.len() as u64 * SECTOR_BYTES))
        }
    }

    fn bytes(sectors: Range<u64>) -> Range<u64> {
        sectors.start * SECTOR_BYTES..sectors.end * SECTOR_BYTES
    }

    /// The result as one letter per sector.
    fn found(map: &DataMap, file: &Sectors, sectors: Range<u64>) -> String {
        let extents = map.search(file, bytes(sectors), usize::MAX, true).unwrap();
        extents.iter().map(|it| if it.is_hole { "-" } else { "d" }.repeat((it.bytes / SECTOR_BYTES) as usize)).collect()
    }

    #[test]
    fn data_that_was_found_is_not_searched_again() {
        let file = Sectors::of("dddddddd--dd-dd");
        let map = DataMap::default();
        assert_eq!(found(&map, &file, 1..3), "dd");
        let searches = file.searches.get();
        for at in 1..7 {
            assert_eq!(found(&map, &file, at..at + 1), "d");
        }
        assert_eq!(file.searches.get(), searches);
        assert_eq!(found(&map, &file, 0..15), "dddddddd--dd-dd");
        assert_eq!(found(&map, &file, 0..15), "dddddddd--dd-dd");
    }

    #[test]
    fn a_dense_file_is_never_searched() {
        let file = Sectors::of("dddddddd");
        let map = DataMap::default();
        assert_eq!(found(&map, &file, 0..8), "dddddddd");
        assert_eq!(file.searches.get(), 0);
    }

    #[test]
    fn a_range_that_may_have_become_a_hole_is_searched_again() {
        let mut file = Sectors::of("dddddd-d");
        let map = DataMap::default();
        assert_eq!(found(&map, &file, 0..8), "dddddd-d");
        file.is_data[2] = false;
        map.forget(bytes(2..4));
        assert_eq!(found(&map, &file, 0..8), "dd-ddd-d");
    }

    #[test]
    fn a_slow_search_is_not_repeated_soon_and_unknown_ranges_count_as_data() {
        let file = Sectors { takes: Duration::from_millis(20), ..Sectors::of("--dd--dd") };
        let map = DataMap::default();
        assert_eq!(found(&map, &file, 0..4), "--dd");
        let searches = file.searches.get();
        for _ in 0..5 {
            assert_eq!(found(&map, &file, 0..8), "dddddddd");
        }
        assert_eq!(file.searches.get(), searches, "four seconds have not passed");
        let exact = map.search(&file, bytes(0..8), usize::MAX, false).unwrap();
        assert_eq!(exact.iter().filter(|it| it.is_hole).count(), 2, "block status is exact");
    }

    #[test]
    fn known_ranges_are_merged_split_and_bounded() {
        let mut known = Known::default();
        known.add(0..10);
        known.add(20..30);
        known.add(10..20);
        assert_eq!(known.data, BTreeMap::from([(0, 30)]));
        known.remove(5..25);
        assert_eq!(known.data, BTreeMap::from([(0, 5), (25, 30)]));
        assert_eq!((known.data_end(4), known.data_end(5), known.next_data(5)), (Some(5), None, 25));
        (0..5000).for_each(|at| known.add(at * 100..at * 100 + 1));
        assert!(known.data.len() <= RANGES_MAX);
    }
}
