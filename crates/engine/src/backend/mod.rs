//! What carries commands out, behind two small traits: a [`Backend`] is a target as all threads see it, a [`Station`] is one
//! worker's access to it.

mod file;
mod memory;
mod null;
mod simulated;
mod sparse;

#[cfg(any(test, feature = "faults"))]
pub(crate) use file::{DataMap, FileStation};
pub use file::{FileSpec, Files, OpenError};
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
    /// What does not change.
    fn shape(&self) -> &Shape;

    /// What a worker works with. Called for worker 0, 1, ... before any of them runs.
    ///
    /// # Errors
    /// If the system refuses something that it needs, a ring say.
    fn station(&self, worker: usize) -> io::Result<Box<dyn Station>>;

    /// A buffer of `len` zeroes for requests to this target: in memory that its stations know beforehand, if there is such.
    fn buffer(&self, len: usize) -> Buffer {
        Buffer::zeroed(len)
    }

    /// Which parts of a range of sectors hold data and which are holes that read as zeroes, in order and without gaps: all of them,
    /// or the first `most`, one at least. Each may take a while, on the caller's thread.
    ///
    /// # Errors
    /// If the target cannot be asked.
    fn extents(&self, range: Range<Sector>, _most: usize) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { bytes: (range.end - range.start) * SECTOR_BYTES, is_hole: false }])
    }

    /// All of the data and holes of a range that is about to be read. Where finding holes takes long, they may count as data.
    ///
    /// # Errors
    /// As [`extents`](Self::extents).
    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        self.extents(range, usize::MAX)
    }
}

/// A part of a volume that is all data or all hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it is a hole: it reads as zeroes and takes no space.
    pub is_hole: bool,
}

/// What a target is like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its volumes, in the order of their sectors. What lies between them does not exist.
    pub volumes: Vec<VolumeShape>,
    /// What a command may span, and what the target can do. The capacity is the end of the last volume.
    pub limits: Limits,
    /// Hardware queues, at most: as many as workers if it does not matter.
    pub hw_queues_max: u16,
    /// Commands that each hardware queue holds.
    pub queue_depth: u32,
    /// Whether the depth is that of all hardware queues together.
    pub host_wide_tags: bool,
}

/// A volume: a stretch of the target's sectors that clients see as a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeShape {
    /// Where it begins.
    pub first: Sector,
    /// Its length in sectors, of whole blocks.
    pub sectors: u64,
    /// Its length in bytes. The last block may have fewer: the rest of it reads as zeroes, and writes to that are dropped.
    pub bytes: u64,
    /// Whether it cannot be written.
    pub read_only: bool,
}

/// A command, as a request has become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Its number: of commands in flight, on whatever worker, no two have the same. Less than `hw_queues * queue_depth`.
    pub id: u32,
    /// The hardware queue that it comes from.
    pub queue: u16,
    /// Its driver tag.
    pub tag: u32,
    /// What to do.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 for a flush.
    pub sectors: u32,
    /// A write that ends when its data is durable.
    pub fua: bool,
    /// What kind of zeroes a write-zeroes is after.
    pub zeroing: Zeroing,
}

/// What a write-zeroes allows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Zeroing {
    /// The space need not stay allocated.
    pub may_unmap: bool,
    /// Rather fail than write zeroes.
    pub fast_only: bool,
}

/// What a station makes of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// It has ended.
    Done(Status),
    /// It is in flight; [`Station::reap`] will report its end.
    Queued,
    /// There is no room until an in-flight command of this target ends.
    Full,
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The command's.
    pub id: u32,
    /// How it ended.
    pub status: Status,
}

/// One worker's access to a target. All calls come from that worker's thread.
pub trait Station: Send {
    /// Starts a command. Its data stays where it is until the command has ended.
    fn start(&mut self, now: Instant, command: &Command, data: Segments<'_>) -> Started;

    /// Submits what was started, and takes what has ended. Never sleeps.
    fn reap(&mut self, now: Instant, ended: &mut Vec<Ended>);

    /// When it has to be called again even if nothing wakes it: for targets that follow the clock of the engine.
    fn next_at(&self) -> Option<Instant> {
        None
    }

    /// Sleeps until a command ends, the station is woken, or `most` has passed.
    fn sleep(&mut self, most: Option<Duration>);

    /// What becomes readable whenever a command ends, for a station around this one that sleeps by its own means; `None` if
    /// commands end only at [`next_at`](Self::next_at) or by other threads that [wake](Self::wake_instead) it.
    ///
    /// # Errors
    /// If the system refuses it.
    fn descriptor(&mut self) -> io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }

    /// From now on [`sleep`](Self::sleep) is not called, because a station around this one sleeps by its own means: other
    /// threads that have something for this one wake that instead.
    fn wake_instead(&mut self, _waker: Arc<dyn Wake>) {}

    /// What wakes it.
    fn waker(&self) -> Arc<dyn Wake>;
}

impl VolumeShape {
    /// One that can be written, of this many sectors.
    #[must_use]
    pub fn new(first: Sector, sectors: u64) -> VolumeShape {
        VolumeShape { first, sectors, bytes: sectors * SECTOR_BYTES, read_only: false }
    }
}

impl Shape {
    /// Where the last volume ends.
    #[must_use]
    pub fn end(&self) -> Sector {
        self.volumes.last().map_or(Sector(0), |volume| Sector(volume.first.0 + volume.sectors))
    }
}

impl<B: Backend + ?Sized> Backend for Box<B> {
    fn shape(&self) -> &Shape {
        (**self).shape()
    }

    fn station(&self, worker: usize) -> io::Result<Box<dyn Station>> {
        (**self).station(worker)
    }

    fn buffer(&self, len: usize) -> Buffer {
        (**self).buffer(len)
    }

    fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        (**self).extents_of_read(range)
    }

    fn extents(&self, range: Range<Sector>, most: usize) -> io::Result<Vec<Extent>> {
        (**self).extents(range, most)
    }
}
