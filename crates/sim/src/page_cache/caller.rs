//! Buffered I/O calls of processes.

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

/// Time to copy a page between the cache and a process, ns: 10 GB/s, roughly the rate of one core. Assumed.
const COPY_NS: u64 = 400;

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageCacheCall {
    /// The call has ended and used this CPU time.
    Done(Nanos),
    /// The call waits for a tag, for pages, for the device, or until less memory is dirty or under write-back.
    Waits,
}

/// The page cache's state of a process.
pub(super) struct Caller {
    files: Vec<FileOnDisk>,
    /// Whether its first I/O drops the cached pages of its files (fio's `invalidate`).
    invalidates: bool,
    /// The current I/O.
    submitted_bio: Option<Bio>,
    /// Outstanding parts of the call; see the module's description.
    outstanding: u32,
    /// In-flight table entries whose bios are still to be submitted.
    todo: VecDeque<u32>,
    /// Ranges still to be searched for dirty pages.
    write_back: VecDeque<PageRange>,
    /// Whether it flushes the device once all of its writes have completed.
    needs_flush: bool,
    status: Status,
}

/// The part of a disk that a process uses: all of it, or its own files.
struct FileOnDisk {
    disk: usize,
    pages: PageRange,
    disk_sectors: u64,
    /// The journal transaction that contains its last change.
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
            // Files after the disks are on stacked devices, whose I/O is direct.
            files: process
                .files
                .iter()
                .enumerate()
                .filter(|(_, disk)| (**disk as usize) < disks.len())
                .map(file)
                .collect(),
            invalidates: process.caching.invalidate,
            submitted_bio: None,
            outstanding: 0,
            todo: VecDeque::new(),
            write_back: VecDeque::new(),
            needs_flush: false,
            status: Status::Ok,
        }
    }

    /// A bio that it waits for has completed. Returns whether that was the last.
    pub(super) fn note_io_end(&mut self, status: Status) -> bool {
        if status != Status::Ok {
            self.status = status;
        }
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Its wait is over: ends the I/O, or continues with the flush.
    pub(super) fn make_progress(&mut self, task: &mut Task) {
        if self.needs_flush {
            task.resume_call();
        } else if let Some(submitted_bio) = self.submitted_bio.take() {
            task.bio_ended(&submitted_bio, std::mem::take(&mut self.status));
        }
    }
}

impl PageCache {
    /// Starts or continues the buffered I/O of a task, as far as possible.
    pub(crate) fn call<P: Probe>(
        &mut self,
        cx: &mut Cx<'_, Machine<P>>,
        queue: &AnyQueue<Local>,
        mut throttling: Option<&mut Throttling>,
        task: &mut Task,
    ) -> PageCacheCall {
        let (number, disk) = (task.number, task.current_disk.disk as usize);
        let caller = &mut self.callers[number as usize];
        let has_begun = caller.submitted_bio.is_some();
        if !task.current_disk.submitter.is_parked() {
            caller.outstanding += 1;
        }
        if !has_begun {
            let Some(submitted_bio) = task.current_disk.submitter.withdraw() else { return PageCacheCall::Waits };
            let window_pages = u64::from(queue.read_ahead_kib()) * 1024 / PAGE_BYTES;
            self.begin(cx.now.at, number, disk, &submitted_bio, window_pages);
            self.callers[number as usize].submitted_bio = Some(submitted_bio);
        }
        task.current_disk.submitter.plug();
        loop {
            if !task.current_disk.submitter.is_parked() {
                let Some(bio) = self.next_bio(number, disk) else { break };
                task.current_disk.submitter.begin(bio);
                if let Some(throttling) = &mut throttling
                    && throttling.throttles(cx.now.at, queue, &mut task.current_disk.submitter)
                {
                    continue;
                }
            }
            if task.current_disk.submitter.make_progress(queue, cx) == Submitted::Parked {
                if let Some(throttling) = &mut throttling {
                    throttling.tags_ran_out();
                }
                return PageCacheCall::Waits;
            }
        }
        task.current_disk.submitter.unplug(queue, cx);
        self.finish_submission(cx.now.at, queue, task)
    }

    /// Plans an I/O, with read-ahead windows of at most `window_pages`.
    fn begin(&mut self, now: Instant, number: u32, disk: usize, submitted_bio: &Bio, window_pages: u64) {
        let PageCache { pages, in_flight, callers, journals, summary, .. } = self;
        let caller = &mut callers[number as usize];
        if std::mem::take(&mut caller.invalidates) {
            caller.files.iter().for_each(|file| pages.forget_clean(file.disk, file.pages));
        }
        let Some(file) = caller.files.iter_mut().find(|file| file.disk == disk) else { return };
        let requested = PageRange {
            first: submitted_bio.sector.0 / PAGE_SECTORS,
            end: submitted_bio.end().0.div_ceil(PAGE_SECTORS),
        };
        let requested_bytes = requested.pages() * PAGE_BYTES;
        match submitted_bio.op {
            Op::Read => {
                summary.read_bytes += requested_bytes;
                caller.outstanding += in_flight.wait(disk, requested, true, number);
                let ahead = file.read_ahead.record_read(requested, file.pages, window_pages);
                for (range, is_read_ahead) in [(requested, false), (ahead, true)] {
                    pages.add_pages(disk, range, window_pages.max(1), |absent| {
                        let waiter = (!is_read_ahead).then_some(number);
                        caller.outstanding += u32::from(!is_read_ahead);
                        let sectors = sectors_of(absent, file.disk_sectors);
                        let purpose = Purpose::Read { is_read_ahead };
                        caller.todo.push_back(in_flight.start(disk, purpose, absent, sectors, waiter));
                        let sum = if is_read_ahead { &mut summary.read_ahead_bytes } else { &mut summary.missed_bytes };
                        *sum += absent.pages() * PAGE_BYTES;
                    });
                }
            }
            Op::Write => {
                let is_flush = submitted_bio.sectors == 0;
                if !is_flush {
                    summary.written_bytes += requested_bytes;
                    summary.overwritten_bytes += pages.dirty_pages(disk, requested, now) * PAGE_BYTES;
                    if let Some(journal) = journals.get_mut(disk) {
                        file.changed_in = journal.changes(requested);
                    }
                }
                if is_flush || submitted_bio.flags.contains(BioFlags::FUA) {
                    let range = if is_flush { file.pages } else { requested };
                    caller.outstanding += in_flight.wait(disk, range, false, number);
                    match journals.get(disk) {
                        Some(journal) => caller.write_back.extend(journal.data_ranges_of_fsync(range)),
                        None => caller.write_back.push_back(range),
                    }
                    caller.needs_flush = true;
                }
            }
            Op::Discard | Op::Flush | Op::WriteZeroes => {
                summary.discarded_bytes += pages.forget(disk, requested) * PAGE_BYTES;
                caller.outstanding += 1;
                caller.todo.push_back(in_flight.start(
                    disk,
                    Purpose::Other,
                    requested,
                    submitted_bio.sectors,
                    Some(number),
                ));
            }
        }
    }

    /// The next bio of a call.
    fn next_bio(&mut self, number: u32, disk: usize) -> Option<Bio> {
        let PageCache { pages, in_flight, callers, flushers, journals, summary, .. } = self;
        let caller = &mut callers[number as usize];
        let submitted_bio = caller.submitted_bio.as_ref()?;
        let &FileOnDisk { disk_sectors, changed_in, .. } = caller.files.iter().find(|file| file.disk == disk)?;
        if let Some(bio_number) = caller.todo.pop_front() {
            let page_bio = in_flight.get(bio_number)?;
            return Some(match page_bio.purpose {
                Purpose::Read { is_read_ahead } => {
                    let flags = if is_read_ahead { BioFlags::RAHEAD } else { BioFlags::NONE };
                    bio(bio_number, page_bio, Op::Read, flags, submitted_bio, disk_sectors)
                }
                // A discard is passed on unchanged and need not cover whole pages.
                Purpose::Other | Purpose::WriteBack | Purpose::Journal => {
                    let owner =
                        bio(bio_number, page_bio, submitted_bio.op, submitted_bio.flags, submitted_bio, disk_sectors)
                            .owner;
                    Bio { owner, ..submitted_bio.clone() }
                }
            });
        }
        while let Some(within) = caller.write_back.front_mut() {
            if let Some(dirty) = pages.take_dirty(disk, *within, flushers[disk].pages_max, None) {
                within.first = dirty.end;
                caller.outstanding += 1;
                summary.synced_bytes += dirty.pages() * PAGE_BYTES;
                let sectors = sectors_of(dirty, disk_sectors);
                let bio_number = in_flight.start(disk, Purpose::WriteBack, dirty, sectors, Some(number));
                return Some(bio(
                    bio_number,
                    in_flight.get(bio_number)?,
                    Op::Write,
                    BioFlags::SYNC,
                    submitted_bio,
                    disk_sectors,
                ));
            }
            caller.write_back.pop_front();
        }
        // Only the call itself is left: all writes have completed.
        if caller.needs_flush && caller.outstanding == 1 {
            caller.needs_flush = false;
            caller.outstanding += 1;
            if journals.get_mut(disk).is_some_and(|journal| journal.wait(changed_in, number)) {
                return None;
            }
            let bio_number = in_flight.start(disk, Purpose::Other, PageRange::default(), 0, Some(number));
            let flags = BioFlags::SYNC.with(BioFlags::PREFLUSH);
            return Some(bio(bio_number, in_flight.get(bio_number)?, Op::Write, flags, submitted_bio, disk_sectors));
        }
        None
    }

    /// Ends the submission phase of a call.
    fn finish_submission(&mut self, now: Instant, queue: &AnyQueue<Local>, task: &mut Task) -> PageCacheCall {
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
            queue.set_dirty_throttled(now, true);
            return PageCacheCall::Waits;
        }
        caller.make_progress(task);
        PageCacheCall::Done(Nanos(COPY_NS * pages.max(1)))
    }
}
