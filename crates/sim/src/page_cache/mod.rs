//! The page cache: what happens to I/O that is not direct before it becomes bios. A sketch; docs/page-cache.md says
//! what is in it and what is not.
//!
//! One cache for the host, of the size of its memory. A process that reads finds pages, or waits for bios that bring
//! them in (`read_ahead` says which more); one that writes makes pages dirty and continues, until too much of the memory
//! is dirty. A flusher for each disk takes dirty pages there, in the background: above 10 % of the memory, and what has
//! been dirty for 30 s. An fsync writes the dirty pages of its file back itself, waits, and then flushes the device, or has
//! the file system's journal committed, if there is one.
//!
//! `pages` is what is in memory, `flights` what is in flight, `caller` an I/O of a process, `flusher` the write-back,
//! `journal` the metadata.
//!
//! A process is in one call at a time, as it is with synchronous I/O. Its call has a count, `Caller::left`: one for
//! each bio that it waits for, and one for itself while it still has bios to put forward. What takes the last one ends
//! the call.

mod caller;
mod flights;
mod flusher;
mod journal;
mod pages;
mod read_ahead;

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::ground::{Instant, Sector};
use hoistway_load::Load;
use hoistway_measure::PageCacheSummary;

use crate::disk::SimulatedDisk;
use crate::host::Host;
use crate::identity::{owner_page_cache, place_of};
use crate::task::Task;
use caller::Caller;
use flights::{PageBio, PageBioTable, Purpose};
use flusher::Flusher;
use journal::Journal;
use pages::{PageRange, Pages};

pub(crate) use caller::PageCacheCall;
pub(crate) use flusher::INTERVAL;
use pages::PAGE_BYTES;

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / 512;
/// The page cache of the host.
pub(crate) struct PageCache {
    pages: Pages,
    flights: PageBioTable,
    callers: Vec<Caller>,
    flushers: Vec<Flusher>,
    /// One for each disk, if the host's file systems have journals.
    journals: Vec<Journal>,
    /// Processes that have written and sleep until less of the memory is dirty.
    throttled: Vec<u32>,
    /// Pages that may be dirty before flushers begin.
    background_pages: u64,
    /// Pages that may be dirty or on their way before writers wait.
    limit_pages: u64,
    summary: PageCacheSummary,
}

impl PageCache {
    /// The cache of a load, if a process of it needs one.
    pub(crate) fn of(workload: &Load, disks: &[SimulatedDisk], host: &Host) -> Option<PageCache> {
        if workload.processes.iter().all(|process| process.caching.direct) {
            return None;
        }
        let memory_bytes = host.memory_bytes;
        let memory_pages = memory_bytes / PAGE_BYTES;
        let (background_pages, limit_pages) = host.dirty_pages(memory_pages, PAGE_BYTES);
        let processes = workload.processes.len() as u32;
        // A task's I/O context is its number + 1; flushers and journals have those behind.
        let flushers: Vec<Flusher> =
            (0..).zip(disks).map(|(number, disk)| Flusher::new(number, processes + 1 + number, disk)).collect();
        let contexts = processes + 1 + disks.len() as u32;
        let with_journal = if host.journal { disks } else { &[] };
        let journals = (0..).zip(with_journal).zip(&flushers);
        let journals = journals
            .map(|((number, disk), flusher)| Journal::new(number, contexts + number, disk, flusher.pages_max))
            .collect();
        Some(PageCache {
            pages: Pages::new(memory_pages, disks.len()),
            flights: PageBioTable::default(),
            callers: workload.processes.iter().map(|process| Caller::new(process, disks)).collect(),
            flushers,
            journals,
            throttled: Vec::new(),
            background_pages,
            limit_pages,
            summary: PageCacheSummary { memory_bytes, ..PageCacheSummary::default() },
        })
    }

    /// A part of a bio of the cache has ended. `wake` gets the processes that may continue because of it, and whether
    /// it was dirty memory that held them up.
    pub(crate) fn bio_ended(
        &mut self,
        now: Instant,
        bio: &Bio,
        status: Status,
        tasks: &mut [Task],
        mut wake: impl FnMut(&mut Task, bool),
    ) {
        let Some((flight, status)) = self.flights.ended(place_of(bio), bio, status) else { return };
        if status != Status::Ok && matches!(flight.purpose, Purpose::Read { .. }) {
            self.pages.forget(flight.disk, flight.pages);
        }
        let (waiters, status) = match flight.purpose {
            Purpose::Journal => self.journal_ended(flight.disk, status, now),
            _ => (flight.waiters, status),
        };
        for number in waiters {
            let (caller, task) = (&mut self.callers[number as usize], &mut tasks[number as usize]);
            if caller.note_io_end(status) {
                caller.make_progress(task);
                wake(task, false);
            }
        }
        if flight.purpose == Purpose::WriteBack && !self.is_full() {
            for number in self.throttled.drain(..) {
                let task = &mut tasks[number as usize];
                self.callers[number as usize].make_progress(task);
                wake(task, true);
            }
        }
    }

    /// Whether so much is dirty that writers have to wait.
    fn is_full(&self) -> bool {
        self.pages.dirty() + self.flights.pages_written > self.limit_pages
    }

    /// What it has done.
    pub(crate) fn into_summary(self) -> PageCacheSummary {
        PageCacheSummary { dirty_bytes: self.pages.dirty() * PAGE_BYTES, ..self.summary }
    }
}

/// The bio of a flight. Its owner and priority, come from `of`.
fn bio(number: u32, flight: &PageBio, op: Op, flags: BioFlags, of: &Bio, disk_sectors: u64) -> Bio {
    Bio {
        sector: Sector(flight.pages.first * PAGE_SECTORS),
        sectors: sectors_of(flight.pages, disk_sectors),
        segments: flight.pages.pages().clamp(1, u64::from(u16::MAX)) as u16,
        op,
        flags,
        owner: owner_page_cache(number),
        ..of.clone()
    }
}

/// The last page of a disk may be a part of one.
fn sectors_of(pages: PageRange, disk_sectors: u64) -> u32 {
    (pages.end * PAGE_SECTORS).min(disk_sectors).saturating_sub(pages.first * PAGE_SECTORS) as u32
}
