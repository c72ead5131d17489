//! In-flight bios of the page cache, and the processes that wait for them.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::Parts;

use super::pages::PageRange;

/// The purpose of a bio of the page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Reads pages: requested ones, or read-ahead.
    Read { is_read_ahead: bool },
    /// Writes dirty pages back.
    WriteBack,
    /// Writes the journal.
    Journal,
    /// A flush, or a discard.
    Other,
}

/// An in-flight bio.
#[derive(Debug)]
pub(super) struct PageBio {
    pub(super) disk: usize,
    pub(super) purpose: Purpose,
    pub(super) pages: PageRange,
    /// Processes that wait for its completion.
    pub(super) waiters: Vec<u32>,
    parts: Parts,
}

/// The in-flight table, by number.
#[derive(Default)]
pub(super) struct PageBioTable {
    slots: Vec<Option<PageBio>>,
    free: Vec<u32>,
    /// Pages under write-back.
    pub(super) pages_written: u64,
}

impl PageBioTable {
    /// Adds a bio of this many sectors; `waiter` is the process that waits for it, if any. Returns its number.
    pub(super) fn start(
        &mut self,
        disk: usize,
        purpose: Purpose,
        pages: PageRange,
        sectors: u32,
        waiter: Option<u32>,
    ) -> u32 {
        let waiters = waiter.into_iter().collect();
        let page_bio = PageBio { disk, purpose, pages, waiters, parts: Parts::of_sectors(sectors) };
        if purpose == Purpose::WriteBack {
            self.pages_written += pages.pages();
        }
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(page_bio);
            return number;
        }
        self.slots.push(Some(page_bio));
        self.slots.len() as u32 - 1
    }

    pub(super) fn get(&self, number: u32) -> Option<&PageBio> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// Makes a process wait for all in-flight reads of these pages, or else for all writes. Returns their number.
    pub(super) fn wait(&mut self, disk: usize, pages: PageRange, is_for_read: bool, waiter: u32) -> u32 {
        let matches = |page_bio: &PageBio| {
            let is_read = matches!(page_bio.purpose, Purpose::Read { .. });
            // The journal's pages may be inside a file that covers the whole disk; processes wait for its commits, not
            // for its bios.
            let is_of_file = page_bio.purpose != Purpose::Journal;
            is_of_file && page_bio.disk == disk && is_read == is_for_read && page_bio.pages.overlaps(pages)
        };
        let mut count = 0;
        for page_bio in self.slots.iter_mut().flatten().filter(|page_bio| matches(page_bio)) {
            page_bio.waiters.push(waiter);
            count += 1;
        }
        count
    }

    /// A part of a bio has completed. Returns the bio and its status if that was the last part.
    pub(super) fn ended(&mut self, number: u32, part: &Bio, status: Status) -> Option<(PageBio, Status)> {
        let slot = self.slots.get_mut(number as usize)?;
        let status = slot.as_mut()?.parts.ended(part, status)?;
        let page_bio = slot.take()?;
        self.free.push(number);
        if page_bio.purpose == Purpose::WriteBack {
            self.pages_written -= page_bio.pages.pages();
        }
        Some((page_bio, status))
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;

    use super::*;

    #[test]
    fn a_flight_ends_with_its_last_part_and_has_the_error_of_any() {
        let mut in_flight = PageBioTable::default();
        let pages = PageRange { first: 0, end: 4 };
        let number = in_flight.start(0, Purpose::WriteBack, pages, 32, Some(7));
        assert_eq!(in_flight.pages_written, 4);
        let part = |sectors| Bio::new(Op::Write, Sector(0), sectors);
        assert!(in_flight.ended(number, &part(8), Status::IoError).is_none());
        let (page_bio, status) = in_flight.ended(number, &part(24), Status::Ok).unwrap();
        assert_eq!((status, page_bio.waiters), (Status::IoError, vec![7]));
        assert_eq!(in_flight.pages_written, 0);
    }

    #[test]
    fn no_process_waits_for_journal_pages_within_its_file() {
        let mut in_flight = PageBioTable::default();
        let pages = PageRange { first: 0, end: 4 };
        in_flight.start(0, Purpose::Journal, pages, 32, None);
        assert_eq!(in_flight.wait(0, pages, false, 9), 0);
    }

    #[test]
    fn a_process_waits_only_for_ios_on_its_own_pages() {
        let mut in_flight = PageBioTable::default();
        let range = |first| PageRange { first, end: first + 4 };
        let read = Purpose::Read { is_read_ahead: false };
        for (disk, purpose, first) in [(0, read, 0), (0, read, 4), (0, Purpose::WriteBack, 4), (1, read, 4)] {
            in_flight.start(disk, purpose, range(first), 32, None);
        }
        assert_eq!(in_flight.wait(0, range(2), true, 9), 2);
        assert_eq!(in_flight.wait(0, range(2), false, 9), 1);
        assert_eq!(in_flight.wait(0, range(8), true, 9), 0);
    }
}
