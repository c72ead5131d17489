//! What submits beside processes, or instead of them: the page cache with its flushers, the workers of limits, the threads
//! behind virtual disks. The event loop knows them by these questions only.

mod limits;
mod page_cache;
mod virtual_disks;

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::{Instant, Waiter};
use hoistway_blk::watch::Probe;

use super::{Simulation, opens_plug, wake};
use crate::cpu::Cpus;
use crate::disk::SimulatedDisk;
use crate::events::EventQueue;
use crate::identity::{Sleeper, virtual_disk_of};
use crate::page_cache::PageCache;
use crate::task::Task;

impl<P: Probe> Simulation<'_, P> {
    /// What begins with the load.
    pub(super) fn start_actors(&mut self) {
        self.set_flushers();
    }

    /// The moment of one of them has come.
    pub(super) fn act(&mut self, actor: Sleeper, setting: u32) {
        match actor {
            Sleeper::Task(number) => self.woken(number),
            Sleeper::Flusher(disk) => self.flusher_comes(disk, setting),
            Sleeper::Limits(disk) => self.release(disk),
            Sleeper::IoThread(disk) => self.run_io_thread(disk),
            Sleeper::Journal(disk) => self.write_journal(disk),
        }
    }

    /// One of them, or a process, need not sleep any longer.
    #[inline]
    pub(super) fn wake_sleeper(&mut self, waiter: Waiter) {
        match Sleeper::of(waiter) {
            Sleeper::Task(number) => self.wake(number),
            Sleeper::Flusher(disk) => self.set_flusher(disk),
            Sleeper::Limits(disk) => self.set_worker_of_limits(disk),
            Sleeper::IoThread(disk) => self.unpark_io_thread(disk),
            Sleeper::Journal(disk) => self.set_journal(disk),
        }
    }
}

/// What is around a bio that ends.
pub(super) struct BioEndContext<'a> {
    pub(super) now: Instant,
    pub(super) page_cache: &'a mut Option<Box<PageCache>>,
    pub(super) tasks: &'a mut [Task],
    pub(super) disks: &'a mut [SimulatedDisk],
    pub(super) cpus: &'a mut Cpus,
    pub(super) events: &'a mut EventQueue,
}

impl BioEndContext<'_> {
    /// A part of a bio has ended that no process has submitted itself. Returns whether it counts as an I/O of the load: one of
    /// a virtual disk has counted above.
    #[cold]
    pub(super) fn bio_ended(&mut self, bio: &Bio, status: Status) -> bool {
        match virtual_disk_of(bio) {
            Some(disk) => self.bio_of_virtual_disk_ended(disk, bio, status),
            None => self.bio_of_page_cache_ended(bio, status),
        }
        virtual_disk_of(bio).is_none()
    }
}
