//! Verify: reads back what was written, in the same order (tried with fio 3.33).
//!
//! No writes are remembered: a second generator follows the first one and turns its writes into reads.

use hoistway_blk::bio::Op;

use super::Generator;
use crate::Io;

/// The verify reads of a process.
#[derive(Debug)]
pub(super) struct Verify {
    /// A copy of the generator at the position of the verification.
    follower: Box<Generator>,
    /// Verify after at most this many writes; otherwise at the end of each pass.
    backlog: u64,
    unread: u64,
    is_reading: bool,
    /// The work of one pass.
    pass: Work,
    /// The totals of the process at which the current pass ends.
    pass_end: Work,
}

/// An amount of I/O.
#[derive(Clone, Copy, Debug)]
struct Work {
    bytes: u64,
    ios: u64,
}

impl Verify {
    /// For a process at its start that makes `loops` passes over its region.
    pub(super) fn new(follower: Generator, backlog: u64, loops: u64) -> Verify {
        let per_pass = |total: u64| if total == u64::MAX { total } else { total / loops.max(1) };
        let pass = Work { bytes: per_pass(follower.bytes_max), ios: per_pass(follower.ios_max) };
        let follower = Box::new(follower);
        Verify { follower, backlog, unread: 0, is_reading: false, pass, pass_end: pass }
    }

    /// The process has issued an I/O.
    pub(super) fn issued(&mut self, op: Op) {
        self.unread += u64::from(op == Op::Write);
    }

    /// The next verify read, if one is due after this number of bytes and I/Os, or at the end of the job.
    pub(super) fn next(&mut self, bytes: u64, ios: u64, is_over: bool) -> Option<Io> {
        let is_end_of_pass = is_over || bytes >= self.pass_end.bytes || ios >= self.pass_end.ios;
        self.is_reading |= self.unread > 0 && (is_end_of_pass || self.unread >= self.backlog);
        while self.is_reading && self.follower.issued_ios < ios {
            let io = self.follower.next()?;
            if io.op == Op::Write {
                return Some(Io { op: Op::Read, ..io });
            }
        }
        if self.is_reading {
            (self.is_reading, self.unread) = (false, 0);
            if is_end_of_pass {
                self.pass_end =
                    Work { bytes: bytes.saturating_add(self.pass.bytes), ios: ios.saturating_add(self.pass.ios) };
            }
        }
        None
    }
}
