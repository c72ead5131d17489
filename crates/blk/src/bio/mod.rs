//! The bio: the unit of I/O that submitters submit, and its completion status.
//!
//! Used by: `schedulers`, `queue`, `policy`, `request`, `caller` and others; crates `engine`, `sim`, `trace`, `legacy`, `load` and others.
//! Tests: below, `crates/blk/src/bio/` (in its files).

pub(crate) mod check;
pub(crate) mod ioprio;
pub(crate) mod limits;
pub(crate) mod split;

pub use ioprio::{CgroupPriority, IoPriority, PriorityClass};
pub use limits::Limits;

use crate::ground::ids::{CgroupId, IoContextId, Sector};

/// The operation of a bio or request. Passthrough and zone operations are out of scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    /// Data from the device.
    Read = 0,
    /// Data to the device.
    Write = 1,
    /// Make all completed writes durable. Only the flush machinery issues it: an fsync arrives as an *empty
    /// write* with [`BioFlags::PREFLUSH`].
    Flush = 2,
    /// The sectors' content is no longer needed.
    Discard = 3,
    /// Zero the sectors without transferring zeroes.
    WriteZeroes = 9,
}

/// The two directions for schedulers, statistics and merge rules: discards and write-zeroes are writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Direction {
    /// From the device.
    Read = 0,
    /// To the device, or a discard.
    Write = 1,
}

impl Op {
    /// Its name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Discard => "discard",
            Op::WriteZeroes => "write_zeroes",
        }
    }

    /// The data direction. A flush command counts as a read by the kernel's numbering, but is never scheduled.
    #[inline]
    #[must_use]
    pub const fn direction(self) -> Direction {
        if self as u8 & 1 == 1 { Direction::Write } else { Direction::Read }
    }
}

impl Direction {
    /// Both, reads first.
    pub const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

    /// 0 for reads, 1 for writes.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The opposite direction.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Direction {
        match self {
            Direction::Read => Direction::Write,
            Direction::Write => Direction::Read,
        }
    }
}

/// Flags of a bio, and of the request made from it: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct BioFlags(pub u32);

impl BioFlags {
    /// No flag.
    pub const NONE: BioFlags = BioFlags(0);
    /// A task waits for it.
    pub const SYNC: BioFlags = BioFlags(1 << 0);
    /// Metadata of a file system.
    pub const META: BioFlags = BioFlags(1 << 1);
    /// Boosted: an important task waits.
    pub const PRIO: BioFlags = BioFlags(1 << 2);
    /// Never merge.
    pub const NOMERGE: BioFlags = BioFlags(1 << 3);
    /// More I/O will follow. Together with `SYNC` it marks a direct write.
    pub const IDLE: BioFlags = BioFlags(1 << 4);
    /// Complete only when the data is on stable media.
    pub const FUA: BioFlags = BioFlags(1 << 5);
    /// First make everything durable that completed before.
    pub const PREFLUSH: BioFlags = BioFlags(1 << 6);
    /// Read-ahead: may be dropped.
    pub const RAHEAD: BioFlags = BioFlags(1 << 7);
    /// Background write-back.
    pub const BACKGROUND: BioFlags = BioFlags(1 << 8);
    /// Never sleep: fail if the bio would have to wait.
    pub const NOWAIT: BioFlags = BioFlags(1 << 9);
    /// The submitter will poll for the completion.
    pub const POLLED: BioFlags = BioFlags(1 << 10);
    /// Swap traffic.
    pub const SWAP: BioFlags = BioFlags(1 << 11);

    /// Whether all bits of `flags` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, flags: BioFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any bit of `flags` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, flags: BioFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// The union of both sets.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: BioFlags) -> BioFlags {
        BioFlags(self.0 | flags.0)
    }

    /// These flags without `flags`.
    #[inline]
    #[must_use]
    pub const fn without(self, flags: BioFlags) -> BioFlags {
        BioFlags(self.0 & !flags.0)
    }
}

/// Whether an I/O is synchronous: every read, and everything with SYNC, FUA or PREFLUSH (BL-10 to BL-12).
#[inline]
#[must_use]
pub const fn is_sync(op: Op, flags: BioFlags) -> bool {
    let waited = BioFlags::SYNC.with(BioFlags::FUA).with(BioFlags::PREFLUSH);
    matches!(op, Op::Read) || flags.intersects(waited)
}

/// Whether a bio or request asks for durability: a write with PREFLUSH or FUA.
#[inline]
#[must_use]
pub const fn is_flush_type(op: Op, flags: BioFlags) -> bool {
    matches!(op, Op::Write) && flags.intersects(BioFlags::PREFLUSH.with(BioFlags::FUA))
}

/// One I/O as submitted. Plain data: it moves into a request and is returned, by value, in
/// [`Effect::EndBio`](crate::drive::Effect::EndBio).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bio {
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 for an empty flush.
    pub sectors: u32,
    /// Physical segments of its data.
    pub segments: u16,
    /// The operation.
    pub op: Op,
    /// Lifetime hint of the data, 0 if none.
    pub write_hint: u8,
    /// The flags.
    pub flags: BioFlags,
    /// Its priority.
    pub ioprio: IoPriority,
    /// The I/O context that it belongs to.
    pub io_context: IoContextId,
    /// The cgroup that it is charged to.
    pub cgroup: CgroupId,
    /// An arbitrary value by which the submitter recognises it.
    pub owner: u64,
}

impl Bio {
    /// A bio of one segment with default priority and no flags.
    #[must_use]
    pub fn new(op: Op, sector: Sector, sectors: u32) -> Bio {
        Bio {
            sector,
            sectors,
            segments: 1,
            op,
            write_hint: 0,
            flags: BioFlags::NONE,
            ioprio: IoPriority::DEFAULT,
            io_context: IoContextId(0),
            cgroup: CgroupId::ROOT,
            owner: 0,
        }
    }

    /// The sector after its last one.
    #[inline]
    #[must_use]
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }

    /// Whether a task waits for it.
    #[inline]
    #[must_use]
    pub fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }
}

/// The completion status of a bio or request: the kernel's block status codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Status {
    /// Success.
    #[default]
    Ok,
    /// Not supported by the device or queue (EOPNOTSUPP).
    NotSupported,
    /// The command timed out (ETIMEDOUT).
    Timeout,
    /// No space left (ENOSPC).
    NoSpace,
    /// The medium is damaged (ENODATA).
    Medium,
    /// A NOWAIT bio would have had to wait (EAGAIN).
    Again,
    /// The device is gone (ENODEV).
    Offline,
    /// The request is invalid (EINVAL).
    Invalid,
    /// Anything else (EIO).
    IoError,
}

impl Status {
    /// The errno that a system call would return, 0 for success.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Status::Ok => 0,
            Status::NotSupported => 95,
            Status::Timeout => 110,
            Status::NoSpace => 28,
            Status::Medium => 61,
            Status::Again => 11,
            Status::Offline => 19,
            Status::Invalid => 22,
            Status::IoError => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_sync_fua_or_preflush_writes_are_sync() {
        assert!(is_sync(Op::Read, BioFlags::NONE) && is_sync(Op::Read, BioFlags::RAHEAD));
        for flag in [BioFlags::SYNC, BioFlags::FUA, BioFlags::PREFLUSH] {
            assert!(is_sync(Op::Write, flag));
        }
        assert!(!is_sync(Op::Write, BioFlags::IDLE) && !is_sync(Op::Discard, BioFlags::NONE));
    }

    #[test]
    fn discards_and_write_zeroes_are_writes() {
        assert_eq!(Op::Discard.direction(), Direction::Write);
        assert_eq!(Op::WriteZeroes.direction(), Direction::Write);
        assert_eq!(Op::Read.direction(), Direction::Read);
    }
}
