//! Cached and dirty pages of all disks, and eviction.
//!
//! Pages are bits in chunks of 64. The chunks of a disk are sorted by address, the order in which write-back needs
//! them. Eviction is by chunk: the one that has been in memory longest goes first, unless it was used since the last
//! scan (second chance). A chunk takes about a hundred bytes and each page needs at most one, so the table's size is
//! bounded by the simulated memory.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hoistway_blk::ground::Instant;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;
const CHUNK_PAGES: u64 = 64;

/// A contiguous range of pages of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PageRange {
    pub(super) first: u64,
    /// The page after the last.
    pub(super) end: u64,
}

impl PageRange {
    pub(super) fn pages(self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    pub(super) fn overlaps(self, other: PageRange) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// The bits of the range in this chunk.
    fn bits(self, chunk: u64) -> u64 {
        let base = chunk * CHUNK_PAGES;
        let (from, to) = (self.first.saturating_sub(base), self.end.saturating_sub(base).min(CHUNK_PAGES));
        if from >= to { 0 } else { (u64::MAX >> (CHUNK_PAGES - (to - from))) << from }
    }

    fn chunks(self) -> std::ops::Range<u64> {
        self.first / CHUNK_PAGES..self.end.div_ceil(CHUNK_PAGES)
    }
}

#[derive(Default)]
struct PageChunk {
    present: u64,
    dirty: u64,
    /// Since when the chunk has had dirty pages.
    dirty_since: Instant,
    /// Whether the chunk was used since eviction last scanned it.
    is_used: bool,
}

#[derive(Default)]
struct DiskPages {
    chunks: BTreeMap<u64, PageChunk>,
    /// Chunks with dirty pages.
    dirty: BTreeSet<u64>,
}

/// The pages in memory.
pub(super) struct Pages {
    room: u64,
    disks: Vec<DiskPages>,
    /// Every chunk once, as disk and number, in eviction order.
    queue: VecDeque<(usize, u64)>,
    present: u64,
    dirty: u64,
}

impl Pages {
    pub(super) fn new(room: u64, disks: usize) -> Self {
        let disks = (0..disks).map(|_| DiskPages::default()).collect();
        Pages { room, disks, queue: VecDeque::new(), present: 0, dirty: 0 }
    }

    /// Pages in memory.
    #[cfg(test)]
    pub(super) fn present(&self) -> u64 {
        self.present
    }

    /// Dirty pages that are not under write-back.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Whether a disk has dirty pages.
    pub(super) fn has_dirty(&self, disk: usize) -> bool {
        !self.disks[disk].dirty.is_empty()
    }

    /// Adds pages. `absent` is called with the ranges that were not cached, in pieces of at most `pages_max`.
    pub(super) fn add_pages(
        &mut self,
        disk: usize,
        range: PageRange,
        pages_max: u64,
        mut absent: impl FnMut(PageRange),
    ) {
        let mut piece = PageRange::default();
        for number in range.chunks() {
            let bits = range.bits(number);
            let chunk = self.chunk(disk, number);
            let mut missing = bits & !chunk.present;
            chunk.present |= bits;
            chunk.is_used = true;
            self.present += u64::from(missing.count_ones());
            while missing != 0 {
                let skip = missing.trailing_zeros();
                let length = (missing >> skip).trailing_ones();
                let first = number * CHUNK_PAGES + u64::from(skip);
                missing &= !PageRange { first, end: first + u64::from(length) }.bits(number);
                if piece.end != first {
                    split_off(piece, piece.pages(), &mut absent);
                    piece.first = first;
                }
                piece.end = first + u64::from(length);
                piece = split_off(piece, pages_max, &mut absent);
            }
        }
        split_off(piece, piece.pages(), &mut absent);
        self.make_room();
    }

    /// Marks pages dirty. Returns how many already were.
    pub(super) fn dirty_pages(&mut self, disk: usize, range: PageRange, now: Instant) -> u64 {
        let mut overwritten = 0;
        for number in range.chunks() {
            let bits = range.bits(number);
            let chunk = self.chunk(disk, number);
            let (absent, clean) = (bits & !chunk.present, bits & !chunk.dirty);
            if chunk.dirty == 0 {
                chunk.dirty_since = now;
            }
            chunk.present |= bits;
            chunk.dirty |= bits;
            chunk.is_used = true;
            self.present += u64::from(absent.count_ones());
            self.dirty += u64::from(clean.count_ones());
            overwritten += u64::from((bits & !clean).count_ones());
            self.disks[disk].dirty.insert(number);
        }
        self.make_room();
        overwritten
    }

    /// Takes the first contiguous run of dirty pages in `within`, at most `pages_max`, and marks it clean. With
    /// `since`, only from a chunk that has had dirty pages since then or longer.
    pub(super) fn take_dirty(
        &mut self,
        disk: usize,
        within: PageRange,
        pages_max: u64,
        since: Option<Instant>,
    ) -> Option<PageRange> {
        let DiskPages { chunks, dirty } = &self.disks[disk];
        let dirty_bits = |number: u64| chunks.get(&number).map_or(0, |chunk| chunk.dirty & within.bits(number));
        let is_old =
            |number: u64| since.is_none_or(|since| chunks.get(&number).is_some_and(|c| c.dirty_since <= since));
        if within.first >= within.end {
            return None;
        }
        let start = dirty.range(within.chunks()).copied().find(|&number| dirty_bits(number) != 0 && is_old(number))?;
        let skip = u64::from(dirty_bits(start).trailing_zeros());
        let mut range = PageRange { first: start * CHUNK_PAGES + skip, end: start * CHUNK_PAGES + skip };
        loop {
            let number = range.end / CHUNK_PAGES;
            let length = u64::from((dirty_bits(number) >> (range.end % CHUNK_PAGES)).trailing_ones());
            range.end += length;
            // A run that ends before its chunk is complete.
            if length == 0 || !range.end.is_multiple_of(CHUNK_PAGES) || range.pages() >= pages_max {
                break;
            }
        }
        range.end = range.end.min(range.first + pages_max);
        self.clean(disk, range);
        Some(range)
    }

    /// Removes pages. Returns how many were dirty.
    pub(super) fn forget(&mut self, disk: usize, range: PageRange) -> u64 {
        let lost = self.clean(disk, range);
        self.forget_clean(disk, range);
        lost
    }

    /// Removes the clean pages of a range.
    pub(super) fn forget_clean(&mut self, disk: usize, range: PageRange) {
        for (number, chunk) in self.disks[disk].chunks.range_mut(range.chunks()) {
            let gone = chunk.present & !chunk.dirty & range.bits(*number);
            chunk.present &= !gone;
            self.present -= u64::from(gone.count_ones());
        }
    }

    /// Marks pages clean. Returns how many were dirty.
    fn clean(&mut self, disk: usize, range: PageRange) -> u64 {
        let DiskPages { chunks, dirty } = &mut self.disks[disk];
        let mut cleaned = 0;
        let mut next_chunk = range.first / CHUNK_PAGES;
        while let Some(&number) = dirty.range(next_chunk..range.chunks().end).next() {
            next_chunk = number + 1;
            let Some(chunk) = chunks.get_mut(&number) else { continue };
            let bits = chunk.dirty & range.bits(number);
            chunk.dirty &= !bits;
            cleaned += u64::from(bits.count_ones());
            if chunk.dirty == 0 {
                dirty.remove(&number);
            }
        }
        self.dirty -= cleaned;
        cleaned
    }

    fn chunk(&mut self, disk: usize, number: u64) -> &mut PageChunk {
        match self.disks[disk].chunks.entry(number) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.queue.push_back((disk, number));
                entry.insert(PageChunk::default())
            }
        }
    }

    /// Evicts clean pages if there are too many.
    fn make_room(&mut self) {
        // After two scans, only chunks that cannot be evicted are left.
        let mut scans_left = 2 * self.queue.len();
        while self.present > self.room && scans_left > 0 {
            scans_left -= 1;
            let Some((disk, number)) = self.queue.pop_front() else { break };
            let Entry::Occupied(mut entry) = self.disks[disk].chunks.entry(number) else { continue };
            let chunk = entry.get_mut();
            if !std::mem::take(&mut chunk.is_used) {
                self.present -= u64::from((chunk.present & !chunk.dirty).count_ones());
                chunk.present = chunk.dirty;
            }
            if chunk.present == 0 {
                entry.remove();
            } else {
                self.queue.push_back((disk, number));
            }
        }
    }
}

/// Calls `tell` with parts of this many pages, as long as the piece has that many; returns the rest.
fn split_off(mut piece: PageRange, pages: u64, emit: &mut impl FnMut(PageRange)) -> PageRange {
    while piece.pages() > 0 && piece.pages() >= pages {
        let end = piece.first + pages;
        emit(PageRange { first: piece.first, end });
        piece.first = end;
    }
    piece
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::ground::Nanos;
    use proptest::prelude::*;

    fn range(first: u64, end: u64) -> PageRange {
        PageRange { first, end }
    }

    fn brought(pages: &mut Pages, asked: PageRange) -> Vec<PageRange> {
        let mut absent = Vec::new();
        pages.add_pages(0, asked, 32, |piece| absent.push(piece));
        absent
    }

    const ALL: PageRange = PageRange { first: 0, end: u64::MAX };

    #[test]
    fn only_missing_pages_are_read_in_runs_that_cross_chunks() {
        let mut pages = Pages::new(1000, 1);
        assert_eq!(brought(&mut pages, range(70, 72)), [range(70, 72)]);
        assert_eq!(brought(&mut pages, range(50, 120)), [range(50, 70), range(72, 104), range(104, 120)]);
        assert_eq!(brought(&mut pages, range(50, 120)), []);
        assert_eq!(pages.present(), 70);
    }

    #[test]
    fn dirty_pages_are_taken_in_the_order_of_their_addresses_each_once() {
        let mut pages = Pages::new(1000, 1);
        for first in [300, 10, 60, 64] {
            pages.dirty_pages(0, range(first, first + 4), Instant::ZERO);
        }
        assert_eq!(pages.dirty(), 16);
        let take = |pages: &mut Pages| pages.take_dirty(0, ALL, 6, None);
        assert_eq!(take(&mut pages), Some(range(10, 14)));
        assert_eq!(take(&mut pages), Some(range(60, 66)));
        assert_eq!(pages.take_dirty(0, range(70, u64::MAX), 6, None), Some(range(300, 304)));
        assert_eq!(take(&mut pages), Some(range(66, 68)));
        assert_eq!((take(&mut pages), pages.dirty(), pages.has_dirty(0)), (None, 0, false));
    }

    #[test]
    fn only_pages_older_than_the_limit_are_taken() {
        let mut pages = Pages::new(1000, 1);
        pages.dirty_pages(0, range(200, 201), Instant::ZERO);
        pages.dirty_pages(0, range(0, 1), Instant::ZERO + Nanos(10));
        assert_eq!(pages.take_dirty(0, ALL, 8, Some(Instant::ZERO)), Some(range(200, 201)));
        assert_eq!(pages.take_dirty(0, ALL, 8, Some(Instant::ZERO)), None);
    }

    #[test]
    fn pages_not_used_again_are_evicted_first_and_dirty_pages_stay() {
        let mut pages = Pages::new(256, 1);
        brought(&mut pages, range(0, 64));
        pages.dirty_pages(0, range(64, 128), Instant::ZERO);
        brought(&mut pages, range(128, 256));
        // The first scan clears all marks, then the oldest chunk goes.
        brought(&mut pages, range(256, 320));
        brought(&mut pages, range(128, 129));
        brought(&mut pages, range(320, 384));
        assert_eq!(brought(&mut pages, range(128, 192)), []);
        assert_eq!(brought(&mut pages, range(0, 1)), [range(0, 1)]);
        assert_eq!((pages.dirty(), brought(&mut pages, range(64, 128))), (64, vec![]));
    }

    #[test]
    fn evicting_a_chunk_keeps_and_counts_its_dirty_pages() {
        let mut pages = Pages::new(128, 1);
        brought(&mut pages, range(0, 64));
        pages.dirty_pages(0, range(0, 10), Instant::ZERO);
        for first in [64, 128, 192, 256] {
            brought(&mut pages, range(first, first + 64));
        }
        assert_eq!(brought(&mut pages, range(0, 12)), [range(10, 12)]);
        let there = (0..400)
            .filter(|&page| pages.disks[0].chunks.get(&(page / 64)).is_some_and(|c| c.present >> (page % 64) & 1 == 1));
        assert_eq!(there.count() as u64, pages.present());
        assert_eq!(pages.dirty(), 10);
    }

    proptest! {
        #[test]
        fn the_sums_are_those_of_a_map_of_pages(
            steps in prop::collection::vec((0u8..4, 0u64..400, 1u64..90), 1..60),
        ) {
            let mut pages = Pages::new(10_000, 1);
            let (mut present, mut dirty) = (BTreeSet::new(), BTreeSet::new());
            for (step, first, length) in steps {
                let of = range(first, first + length);
                let all = || of.first..of.end;
                match step {
                    0 => {
                        let absent: Vec<u64> = brought(&mut pages, of).iter().flat_map(|r| r.first..r.end).collect();
                        let expected: Vec<u64> = all().filter(|page| present.insert(*page)).collect();
                        prop_assert_eq!(absent, expected);
                    }
                    1 => {
                        let before = all().filter(|page| dirty.contains(page)).count() as u64;
                        prop_assert_eq!(pages.dirty_pages(0, of, Instant::ZERO), before);
                        dirty.extend(all());
                        present.extend(all());
                    }
                    2 => {
                        let first = dirty.range(all()).next().copied();
                        let taken = pages.take_dirty(0, of, 7, None);
                        prop_assert_eq!(taken.map(|taken| taken.first), first);
                        for page in taken.into_iter().flat_map(|taken| taken.first..taken.end) {
                            prop_assert!(dirty.remove(&page) && all().contains(&page));
                        }
                        prop_assert!(taken.is_none_or(|t| t.pages() == 7 || t.end == of.end || !dirty.contains(&t.end)));
                    }
                    _ => {
                        let lost = all().filter(|page| dirty.remove(page)).count() as u64;
                        prop_assert_eq!(pages.forget(0, of), lost);
                        present.retain(|page| !all().contains(page));
                    }
                }
                prop_assert_eq!((pages.present(), pages.dirty()), (present.len() as u64, dirty.len() as u64));
            }
        }
    }
}
