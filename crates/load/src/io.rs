//! One I/O.
//!
//! Used by: `process`, `generator`, `replay`, `pace`; crates `program`, `fio`.
//! Tests: `crates/load/tests/process.rs`.

use hoistway_blk::bio::{IoPriority, Op};

/// One I/O of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// [`Op::Read`], [`Op::Write`], [`Op::Discard`] (a trim), or [`Op::Flush`] (an fsync; how it is called depends on
    /// the [engine](crate::Fsync)). The block layer gets a flush as an empty write with PREFLUSH.
    pub op: Op,
    /// The device: index into [`Process::files`](crate::Process::files).
    pub file: u8,
    /// The I/O's own priority; [`IoPriority::UNSET`] if it has none.
    pub priority: IoPriority,
    /// Length; 0 for a flush.
    pub bytes: u32,
    /// First byte on the device; 0 for a flush.
    pub offset_bytes: u64,
}

/// The lane of an operation: reads 0, writes 1, trims 2; `None` for a flush.
#[inline]
pub(crate) fn lane_of(op: Op) -> Option<usize> {
    // A table, because branches on the random direction of a mix are unpredictable.
    const LANES: [u8; 10] = [0, 1, 3, 2, 3, 3, 3, 3, 3, 1];
    let lane = usize::from(LANES[op as usize]);
    (lane < 3).then_some(lane)
}
