//! An I/O of a process that is not direct.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, Op, Status};
use hoistway_blk::caller::{Cx, Submitted};
use hoistway_blk::ground::{Instant, Local, Nanos};
use hoistway_blk::watch::Probe;
use hoistway_legacy::AnyQueue;
use hoistway_load::Process;

use super::journal::TransactionId;
use super::read_ahead::ReadAhead;
use super::{PAGE_BYTES, PAGE_SECTORS, PageCache, PageRange, Purpose, bio, sectors_of};
use crate::disk::SimulatedDisk;
use crate::driver::Machine;
use crate::task::Task;
use crate::throttling::Throttling;

/// What copying a page between the cache and a process takes: 10 GB/s, about what a core does. Assumed.
const COPY_NS: u64 = 400;

/// What comes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageCacheCall {
    /// It is over, for so much CPU time.
    Done(Nanos),
    /// It waits for a tag, for pages, for the device, or until less of the memory is dirty or in flight.
    Waits,
}

/// A process, as the page cache knows it.
pub(super) struct Caller {
    files: Vec<FileOnDisk>,
    /// Its first I/O drops what is in memory of its files.
    invalidates: bool,
    /// The I/O that it is in.
    submitted_bio: Option<Bio>,
    /// What it waits for; see the head of the module.
    left: u32,
    /// Flights that it has still to put forward.
    todo: VecDeque<u32>,
    /// Where it has still to look for dirty pages.
    write_back: VecDeque<PageRange>,
    /// It flushes the device when all that it has written is there.
    needs_flush: bool,
    status: Status,
}

/// What a process has of a disk: all of it, or the part with its own files.
struct FileOnDisk {
    disk: usize,
    pages: PageRange,
    disk_sectors: u64,
    /// The transaction of the journal that what was last changed of it is in.
    changed_in: TransactionId,
    read_ahead: ReadAhead,
}

impl Caller {
    pub(super) fn new(process: &Process, disks: &[SimulatedDisk]) -> Self {
        let file = |(device, &disk): (usize, &u32)| {
            let disk_sectors = disks[disk as usize].driver.shape().capacity_sectors;
            let own = process.plan.own_bytes(device).unwrap_or(0..disk_sectors * 512);
            let pages = PageRange { first: own.start / PAGE_BYTES, end: own.end.div_ceil(PAGE_BYTES) };
            FileOnDisk { disk: disk as usize, pages, disk_sectors, changed_in: 0, read_ahead: ReadAhead::default() }
        };
        Caller {
            files: process.files.iter().enumerate().map(file).collect(),
            invalidates: process.caching.invalidate,
            submitted_bio: None,
            left: 0,
            todo: VecDeque::new(),
            write_back: VecDeque::new(),
            needs_flush: false,
            status: Status::Ok,
        }
    }

    /// Something that it waits for has ended. Returns whether that was the last.
    pub(super) fn note_io_end(&mut self, status: Status) -> bool {
        if status != Status::Ok {
            self.status = status;
        }
        self.left -= 1;
        self.left == 0
    }

    /// It has waited for long enough: its I/O ends, or it has a flush to put forward.
    pub(super) fn make_progress(&mut self, task: &mut Task) {
        if self.needs_flush {
            task.resume_call();
        } else if let Some(submitted_bio) = self.submitted_bio.take() {
            task.bio_ended(&submitted_bio, std::mem::take(&mut self.status));
        }
    }
}

impl PageCache {
    /// Takes the I/O that a task has begun to submit, or continues it, as far as it gets.
    pub(crate) fn call<P: Probe>(
        &mut self,
        cx: &mut Cx<'_, Machine<P>>,
        front: &AnyQueue<Local>,
        mut throttling: Option<&mut Throttling>,
        task: &mut Task,
    ) -> PageCacheCall {
        let (number, disk) = (task.number, task.lane.disk as usize);
        let caller = &mut self.callers[number as usize];
        let is_under_way = caller.submitted_bio.is_some();
        if !task.lane.submitter.is_parked() {
            caller.left += 1;
        }
        if !is_under_way {
            let Some(submitted_bio) = task.lane.submitter.withdraw() else { return PageCacheCall::Waits };
            let window_pages = u64::from(front.read_ahead_kib()) * 1024 / PAGE_BYTES;
            self.begin(cx.now.at, number, disk, &submitted_bio, window_pages);
            self.callers[number as usize].submitted_bio = Some(submitted_bio);
        }
        task.lane.submitter.plug();
        loop {
            if !task.lane.submitter.is_parked() {
                let Some(bio) = self.next_bio(number, disk) else { break };
                task.lane.submitter.begin(bio);
                if let Some(throttling) = &mut throttling
                    && throttling.keeps(cx.now.at, front, &mut task.lane.submitter)
                {
                    continue;
                }
            }
            if task.lane.submitter.make_progress(front, cx) == Submitted::Parked {
                return PageCacheCall::Waits;
            }
        }
        task.lane.submitter.unplug(front, cx);
        self.finish_submission(cx.now.at, front, task)
    }

    /// What is to be done for an I/O, with windows of read-ahead of at most `window_pages`.
    fn begin(&mut self, now: Instant, number: u32, disk: usize, submitted_bio: &Bio, window_pages: u64) {
        let PageCache { pages, flights, callers, journals, summary, .. } = self;
        let caller = &mut callers[number as usize];
        if std::mem::take(&mut caller.invalidates) {
            caller.files.iter().for_each(|file| pages.forget_clean(file.disk, file.pages));
        }
        let Some(file) = caller.files.iter_mut().find(|file| file.disk == disk) else { return };
        let asked = PageRange {
            first: submitted_bio.sector.0 / PAGE_SECTORS,
            end: submitted_bio.end().0.div_ceil(PAGE_SECTORS),
        };
        let asked_bytes = asked.pages() * PAGE_BYTES;
        match submitted_bio.op {
            Op::Read => {
                summary.read_bytes += asked_bytes;
                caller.left += flights.wait(disk, asked, true, number);
                let ahead = file.read_ahead.asked(asked, file.pages, window_pages);
                for (range, is_better_on_balance) in [(asked, false), (ahead, true)] {
                    pages.bring(disk, range, window_pages.max(1), |absent| {
                        let waiter = (!is_better_on_balance).then_some(number);
                        caller.left += u32::from(!is_better_on_balance);
                        let sectors = sectors_of(absent, file.disk_sectors);
                        let purpose = Purpose::Read { is_better_on_balance };
                        caller.todo.push_back(flights.start(disk, purpose, absent, sectors, waiter));
                        let sum = if is_better_on_balance {
                            &mut summary.read_ahead_bytes
                        } else {
                            &mut summary.missed_bytes
                        };
                        *sum += absent.pages() * PAGE_BYTES;
                    });
                }
            }
            Op::Write => {
                let is_flush = submitted_bio.sectors == 0;
                if !is_flush {
                    summary.written_bytes += asked_bytes;
                    summary.overwritten_bytes += pages.dirty_pages(disk, asked, now) * PAGE_BYTES;
                    if let Some(journal) = journals.get_mut(disk) {
                        file.changed_in = journal.changes(asked);
                    }
                }
                if is_flush || submitted_bio.flags.contains(BioFlags::FUA) {
                    let range = if is_flush { file.pages } else { asked };
                    caller.left += flights.wait(disk, range, false, number);
                    match journals.get(disk) {
                        Some(journal) => caller.write_back.extend(journal.data_ranges_of_fsync(range)),
                        None => caller.write_back.push_back(range),
                    }
                    caller.needs_flush = true;
                }
            }
            Op::Discard | Op::Flush | Op::WriteZeroes => {
                summary.discarded_bytes += pages.forget(disk, asked) * PAGE_BYTES;
                caller.left += 1;
                caller.todo.push_back(flights.start(disk, Purpose::Other, asked, submitted_bio.sectors, Some(number)));
            }
        }
    }

    /// The next bio of a call.
    fn next_bio(&mut self, number: u32, disk: usize) -> Option<Bio> {
        let PageCache { pages, flights, callers, flushers, journals, summary, .. } = self;
        let caller = &mut callers[number as usize];
        let submitted_bio = caller.submitted_bio.as_ref()?;
        let &FileOnDisk { disk_sectors, changed_in, .. } = caller.files.iter().find(|file| file.disk == disk)?;
        if let Some(flight) = caller.todo.pop_front() {
            let of = flights.get(flight)?;
            return Some(match of.purpose {
                Purpose::Read { is_better_on_balance } => {
                    let flags = if is_better_on_balance { BioFlags::RAHEAD } else { BioFlags::NONE };
                    bio(flight, of, Op::Read, flags, submitted_bio, disk_sectors)
                }
                // A discard continues as it came, and need not cover whole pages.
                Purpose::Other | Purpose::WriteBack | Purpose::Journal => {
                    let owner =
                        bio(flight, of, submitted_bio.op, submitted_bio.flags, submitted_bio, disk_sectors).owner;
                    Bio { owner, ..submitted_bio.clone() }
                }
            });
        }
        while let Some(within) = caller.write_back.front_mut() {
            if let Some(dirty) = pages.take_dirty(disk, *within, flushers[disk].pages_max, None) {
                within.first = dirty.end;
                caller.left += 1;
                summary.synced_bytes += dirty.pages() * PAGE_BYTES;
                let sectors = sectors_of(dirty, disk_sectors);
                let flight = flights.start(disk, Purpose::WriteBack, dirty, sectors, Some(number));
                return Some(bio(flight, flights.get(flight)?, Op::Write, BioFlags::SYNC, submitted_bio, disk_sectors));
            }
            caller.write_back.pop_front();
        }
        // Nothing but the call itself is left: all that was written is there.
        if caller.needs_flush && caller.left == 1 {
            caller.needs_flush = false;
            caller.left += 1;
            if journals.get_mut(disk).is_some_and(|journal| journal.wait(changed_in, number)) {
                return None;
            }
            let flight = flights.start(disk, Purpose::Other, PageRange::default(), 0, Some(number));
            let flags = BioFlags::SYNC.with(BioFlags::PREFLUSH);
            return Some(bio(flight, flights.get(flight)?, Op::Write, flags, submitted_bio, disk_sectors));
        }
        None
    }

    /// A call has no more bios to put forward.
    fn finish_submission(&mut self, now: Instant, front: &AnyQueue<Local>, task: &mut Task) -> PageCacheCall {
        let (is_full, number) = (self.is_full(), task.number);
        let caller = &mut self.callers[number as usize];
        if !caller.note_io_end(Status::Ok) {
            return PageCacheCall::Waits;
        }
        let (mut pages, mut has_dirtied) = (0, false);
        if let Some(submitted_bio) = &caller.submitted_bio {
            pages = u64::from(submitted_bio.sectors).div_ceil(PAGE_SECTORS);
            has_dirtied = submitted_bio.op == Op::Write;
        }
        if has_dirtied && is_full {
            self.summary.throttled_writes += 1;
            self.throttled.push(number);
            front.set_dirty_throttled(now, true);
            return PageCacheCall::Waits;
        }
        caller.make_progress(task);
        PageCacheCall::Done(Nanos(COPY_NS * pages.max(1)))
    }
}
