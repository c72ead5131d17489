//! The journal of a disk's file system: what an fsync has to wait for beside the data of its file.
//!
//! What processes change of metadata goes into one running transaction. An fsync of a file with a change in it has it
//! committed, once the file's data is there; while another transaction commits it waits, and with it all that want the same,
//! so that one commit serves many. A commit writes the changed blocks one after the other into the journal, and when they are
//! there its record, which is written past the write cache after a flush. The blocks themselves are dirty pages from then on,
//! which flushers write back at their places.
//!
//! One thread for each disk does this. docs/page-cache.md says what of a file system is not here.

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

/// Pages of a journal: 128 MiB, or an eighth of a disk if that is less.
const PAGES: u64 = (128 << 20) / PAGE_BYTES;
/// Pages of a group of blocks, which has a map of its blocks and inodes of its own: 128 MiB, as in ext4.
const GROUP_PAGES: u64 = (128 << 20) / PAGE_BYTES;

/// A transaction's number. The first is 1.
pub(super) type TransactionId = u64;

/// Changes that come to the disk together.
#[derive(Default)]
struct Transaction {
    /// The pages of metadata.
    blocks: BTreeSet<u64>,
    /// Processes that wait for its commit.
    waiters: Vec<u32>,
    status: Status,
}

/// The current commit.
struct Commit {
    transaction: Transaction,
    /// What of the journal is still to be written.
    todo: VecDeque<PageRange>,
    /// Its record has not been put forward yet.
    needs_record: bool,
    in_flight: u32,
}

/// The journal of a disk, and the thread that writes it.
pub(super) struct Journal {
    submitter: Submitter,
    /// What its bios have in common.
    pattern: Bio,
    disk_sectors: u64,
    pages_max: u64,
    /// Where it lies. The metadata lie behind it.
    region: PageRange,
    /// Where the next commit begins.
    head: u64,
    running_id: TransactionId,
    running: Transaction,
    /// A process waits for what is running.
    is_wanted: bool,
    commit: Option<Commit>,
    /// Its thread has something to do, and has not been called yet.
    is_due: bool,
}

impl Journal {
    pub(super) fn new(number: u32, io_context: u32, disk: &SimulatedDisk, pages_max: u64) -> Journal {
        let disk_sectors = disk.driver.shape().capacity_sectors;
        let disk_pages = disk_sectors / PAGE_SECTORS;
        let first = disk_pages / 2;
        Journal {
            submitter: Submitter::new(&disk.front, Sleeper::Journal(number).waiter()),
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
            is_wanted: false,
            commit: None,
            is_due: false,
        }
    }

    /// A process changes pages of a file: the inode, and the map of the blocks. Returns in which transaction that is.
    pub(super) fn changes(&mut self, pages: PageRange) -> TransactionId {
        let last_page = self.disk_sectors / PAGE_SECTORS - 1;
        for group in pages.first / GROUP_PAGES..pages.end.div_ceil(GROUP_PAGES) {
            let place = self.region.end + 2 * group;
            self.running.blocks.extend([place.min(last_page), (place + 1).min(last_page)]);
        }
        self.running_id
    }

    /// Lets a process wait for the commit of its changes. Returns whether there is anything to wait for: not if that is
    /// over.
    pub(super) fn wait(&mut self, changed_in: TransactionId, process: u32) -> bool {
        if changed_in == self.running_id {
            self.running.waiters.push(process);
            self.want();
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

    /// What of a file an fsync may write: of one that lies around the metadata, that before and that behind them.
    pub(super) fn data_ranges_of_fsync(&self, file: PageRange) -> [PageRange; 2] {
        let (first, end) =
            (self.region.end, self.region.end + 2 * (self.disk_sectors / PAGE_SECTORS).div_ceil(GROUP_PAGES));
        [PageRange { end: file.end.min(first), ..file }, PageRange { first: file.first.max(end), ..file }]
    }

    /// What is running is to be committed, as soon as nothing else is.
    fn want(&mut self) {
        self.is_wanted = true;
        self.is_due |= self.commit.is_none();
    }

    /// Commits the running transaction, for any process that waits for it.
    fn commit_in_time(&mut self) {
        if !self.running.blocks.is_empty() {
            self.want();
        }
    }

    /// What is to be written next.
    fn next(&mut self) -> Option<(PageRange, BioFlags)> {
        if self.commit.is_none() && std::mem::take(&mut self.is_wanted) {
            self.running_id += 1;
            let transaction = std::mem::take(&mut self.running);
            // A page more says which blocks these are.
            let todo = self.place(transaction.blocks.len() as u64 + 1);
            self.commit = Some(Commit { transaction, todo, needs_record: true, in_flight: 0 });
        }
        let commit = self.commit.as_mut()?;
        let written = if let Some(pages) = commit.todo.pop_front() {
            (pages, BioFlags::NONE)
        } else if commit.in_flight == 0 && std::mem::take(&mut commit.needs_record) {
            (self.place(1).pop_front()?, BioFlags::PREFLUSH.with(BioFlags::FUA))
        } else {
            return None;
        };
        self.commit.as_mut()?.in_flight += 1;
        Some((written.0, written.1.with(BioFlags::SYNC).with(BioFlags::META).with(BioFlags::IDLE)))
    }

    /// This many pages of the journal, which begins anew at its end, in pieces that fit into a bio.
    fn place(&mut self, pages: u64) -> VecDeque<PageRange> {
        let pages = pages.min(self.region.pages());
        if self.head + pages > self.region.end {
            self.head = self.region.first;
        }
        let (first, end) = (self.head, self.head + pages);
        self.head = end;
        let starts = (first..end).step_by(self.pages_max as usize);
        starts.map(|first| PageRange { first, end: end.min(first + self.pages_max) }).collect()
    }

    /// Something of the commit is there. Returns what is committed now, if that was the last.
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
        self.is_due |= self.is_wanted;
        self.commit.take().map(|commit| commit.transaction)
    }
}

impl PageCache {
    /// A disk whose journal has something to do, if there is one: its thread counts as called then.
    pub(crate) fn next_journal(&mut self) -> Option<u32> {
        let mut due = (0..).zip(&mut self.journals).filter(|(_, journal)| journal.is_due);
        let (disk, journal) = due.next()?;
        journal.is_due = false;
        Some(disk)
    }

    /// What a disk's processes have changed is committed, although none waits for it.
    pub(crate) fn commit_in_time(&mut self, disk: u32) {
        if let Some(journal) = self.journals.get_mut(disk as usize) {
            journal.commit_in_time();
        }
    }

    /// The thread of a disk's journal writes as far as it gets.
    pub(crate) fn commit<E: Env>(&mut self, cx: &mut Cx<'_, E>, front: &AnyQueue<Local>, disk: u32) {
        let PageCache { journals, flights, summary, .. } = self;
        let Some(journal) = journals.get_mut(disk as usize) else { return };
        loop {
            if !journal.submitter.is_parked() {
                let Some((pages, flags)) = journal.next() else { break };
                summary.journal_bytes += pages.pages() * PAGE_BYTES;
                let sectors = sectors_of(pages, journal.disk_sectors);
                let number = flights.start(disk as usize, Purpose::Journal, pages, sectors, None);
                let Some(flight) = flights.get(number) else { break };
                let bio = bio(number, flight, Op::Write, flags, &journal.pattern, journal.disk_sectors);
                journal.submitter.plug();
                journal.submitter.begin(bio);
            }
            if journal.submitter.make_progress(front, cx) == Submitted::Parked {
                return;
            }
        }
        journal.submitter.unplug(front, cx);
    }

    /// A write of a disk's journal has ended. Returns the processes that have waited for that, and how the commit has ended.
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
