//! What the page cache has in flight at the disks, and which processes wait for it.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::Parts;

use super::pages::PageRange;

/// What a bio of the page cache does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Brings pages in that were asked for, or will be.
    Read { is_better_on_balance: bool },
    /// Takes dirty pages to the disk.
    WriteBack,
    /// Writes the journal.
    Journal,
    /// A flush, or a discard.
    Other,
}

/// A bio that is in flight.
#[derive(Debug)]
pub(super) struct PageBio {
    pub(super) disk: usize,
    pub(super) purpose: Purpose,
    pub(super) pages: PageRange,
    /// Processes that wait for its end.
    pub(super) waiters: Vec<u32>,
    parts: Parts,
}

/// All of them, by their numbers.
#[derive(Default)]
pub(super) struct PageBioTable {
    slots: Vec<Option<PageBio>>,
    free: Vec<u32>,
    /// Pages on their way to the disks.
    pub(super) pages_written: u64,
}

impl PageBioTable {
    /// Another one, of this many sectors, whose end this process waits for, if any.
    pub(super) fn start(
        &mut self,
        disk: usize,
        purpose: Purpose,
        pages: PageRange,
        sectors: u32,
        waiter: Option<u32>,
    ) -> u32 {
        let waiters = waiter.into_iter().collect();
        let flight = PageBio { disk, purpose, pages, waiters, parts: Parts::of_sectors(sectors) };
        if purpose == Purpose::WriteBack {
            self.pages_written += pages.pages();
        }
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(flight);
            return number;
        }
        self.slots.push(Some(flight));
        self.slots.len() as u32 - 1
    }

    pub(super) fn get(&self, number: u32) -> Option<&PageBio> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// Lets a process wait for all that is done to these pages for reading, or else for writing. Returns for how many.
    pub(super) fn wait(&mut self, disk: usize, pages: PageRange, is_for_read: bool, waiter: u32) -> u32 {
        let is_meant = |flight: &PageBio| {
            let is_read = matches!(flight.purpose, Purpose::Read { .. });
            // A journal lies within a file that is a whole disk; a process that waits for that waits for a commit.
            let is_of_file = flight.purpose != Purpose::Journal;
            is_of_file && flight.disk == disk && is_read == is_for_read && flight.pages.overlaps(pages)
        };
        let mut count = 0;
        for flight in self.slots.iter_mut().flatten().filter(|flight| is_meant(flight)) {
            flight.waiters.push(waiter);
            count += 1;
        }
        count
    }

    /// A part of one has ended. Returns the whole and how that has ended, if it was the last.
    pub(super) fn ended(&mut self, number: u32, part: &Bio, status: Status) -> Option<(PageBio, Status)> {
        let slot = self.slots.get_mut(number as usize)?;
        let status = slot.as_mut()?.parts.ended(part, status)?;
        let flight = slot.take()?;
        self.free.push(number);
        if flight.purpose == Purpose::WriteBack {
            self.pages_written -= flight.pages.pages();
        }
        Some((flight, status))
    }
}

#[cfg(test)]
mod tests {
    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;

    use super::*;

    #[test]
    fn a_flight_ends_with_its_last_part_and_has_the_error_of_any() {
        let mut flights = PageBioTable::default();
        let pages = PageRange { first: 0, end: 4 };
        let number = flights.start(0, Purpose::WriteBack, pages, 32, Some(7));
        assert_eq!(flights.pages_written, 4);
        let part = |sectors| Bio::new(Op::Write, Sector(0), sectors);
        assert!(flights.ended(number, &part(8), Status::IoError).is_none());
        let (flight, status) = flights.ended(number, &part(24), Status::Ok).unwrap();
        assert_eq!((status, flight.waiters), (Status::IoError, vec![7]));
        assert_eq!(flights.pages_written, 0);
    }

    #[test]
    fn no_process_waits_for_journal_pages_within_its_file() {
        let mut flights = PageBioTable::default();
        let pages = PageRange { first: 0, end: 4 };
        flights.start(0, Purpose::Journal, pages, 32, None);
        assert_eq!(flights.wait(0, pages, false, 9), 0);
    }

    #[test]
    fn a_process_waits_only_for_ios_on_its_own_pages() {
        let mut flights = PageBioTable::default();
        let range = |first| PageRange { first, end: first + 4 };
        let read = Purpose::Read { is_better_on_balance: false };
        for (disk, purpose, first) in [(0, read, 0), (0, read, 4), (0, Purpose::WriteBack, 4), (1, read, 4)] {
            flights.start(disk, purpose, range(first), 32, None);
        }
        assert_eq!(flights.wait(0, range(2), true, 9), 2);
        assert_eq!(flights.wait(0, range(2), false, 9), 1);
        assert_eq!(flights.wait(0, range(8), true, 9), 0);
    }
}
