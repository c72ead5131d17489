//! A number for each kind of request, as the statistics of cgroups show it.
//!
//! Rules: `cfq.md` 21; `bfq.md` 5.3.

use std::fmt::Write;
use std::ops::AddAssign;

use crate::bio::Op;
use crate::cgroup_weight::DeviceNumber;

/// The kind of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    /// Read, write, discard.
    op: u8,
    sync: bool,
}

impl Kind {
    /// That of a request.
    #[must_use]
    pub fn of(op: Op, sync: bool) -> Self {
        let op = match op {
            Op::Read => 0,
            Op::Discard => 2,
            _ => 1,
        };
        Kind { op, sync }
    }
}

/// A number by kind of request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByKind {
    /// Reads, writes, discards.
    by_op: [u64; 3],
    /// Async, sync.
    by_sync: [u64; 2],
}

impl ByKind {
    /// Adds to what its direction and its class have.
    pub fn add(&mut self, kind: Kind, amount: u64) {
        self.by_op[usize::from(kind.op)] += amount;
        self.by_sync[usize::from(kind.sync)] += amount;
    }

    /// Takes from them.
    pub fn subtract(&mut self, kind: Kind, amount: u64) {
        self.by_op[usize::from(kind.op)] -= amount;
        self.by_sync[usize::from(kind.sync)] -= amount;
    }

    fn total(&self) -> u64 {
        self.by_op.iter().sum()
    }

    /// The lines of a file: those of the device, and the sum over all devices, which is this one.
    pub fn lines(&self, device: DeviceNumber) -> String {
        let [async_, sync] = self.by_sync;
        let [read, write, discard] = self.by_op;
        let rows = [("Read", read), ("Write", write), ("Sync", sync), ("Async", async_), ("Discard", discard)];
        let mut text = String::new();
        for (name, number) in rows.into_iter().chain([("Total", self.total())]) {
            let _ = writeln!(text, "{device} {name} {number}");
        }
        let _ = writeln!(text, "Total {}", self.total());
        text
    }
}

impl AddAssign for ByKind {
    fn add_assign(&mut self, other: ByKind) {
        self.by_op.iter_mut().zip(other.by_op).for_each(|(mine, theirs)| *mine += theirs);
        self.by_sync.iter_mut().zip(other.by_sync).for_each(|(mine, theirs)| *mine += theirs);
    }
}
