//! What the page cache has under way at the disks, and which processes wait for it.

use hoistway_blk::Status;

use super::pages::PageRange;

/// What a bio of the page cache does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Brings pages in that were asked for, or will be.
    Read { is_ahead: bool },
    /// Takes dirty pages to the disk.
    WriteBack,
    /// A flush, or a discard.
    Other,
}

/// A bio that is under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) disk: usize,
    pub(super) purpose: Purpose,
    pub(super) pages: PageRange,
    /// Processes that wait for its end.
    pub(super) waiters: Vec<u32>,
    /// What went wrong, if anything did.
    pub(super) status: Status,
    /// Sectors whose end has not been announced: a bio may come back in parts.
    sectors_left: u32,
}

/// All of them, by their numbers.
#[derive(Default)]
pub(super) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
    /// Pages on their way to the disks.
    pub(super) pages_written: u64,
}

impl Flights {
    /// Another one, of so many sectors, whose end this process waits for, if any.
    pub(super) fn start(
        &mut self,
        disk: usize,
        purpose: Purpose,
        pages: PageRange,
        sectors: u32,
        waiter: Option<u32>,
    ) -> u32 {
        let waiters = waiter.into_iter().collect();
        let flight = Flight { disk, purpose, pages, waiters, status: Status::Ok, sectors_left: sectors.max(1) };
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

    pub(super) fn get(&self, number: u32) -> Option<&Flight> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// Lets a process wait for all that is done to these pages for reading, or else for writing. Answers for how many.
    pub(super) fn wait(&mut self, disk: usize, pages: PageRange, is_for_read: bool, waiter: u32) -> u32 {
        let is_meant = |flight: &Flight| {
            let is_read = matches!(flight.purpose, Purpose::Read { .. });
            flight.disk == disk && is_read == is_for_read && flight.pages.overlaps(pages)
        };
        let mut count = 0;
        for flight in self.slots.iter_mut().flatten().filter(|flight| is_meant(flight)) {
            flight.waiters.push(waiter);
            count += 1;
        }
        count
    }

    /// So many sectors of one have ended. Answers the whole, if that was the last of it.
    pub(super) fn ended(&mut self, number: u32, sectors: u32, status: Status) -> Option<Flight> {
        let slot = self.slots.get_mut(number as usize)?;
        let flight = slot.as_mut()?;
        if status != Status::Ok {
            flight.status = status;
        }
        flight.sectors_left = flight.sectors_left.saturating_sub(sectors.max(1));
        if flight.sectors_left > 0 {
            return None;
        }
        let flight = slot.take()?;
        self.free.push(number);
        if flight.purpose == Purpose::WriteBack {
            self.pages_written -= flight.pages.pages();
        }
        Some(flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_ends_with_its_last_part_and_has_the_error_of_any() {
        let mut flights = Flights::default();
        let pages = PageRange { first: 0, end: 4 };
        let number = flights.start(0, Purpose::WriteBack, pages, 32, Some(7));
        assert_eq!(flights.pages_written, 4);
        assert!(flights.ended(number, 8, Status::IoError).is_none());
        let flight = flights.ended(number, 24, Status::Ok).unwrap();
        assert_eq!((flight.status, flight.waiters), (Status::IoError, vec![7]));
        assert_eq!(flights.pages_written, 0);
    }

    #[test]
    fn a_process_waits_for_what_is_done_to_its_pages_and_for_nothing_else() {
        let mut flights = Flights::default();
        let range = |first| PageRange { first, end: first + 4 };
        let read = Purpose::Read { is_ahead: false };
        for (disk, purpose, first) in [(0, read, 0), (0, read, 4), (0, Purpose::WriteBack, 4), (1, read, 4)] {
            flights.start(disk, purpose, range(first), 32, None);
        }
        assert_eq!(flights.wait(0, range(2), true, 9), 2);
        assert_eq!(flights.wait(0, range(2), false, 9), 1);
        assert_eq!(flights.wait(0, range(8), true, 9), 0);
    }
}
