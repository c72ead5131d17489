//! Submitters other than processes: the page cache with its flushers and journals, the workers of `io.max`, the I/O
//! threads of virtual disks, and the threads of stacked devices. This is their whole interface to the event loop.
//!
//! Used by: `simulation::effects`.
//! Tests: `crates/sim/tests/page_cache.rs`, `crates/sim/tests/guests.rs`.

mod limits;
mod page_cache;
mod stacks;
mod transport;
mod virtual_disks;

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::{Instant, Waiter};
use hoistway_blk::watch::Probe;
use hoistway_load::process::Flows;

use super::{Simulation, opens_plug, wake};
use crate::cpu::Cpus;
use crate::disk::SimulatedDisk;
use crate::events::EventQueue;
use crate::identity::{Sleeper, is_from_stack, virtual_disk_of};
use crate::page_cache::PageCache;
use crate::stacks::Layers;
use crate::task::Task;

impl<P: Probe> Simulation<'_, P> {
    /// Starts the periodic work that begins with the load.
    pub(super) fn start_actors(&mut self) {
        self.schedule_periodic_flushers();
    }

    /// Runs an actor whose event is due.
    pub(super) fn act(&mut self, actor: Sleeper, setting: u32) {
        match actor {
            Sleeper::Task(number) => self.finish_wakeup(number),
            Sleeper::Flusher(disk) => self.run_flusher(disk, setting),
            Sleeper::Limits(disk) => self.release(disk),
            Sleeper::IoThread(disk) => self.run_io_thread(disk),
            Sleeper::Journal(disk) => self.write_journal(disk),
            Sleeper::StackThread(layer) => self.run_stack_thread(layer),
            Sleeper::CryptWork(work) => self.run_crypt_work(work),
        }
    }

    /// Wakes an actor or a process that sleeps for a tag.
    #[inline]
    pub(super) fn wake_sleeper(&mut self, waiter: Waiter) {
        match Sleeper::from_waiter(waiter) {
            Sleeper::Task(number) => self.wake(number),
            Sleeper::Flusher(disk) => self.schedule_flusher(disk),
            Sleeper::Limits(disk) => self.schedule_limit_worker(disk),
            Sleeper::IoThread(disk) => self.unpark_io_thread(disk),
            Sleeper::Journal(disk) => self.schedule_journal(disk),
            Sleeper::StackThread(layer) => self.wake_stack_thread(layer),
            // It sleeps for no tag.
            Sleeper::CryptWork(_) => {}
        }
    }
}

/// Context of a bio that has completed.
pub(super) struct BioEndContext<'a> {
    pub(super) now: Instant,
    pub(super) page_cache: &'a mut Option<Box<PageCache>>,
    pub(super) tasks: &'a mut [Task],
    pub(super) disks: &'a mut [SimulatedDisk],
    pub(super) cpus: &'a mut Cpus,
    pub(super) events: &'a mut EventQueue,
    pub(super) layers: &'a mut Option<Box<Layers>>,
    pub(super) flows: &'a mut Flows,
}

/// What the end of a bio means.
pub(super) struct BioEnd {
    /// Whether it counts as an I/O of the load.
    pub(super) counts: bool,
    /// Whether a process has something to reap now.
    pub(super) has_woken: bool,
}

impl BioEndContext<'_> {
    /// A part of a bio that no process submitted itself has completed. A bio of a virtual disk was already counted in the
    /// guest.
    #[cold]
    pub(super) fn bio_ended(&mut self, bio: &Bio, status: Status) -> BioEnd {
        if is_from_stack(bio) {
            return BioEnd { counts: true, has_woken: self.bio_of_stack_ended(bio, status) };
        }
        match virtual_disk_of(bio) {
            Some(disk) => self.bio_of_virtual_disk_ended(disk, bio, status),
            None => self.bio_of_page_cache_ended(bio, status),
        }
        BioEnd { counts: virtual_disk_of(bio).is_none(), has_woken: false }
    }
}
