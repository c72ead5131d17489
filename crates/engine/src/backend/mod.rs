//! Targets, behind two small traits: a [`Backend`] is a target shared by all threads, a [`IoChannel`] is one worker's access to it.
//!
//! Used by: `worker`, `open_volume`, `engine`, `slots`; crates `serve`, `calibrate`.
//! Tests: `crates/engine/src/backend/` (in its files), `crates/engine/tests/files.rs`, `crates/engine/tests/jobs.rs`.

mod file;
mod memory;
mod null;
mod simulated;
mod sparse;

pub use file::{DiskId, FileSpec, Files, OpenError};
#[cfg(any(test, feature = "faults"))]
pub(crate) use file::{FileChannel, FileListing, FileTable};
pub use memory::Memory;
pub use null::Null;
pub use simulated::Simulated;

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use hoistway_blk::bio::{Limits, Op, Status};
use hoistway_blk::ground::{Instant, SECTOR_BYTES, Sector};

use crate::memory::{Buffer, Segments};
use crate::wake::Wake;

/// A target.
pub trait Backend: Send + Sync {
    /// Its constant properties.
    fn shape(&self) -> &Shape;

    /// All volumes since the start, in an order that does not change. Closed ones keep their place.
    fn volumes(&self) -> Vec<VolumeShape> {
        self.shape().volumes.clone()
    }

    /// Opens a file as a further volume. Returns its index, and features that are unavailable there, as sentences.
    ///
    /// # Errors
    /// If the file cannot be opened, or the target cannot have further volumes.
    fn open(&self, file: &FileSpec) -> Result<(usize, Vec<String>), OpenError> {
        Err(OpenError::Unfit { path: file.path.clone(), why: "the target cannot have further volumes".into() })
    }

    /// Gives a volume the length of its file, if that has become longer.
    ///
    /// # Errors
    /// If the length cannot be found, or there is no room for it.
    fn grow(&self, _volume: usize) -> Result<(), OpenError> {
        Ok(())
    }

    /// Closes a volume: the file and its lock are released, and commands that have not reached the file fail.
    fn close(&self, _volume: usize) {}

    /// Makes the channel of a worker. Called for workers 0, 1, ... before any of them runs.
    ///
    /// # Errors
    /// If the system refuses a resource, such as a ring.
    fn channel(&self, worker: usize) -> io::Result<Box<dyn IoChannel>>;

    /// A buffer of `len` zeroes for requests to this target, in memory registered with its channels if possible.
    fn buffer(&self, len: usize) -> Buffer {
        Buffer::zeroed(len)
    }

    /// Which parts of a range of sectors hold data and which are holes that read as zeroes, in order and without gaps: all parts,
    /// or at least the first `extents_max`, of which there is at least one. Finding each may take time, on the caller's thread.
    ///
    /// # Errors
    /// If the target cannot find them.
    fn extents(&self, range: Range<Sector>, _extents_max: usize) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { bytes: (range.end - range.start) * SECTOR_BYTES, is_hole: false }])
    }

    /// All data and holes of a range that is about to be read. If finding holes takes too long, they may count as data.
    ///
    /// # Errors
    /// The same as [`extents`](Self::extents).
    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        self.extents(range, usize::MAX)
    }
}

/// A part of a volume that consists of either data or a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it is a hole: it reads as zeroes and takes no space.
    pub is_hole: bool,
}

/// The constant properties of a target.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its volumes at the start, ordered by sector. The sectors between them do not exist.
    pub volumes: Vec<VolumeShape>,
    /// The limits of a command, and the features of the target. The capacity is the end of the last volume, or
    /// beyond it if volumes may be added.
    pub limits: Limits,
    /// Maximum hardware queues; the number of workers if the target has no limit.
    pub hw_queues_max: u16,
    /// Commands per hardware queue.
    pub queue_depth: u32,
    /// Whether all hardware queues share the depth.
    pub host_wide_tags: bool,
}

/// A volume: a range of the target's sectors that clients see as a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeShape {
    /// Its first sector.
    pub first: Sector,
    /// Its length in sectors, of whole blocks.
    pub sectors: u64,
    /// Its length in bytes. The last block may have fewer bytes: its rest reads as zeroes, and writes to the rest are
    /// dropped.
    pub bytes: u64,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// A command, made from a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Its number, unique among all commands in flight on all workers. Less than `hw_queues * queue_depth`.
    pub id: u32,
    /// Its hardware queue.
    pub queue: u16,
    /// Its driver tag.
    pub tag: u32,
    /// The operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// Whether it ends only when its data is durable.
    pub fua: bool,
    /// For a write-zeroes: how it may zero.
    pub zeroing: Zeroing,
}

/// How a write-zeroes may zero.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Zeroing {
    /// Whether the space may be deallocated.
    pub may_unmap: bool,
    /// Whether to fail rather than write zeroes as data.
    pub fast_only: bool,
}

/// The result of starting a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// It has ended.
    Done(Status),
    /// It is in flight; [`IoChannel::reap`] will return its end.
    Queued,
    /// There is no room until another command of this target ends.
    Full,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The number of the command.
    pub id: u32,
    /// Its status.
    pub status: Status,
}

/// One worker's access to a target, as an I/O channel of SPDK is. All calls come from that worker's thread.
pub trait IoChannel: Send {
    /// Starts a command. Its data must stay in place until the command has ended.
    fn start(&mut self, now: Instant, command: &Command, data: Segments<'_>) -> Started;

    /// Submits started commands, and returns those that have ended. Never sleeps.
    fn reap(&mut self, now: Instant, ended: &mut Vec<Ended>);

    /// When it must be called again even if nothing wakes it: for targets that follow the engine's clock.
    fn next_at(&self) -> Option<Instant> {
        None
    }

    /// Sleeps until a command ends, the channel is woken, or `timeout` has passed.
    fn sleep(&mut self, timeout: Option<Duration>);

    /// A descriptor that becomes readable whenever a command ends, for a wrapping channel that sleeps in its own poller;
    /// `None` if commands end only at [`next_at`](Self::next_at) or through other threads that [wake](Self::wake_instead)
    /// it.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    fn descriptor(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }

    /// Makes [`sleep`](Self::sleep) end when this descriptor is readable, too; returns whether it can. A wrapping channel whose poller it
    /// is then sleeps here instead, and as soon as there is nothing else to do, so that one system call starts commands and waits for them.
    ///
    /// # Errors
    /// If the system refuses a descriptor.
    fn watch(&mut self, _descriptor: BorrowedFd<'_>) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether the watched descriptor has been readable since the last call.
    fn take_readiness(&mut self) -> bool {
        false
    }

    /// From now on [`sleep`](Self::sleep) is not called, because a wrapping channel sleeps instead: other threads that
    /// want to wake this channel must wake that one.
    fn wake_instead(&mut self, _waker: Arc<dyn Wake>) {}

    /// The waker of this channel.
    fn waker(&self) -> Arc<dyn Wake>;
}

impl VolumeShape {
    /// A writable volume of this many sectors.
    #[must_use]
    pub fn new(first: Sector, sectors: u64) -> VolumeShape {
        VolumeShape { first, sectors, bytes: sectors * SECTOR_BYTES, read_only: false }
    }
}

impl Shape {
    /// The end of the last volume.
    #[must_use]
    pub fn end(&self) -> Sector {
        self.volumes.last().map_or(Sector(0), |volume| Sector(volume.first.0 + volume.sectors))
    }
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn shape(&self) -> &Shape {
        (**self).shape()
    }

    fn volumes(&self) -> Vec<VolumeShape> {
        (**self).volumes()
    }

    fn open(&self, file: &FileSpec) -> Result<(usize, Vec<String>), OpenError> {
        (**self).open(file)
    }

    fn grow(&self, volume: usize) -> Result<(), OpenError> {
        (**self).grow(volume)
    }

    fn close(&self, volume: usize) {
        (**self).close(volume);
    }

    fn channel(&self, worker: usize) -> io::Result<Box<dyn IoChannel>> {
        (**self).channel(worker)
    }

    fn buffer(&self, len: usize) -> Buffer {
        (**self).buffer(len)
    }

    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        (**self).extents_of_read(range)
    }

    fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        (**self).extents(range, extents_max)
    }
}
