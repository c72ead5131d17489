//! Write-back in the background: the flusher of a disk.
//!
//! It wakes when more than 10 % of the memory is dirty, and every 5 s to look for pages that have been dirty for 30 s.
//! It goes through the disk in the order of its pages, from where it was last time, and puts its bios forward in one
//! plug until there is nothing left to do, no tag, or as much in flight as write-back throttling lets through: it then
//! sleeps as others do.
//!
//! Its bios come one after the other, as fast as a CPU makes them. That matters: were they there all at once, it would
//! take all the tags that have become free since another was woken for one, each time.

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op};
use hoistway_blk::caller::{Cx, Env, Submitted};
use hoistway_blk::ground::{CgroupId, Instant, IoContextId, Local, Nanos, Sector};
use hoistway_legacy::AnyQueue;

use super::{PAGE_BYTES, PageCache, PageRange, Purpose, bio, sectors_of};
use crate::disk::SimulatedDisk;
use crate::identity::Sleeper;
use crate::submitter::Submitter;

/// How often flushers look for old pages: Linux's `dirty_writeback_centisecs`.
pub(crate) const INTERVAL: Nanos = Nanos::from_secs(5);
/// How long pages may be dirty: Linux's `dirty_expire_centisecs`.
const DIRTY_EXPIRE: Nanos = Nanos::from_secs(30);
/// What a page costs on its way into a bio, so that a flusher can do 4 GB/s. Assumed.
const PAGE_NS: u64 = 1000;

/// What writes the dirty pages of a disk back.
pub(super) struct Flusher {
    /// It sleeps for a tag, or until less write-back is in flight.
    submitter: Submitter,
    /// What its bios have in common.
    pattern: Bio,
    disk_sectors: u64,
    /// Most pages of a bio: those of a request.
    pub(super) pages_max: u64,
    /// What its bio took to make, and the next one will take.
    bio_ns: u64,
    /// Where it continues.
    next_page: u64,
    /// It has something to do: it makes a bio, sleeps on the way in, or is on its way to a CPU.
    is_active: bool,
}

impl Flusher {
    pub(super) fn new(number: u32, io_context: u32, disk: &SimulatedDisk) -> Self {
        // Every front has these files, in whole KiB and in segments. What is longer would be cut, and its parts would be
        // there all at once.
        let number_in = |file| disk.front.attribute(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let max_pages = number_in("max_sectors_kb").map_or(1, |kib| kib * 1024 / PAGE_BYTES);
        Flusher {
            submitter: Submitter::new(&disk.front, Sleeper::Flusher(number).waiter()),
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
    /// A disk whose flusher has to come, if there is one: it counts as on its way then.
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

    /// Whether the flusher of a disk is at work already.
    pub(crate) fn is_flushing(&self, disk: u32) -> bool {
        self.flushers[disk as usize].is_active
    }

    /// The flusher of a disk puts its next bio forward. Returns when it is ready for another one; not if it has nothing
    /// to do, or sleeps on the way in.
    pub(crate) fn flush<E: Env>(&mut self, cx: &mut Cx<'_, E>, front: &AnyQueue<Local>, disk: u32) -> Option<Nanos> {
        let was_parked = self.flushers[disk as usize].submitter.is_parked();
        let next = if was_parked { None } else { self.next_of_flusher(cx.now.at, disk as usize) };
        let flusher = &mut self.flushers[disk as usize];
        flusher.is_active = was_parked || next.is_some();
        if !flusher.is_active {
            flusher.submitter.unplug(front, cx);
            return None;
        }
        if let Some(bio) = next {
            flusher.bio_ns = PAGE_NS * u64::from(bio.segments);
            flusher.submitter.plug();
            flusher.submitter.begin(bio);
        }
        match flusher.submitter.make_progress(front, cx) {
            Submitted::Done => Some(Nanos(flusher.bio_ns)),
            Submitted::Parked => None,
        }
    }

    fn next_of_flusher(&mut self, now: Instant, disk: usize) -> Option<Bio> {
        let PageCache { pages, flights, flushers, summary, .. } = self;
        let flusher = &mut flushers[disk];
        // Above the threshold all pages are meant, below it those that are old.
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
        let flight = flights.start(disk, Purpose::WriteBack, range, sectors, None);
        let of = flights.get(flight)?;
        Some(bio(flight, of, Op::Write, BioFlags::BACKGROUND, &flusher.pattern, flusher.disk_sectors))
    }
}
