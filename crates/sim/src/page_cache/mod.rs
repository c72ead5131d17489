//! The page cache: turns buffered I/O into bios. A simplified model; docs/page-cache.md lists what it includes and what it
//! does not.
//!
//! Used by: `simulation`.
//! Tests: `crates/sim/src/page_cache/` (in its files), `crates/sim/tests/page_cache.rs`.
//!
//! One cache for the host, of the size of its memory. A read finds its pages in the cache or waits for bios that read them,
//! with read-ahead (`read_ahead`). A write dirties pages and continues, until too much of the memory is dirty. Each disk's
//! flusher writes dirty pages back in the background: above 10 % of the memory, and pages that have been dirty for 30 s. An
//! fsync writes the dirty pages of its file back itself, waits, and then flushes the device or commits the file system's
//! journal, if there is one.
//!
//! `pages` holds the cached pages, `in_flight` the in-flight bios, `caller` the buffered I/O of a process, `flusher`
//! background write-back, `journal` metadata.
//!
//! A process makes one call at a time, as with synchronous I/O. `Caller::outstanding` counts one for each bio that the call waits
//! for, and one for the call itself while it still has bios to submit. The call ends when the count reaches 0.

mod caller;
mod flusher;
mod in_flight;
mod journal;
mod pages;
mod read_ahead;

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::ground::{Instant, Sector};
use hoistway_load::Load;
use hoistway_measure::PageCacheSummary;

use crate::disk::SimulatedDisk;
use crate::host::Host;
use crate::identity::{local_id_of, owner_page_cache};
use crate::task::Task;
use caller::Caller;
use flusher::Flusher;
use in_flight::{PageBio, PageBioTable, Purpose};
use journal::Journal;
use pages::{PageRange, Pages};

pub(crate) use caller::PageCacheCall;
pub(crate) use flusher::FLUSHER_INTERVAL;
use pages::PAGE_BYTES;

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / 512;
/// The page cache of the host.
pub(crate) struct PageCache {
    pages: Pages,
    in_flight: PageBioTable,
    callers: Vec<Caller>,
    flushers: Vec<Flusher>,
    /// One journal for each disk, if the host's file systems have journals.
    journals: Vec<Journal>,
    /// Writers that sleep until less of the memory is dirty.
    throttled: Vec<u32>,
    /// Dirty pages at which flushers start.
    background_pages: u64,
    /// Pages dirty or under write-back at which writers wait.
    limit_pages: u64,
    summary: PageCacheSummary,
}

impl PageCache {
    /// The page cache of a load; `None` if no process does buffered I/O.
    pub(crate) fn for_load(workload: &Load, disks: &[SimulatedDisk], host: &Host) -> Option<PageCache> {
        if workload.processes.iter().all(|process| process.caching.direct) {
            return None;
        }
        let memory_bytes = host.memory_bytes;
        let memory_pages = memory_bytes / PAGE_BYTES;
        let (background_pages, limit_pages) = host.dirty_pages(memory_pages, PAGE_BYTES);
        let processes = workload.processes.len() as u32;
        // A task's I/O context is its number + 1; those of flushers and journals follow.
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
            in_flight: PageBioTable::default(),
            callers: workload.processes.iter().map(|process| Caller::new(process, disks)).collect(),
            flushers,
            journals,
            throttled: Vec::new(),
            background_pages,
            limit_pages,
            summary: PageCacheSummary { memory_bytes, ..PageCacheSummary::default() },
        })
    }

    /// A part of a bio of the cache has completed. `wake` is called with the processes that can continue, and whether they
    /// were throttled by dirty memory.
    pub(crate) fn bio_ended(
        &mut self,
        now: Instant,
        bio: &Bio,
        status: Status,
        tasks: &mut [Task],
        mut wake: impl FnMut(&mut Task, bool),
    ) {
        let Some((page_bio, status)) = self.in_flight.ended(local_id_of(bio), bio, status) else { return };
        if status != Status::Ok && matches!(page_bio.purpose, Purpose::Read { .. }) {
            self.pages.forget(page_bio.disk, page_bio.pages);
        }
        let (waiters, status) = match page_bio.purpose {
            Purpose::Journal => self.journal_ended(page_bio.disk, status, now),
            _ => (page_bio.waiters, status),
        };
        for number in waiters {
            let (caller, task) = (&mut self.callers[number as usize], &mut tasks[number as usize]);
            if caller.note_io_end(status) {
                caller.make_progress(task);
                wake(task, false);
            }
        }
        if page_bio.purpose == Purpose::WriteBack && !self.is_full() {
            for number in self.throttled.drain(..) {
                let task = &mut tasks[number as usize];
                self.callers[number as usize].make_progress(task);
                wake(task, true);
            }
        }
    }

    /// Whether so much memory is dirty that writers have to wait.
    fn is_full(&self) -> bool {
        self.pages.dirty() + self.in_flight.pages_written > self.limit_pages
    }

    /// Statistics of the run.
    pub(crate) fn into_summary(self) -> PageCacheSummary {
        PageCacheSummary { dirty_bytes: self.pages.dirty() * PAGE_BYTES, ..self.summary }
    }
}

/// The bio of an in-flight entry. Its context and priority come from `of`.
fn bio(number: u32, page_bio: &PageBio, op: Op, flags: BioFlags, template: &Bio, disk_sectors: u64) -> Bio {
    Bio {
        sector: Sector(page_bio.pages.first * PAGE_SECTORS),
        sectors: sectors_of(page_bio.pages, disk_sectors),
        segments: page_bio.pages.pages().clamp(1, u64::from(u16::MAX)) as u16,
        op,
        flags,
        owner: owner_page_cache(number),
        ..template.clone()
    }
}

/// Sectors of these pages; the last page of a disk may be partial.
fn sectors_of(pages: PageRange, disk_sectors: u64) -> u32 {
    (pages.end * PAGE_SECTORS).min(disk_sectors).saturating_sub(pages.first * PAGE_SECTORS) as u32
}
