//! The journal of a disk's file system, whose commits fsync waits for in addition to the data of its file.
//!
//! Metadata changes of all processes go into one running transaction. An fsync of a file with a change in it commits the
//! transaction once the file's data is written. While another transaction is being committed it waits, together with all
//! others that need the same transaction, so one commit serves many. A commit writes the changed blocks sequentially into the
//! journal and then the commit record, with a preflush and FUA. The blocks are dirty pages from then on, which flushers write
//! back in place.
//!
//! Each disk has one journal thread. docs/page-cache.md lists what is not modelled.

use std::collections::{BTreeSet, VecDeque};

use hoistway_blk::bio::{Bio, BioFlags, IoPriority, Op, Status};
use hoistway_blk::caller::Env;
use hoistway_blk::caller::{Cx, Submitted};
use hoistway_blk::ground::{CgroupId, Instant, IoContextId, Local, Sector};
use hoistway_legacy::AnyQueue;

use super::pages::PageRange;
use super::{PAGE_BYTES, PAGE_SECTORS, PageCache, Purpose, bio, sectors_of};
use crate::disk::SimulatedDisk;
use crate::identity::Sleeper;
use crate::submitter::Submitter;

/// Pages of a journal: 128 MiB; an eighth of the disk if that is less.
const PAGES: u64 = (128 << 20) / PAGE_BYTES;
/// Pages of a block group, which has its own block bitmap and inodes: 128 MiB, as in ext4.
const GROUP_PAGES: u64 = (128 << 20) / PAGE_BYTES;

/// Number of a transaction, counted from 1.
pub(super) type TransactionId = u64;

/// Changes that become durable together.
#[derive(Default)]
struct Transaction {
    /// Changed pages of metadata.
    blocks: BTreeSet<u64>,
    /// Processes that wait for its commit.
    waiters: Vec<u32>,
    status: Status,
}

/// The current commit.
struct Commit {
    transaction: Transaction,
    /// Journal pages still to be written.
    todo: VecDeque<PageRange>,
    /// Whether the commit record is still to be submitted.
    needs_record: bool,
    in_flight: u32,
}

/// The journal of a disk, and the thread that writes it.
pub(super) struct Journal {
    submitter: Submitter,
    /// Common fields of its bios.
    pattern: Bio,
    disk_sectors: u64,
    pages_max: u64,
    /// Position of the journal; the metadata follow it.
    region: PageRange,
    /// Start of the next commit.
    head: u64,
    running_id: TransactionId,
    running: Transaction,
    /// Whether a process waits for the running transaction.
    is_commit_requested: bool,
    commit: Option<Commit>,
    /// Whether its thread has work and is not scheduled yet.
    is_due: bool,
}

impl Journal {
    pub(super) fn new(number: u32, io_context: u32, disk: &SimulatedDisk, pages_max: u64) -> Journal {
        let disk_sectors = disk.driver.shape().capacity_sectors;
        let disk_pages = disk_sectors / PAGE_SECTORS;
        let first = disk_pages / 2;
        Journal {
            submitter: Submitter::new(&disk.queue, Sleeper::Journal(number).waiter()),
            pattern: Bio {
                io_context: IoContextId(io_context),
                cgroup: CgroupId::ROOT,
                ioprio: IoPriority::DEFAULT,
                ..Bio::new(Op::Write, Sector(0), 0)
            },
            disk_sectors,
            pages_max,
            region: PageRange { first, end: first + PAGES.min(disk_pages / 8).max(1) },
            head: first,
            running_id: 1,
            running: Transaction::default(),
            is_commit_requested: false,
            commit: None,
            is_due: false,
        }
    }

    /// Records a change of pages of a file, which dirties the inode and the block bitmap. Returns the transaction.
    pub(super) fn changes(&mut self, pages: PageRange) -> TransactionId {
        let last_page = self.disk_sectors / PAGE_SECTORS - 1;
        for group in pages.first / GROUP_PAGES..pages.end.div_ceil(GROUP_PAGES) {
            let bitmap_page = self.region.end + 2 * group;
            self.running.blocks.extend([bitmap_page.min(last_page), (bitmap_page + 1).min(last_page)]);
        }
        self.running_id
    }

    /// Makes a process wait for the commit of its changes. Returns `false` if they are already committed.
    pub(super) fn wait(&mut self, changed_in: TransactionId, process: u32) -> bool {
        if changed_in == self.running_id {
            self.running.waiters.push(process);
            self.request_commit();
            return true;
        }
        match &mut self.commit {
            Some(commit) if changed_in + 1 == self.running_id => {
                commit.transaction.waiters.push(process);
                true
            }
            _ => false,
        }
    }

    /// The parts of a file that fsync may write: those before and after the metadata, if the file includes them.
    pub(super) fn data_ranges_of_fsync(&self, file: PageRange) -> [PageRange; 2] {
        let (first, end) =
            (self.region.end, self.region.end + 2 * (self.disk_sectors / PAGE_SECTORS).div_ceil(GROUP_PAGES));
        [PageRange { end: file.end.min(first), ..file }, PageRange { first: file.first.max(end), ..file }]
    }

    /// Requests a commit of the running transaction, after the current commit if there is one.
    fn request_commit(&mut self) {
        self.is_commit_requested = true;
        self.is_due |= self.commit.is_none();
    }

    /// Requests a periodic commit of the running transaction, if it contains changes.
    fn commit_in_time(&mut self) {
        if !self.running.blocks.is_empty() {
            self.request_commit();
        }
    }

    /// The next pages to write, with their flags.
    fn next(&mut self) -> Option<(PageRange, BioFlags)> {
        if self.commit.is_none() && std::mem::take(&mut self.is_commit_requested) {
            self.running_id += 1;
            let transaction = std::mem::take(&mut self.running);
            // One more page for the descriptor of these blocks.
            let todo = self.allocate(transaction.blocks.len() as u64 + 1);
            self.commit = Some(Commit { transaction, todo, needs_record: true, in_flight: 0 });
        }
        let commit = self.commit.as_mut()?;
        let (pages, flags) = if let Some(pages) = commit.todo.pop_front() {
            (pages, BioFlags::NONE)
        } else if commit.in_flight == 0 && std::mem::take(&mut commit.needs_record) {
            (self.allocate(1).pop_front()?, BioFlags::PREFLUSH.with(BioFlags::FUA))
        } else {
            return None;
        };
        self.commit.as_mut()?.in_flight += 1;
        Some((pages, flags.with(BioFlags::SYNC).with(BioFlags::META).with(BioFlags::IDLE)))
    }

    /// Allocates this many journal pages, wrapping at the end, in pieces that fit into a bio.
    fn allocate(&mut self, pages: u64) -> VecDeque<PageRange> {
        let pages = pages.min(self.region.pages());
        if self.head + pages > self.region.end {
            self.head = self.region.first;
        }
        let (first, end) = (self.head, self.head + pages);
        self.head = end;
        let starts = (first..end).step_by(self.pages_max as usize);
        starts.map(|first| PageRange { first, end: end.min(first + self.pages_max) }).collect()
    }

    /// A write of the commit has completed. Returns the committed transaction if that was the last.
    fn ended(&mut self, status: Status) -> Option<Transaction> {
        let commit = self.commit.as_mut()?;
        if status != Status::Ok {
            commit.transaction.status = status;
        }
        commit.in_flight -= 1;
        if commit.in_flight > 0 || !commit.todo.is_empty() {
            return None;
        }
        if commit.needs_record {
            self.is_due = true;
            return None;
        }
        self.is_due |= self.is_commit_requested;
        self.commit.take().map(|commit| commit.transaction)
    }
}

impl PageCache {
    /// A disk whose journal has work, if any; its thread is then considered scheduled.
    pub(crate) fn next_journal(&mut self) -> Option<u32> {
        let mut due = (0..).zip(&mut self.journals).filter(|(_, journal)| journal.is_due);
        let (disk, journal) = due.next()?;
        journal.is_due = false;
        Some(disk)
    }

    /// Commits the changes of a disk's processes periodically, although none waits for them.
    pub(crate) fn commit_in_time(&mut self, disk: u32) {
        if let Some(journal) = self.journals.get_mut(disk as usize) {
            journal.commit_in_time();
        }
    }

    /// Runs the journal thread of a disk as far as possible.
    pub(crate) fn commit<E: Env>(&mut self, cx: &mut Cx<'_, E>, queue: &AnyQueue<Local>, disk: u32) {
        let PageCache { journals, in_flight, summary, .. } = self;
        let Some(journal) = journals.get_mut(disk as usize) else { return };
        loop {
            if !journal.submitter.is_parked() {
                let Some((pages, flags)) = journal.next() else { break };
                summary.journal_bytes += pages.pages() * PAGE_BYTES;
                let sectors = sectors_of(pages, journal.disk_sectors);
                let number = in_flight.start(disk as usize, Purpose::Journal, pages, sectors, None);
                let Some(page_bio) = in_flight.get(number) else { break };
                let bio = bio(number, page_bio, Op::Write, flags, &journal.pattern, journal.disk_sectors);
                journal.submitter.plug();
                journal.submitter.begin(bio);
            }
            if journal.submitter.make_progress(queue, cx) == Submitted::Parked {
                return;
            }
        }
        journal.submitter.unplug(queue, cx);
    }

    /// A write of a disk's journal has completed. Returns the processes that waited for the commit, and its status.
    pub(super) fn journal_ended(&mut self, disk: usize, status: Status, now: Instant) -> (Vec<u32>, Status) {
        let PageCache { journals, pages, summary, .. } = self;
        let Some(transaction) = journals[disk].ended(status) else { return (Vec::new(), status) };
        summary.commits += 1;
        for &first in &transaction.blocks {
            summary.written_bytes += PAGE_BYTES;
            let block = PageRange { first, end: first + 1 };
            summary.overwritten_bytes += pages.dirty_pages(disk, block, now) * PAGE_BYTES;
        }
        (transaction.waiters, transaction.status)
    }
}
