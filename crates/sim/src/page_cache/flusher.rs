//! Write-back in the background: the flusher of a disk.
//!
//! It wakes when more than 10 % of the memory is dirty, and every 5 s to look for pages that have been dirty for 30 s.
//! It scans the disk in page order, from where it stopped last time, and submits bios in one plug until there is nothing
//! left to write, no tag is free, or write-back throttling blocks it; then it sleeps.
//!
//! Its bios come one at a time, as fast as a CPU creates them. If they came all at once, the flusher would take every
//! tag that became free since another sleeper was woken for one.

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op};
use hoistway_blk::caller::{Cx, Env, Submitted};
use hoistway_blk::ground::{CgroupId, Instant, IoContextId, Local, Nanos, Sector};
use hoistway_legacy::AnyQueue;

use super::{PAGE_BYTES, PageCache, PageRange, Purpose, bio, sectors_of};
use crate::disk::SimulatedDisk;
use crate::identity::Sleeper;
use crate::submitter::Submitter;

/// Interval at which flushers look for old pages: Linux's `dirty_writeback_centisecs`.
pub(crate) const FLUSHER_INTERVAL: Nanos = Nanos::from_secs(5);
/// Age at which dirty pages are written back: Linux's `dirty_expire_centisecs`.
const DIRTY_EXPIRE: Nanos = Nanos::from_secs(30);
/// CPU time to add a page to a bio, ns: limits a flusher to 4 GB/s. Assumed.
const PAGE_NS: u64 = 1000;

/// Writes the dirty pages of a disk back.
pub(super) struct Flusher {
    /// Its submitter: sleeps for a tag, or until less write-back is in flight.
    submitter: Submitter,
    /// Common fields of its bios.
    pattern: Bio,
    disk_sectors: u64,
    /// Maximum pages of a bio: those of one request.
    pub(super) pages_max: u64,
    /// CPU time to create the last bio, used as the estimate for the next, ns.
    bio_ns: u64,
    /// First page of the next scan.
    next_page: u64,
    /// Whether it is running, scheduled to run, or asleep during a submission.
    is_active: bool,
}

impl Flusher {
    pub(super) fn new(number: u32, io_context: u32, disk: &SimulatedDisk) -> Self {
        // Every queue has these files, in KiB and in segments. A longer bio would be split, and its parts would come all
        // at once.
        let number_in = |file| disk.queue.attribute(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let max_pages = number_in("max_sectors_kb").map_or(1, |kib| kib * 1024 / PAGE_BYTES);
        Flusher {
            submitter: Submitter::new(&disk.queue, Sleeper::Flusher(number).waiter()),
            pattern: Bio {
                io_context: IoContextId(io_context),
                cgroup: CgroupId::ROOT,
                ioprio: IoPriority::DEFAULT,
                ..Bio::new(Op::Write, Sector(0), 0)
            },
            disk_sectors: disk.driver.shape().capacity_sectors,
            pages_max: max_pages.min(number_in("max_segments").unwrap_or(max_pages)).max(1),
            bio_ns: 0,
            next_page: 0,
            is_active: false,
        }
    }
}

impl PageCache {
    /// A disk whose flusher has to run, if any; it is then considered scheduled.
    pub(crate) fn next_flusher(&mut self) -> Option<u32> {
        if self.pages.dirty() <= self.background_pages {
            return None;
        }
        let pages = &self.pages;
        let mut idle = (0..).zip(&mut self.flushers).filter(|(_, flusher)| !flusher.is_active);
        let (disk, flusher) = idle.find(|(disk, _)| pages.has_dirty(*disk as usize))?;
        flusher.is_active = true;
        Some(disk)
    }

    /// Whether the flusher of a disk is active.
    pub(crate) fn is_flushing(&self, disk: u32) -> bool {
        self.flushers[disk as usize].is_active
    }

    /// Submits the next bio of a disk's flusher. Returns the time until it is ready for another one; `None` if it has
    /// nothing to do or sleeps.
    pub(crate) fn flush<E: Env>(&mut self, cx: &mut Cx<'_, E>, queue: &AnyQueue<Local>, disk: u32) -> Option<Nanos> {
        let was_parked = self.flushers[disk as usize].submitter.is_parked();
        let next = if was_parked { None } else { self.next_of_flusher(cx.now.at, disk as usize) };
        let flusher = &mut self.flushers[disk as usize];
        flusher.is_active = was_parked || next.is_some();
        if !flusher.is_active {
            flusher.submitter.unplug(queue, cx);
            return None;
        }
        if let Some(bio) = next {
            flusher.bio_ns = PAGE_NS * u64::from(bio.segments);
            flusher.submitter.plug();
            flusher.submitter.begin(bio);
        }
        match flusher.submitter.make_progress(queue, cx) {
            Submitted::Done => Some(Nanos(flusher.bio_ns)),
            Submitted::Parked => None,
        }
    }

    fn next_of_flusher(&mut self, now: Instant, disk: usize) -> Option<Bio> {
        let PageCache { pages, in_flight, flushers, summary, .. } = self;
        let flusher = &mut flushers[disk];
        // Above the threshold all dirty pages are written, below it only old ones.
        let since = if pages.dirty() > self.background_pages {
            None
        } else {
            Some(Instant(now.0.checked_sub(DIRTY_EXPIRE.0)?))
        };
        let mut take = |first, end| pages.take_dirty(disk, PageRange { first, end }, flusher.pages_max, since);
        let range = take(flusher.next_page, u64::MAX).or_else(|| take(0, flusher.next_page))?;
        flusher.next_page = range.end;
        summary.written_back_bytes += range.pages() * PAGE_BYTES;
        let sectors = sectors_of(range, flusher.disk_sectors);
        let bio_number = in_flight.start(disk, Purpose::WriteBack, range, sectors, None);
        let page_bio = in_flight.get(bio_number)?;
        Some(bio(bio_number, page_bio, Op::Write, BioFlags::BACKGROUND, &flusher.pattern, flusher.disk_sectors))
    }
}
