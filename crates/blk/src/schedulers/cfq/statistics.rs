//! What groups have done on the device, as cgroup v1 shows it in its `blkio.` files.
//!
//! Requests are counted when they are given out, times when they complete. What only debugging kernels show is left out.
//!
//! Rules: `cfq.md` 21.

use std::fmt::Write;
use std::ops::AddAssign;

use crate::bio::Op;
use crate::ids::{CgroupId, SECTOR_BYTES};
use crate::time::{Instant, Nanos};

use super::Cfq;
use super::log::CfqLog;

/// A number by kind of request.
#[derive(Clone, Copy, Debug, Default)]
struct Split {
    /// Reads, writes, discards.
    by_op: [u64; 3],
    /// Async, sync.
    by_sync: [u64; 2],
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    /// Read, write, discard.
    op: u8,
    sync: bool,
}

/// What a group has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    /// Time charged to it, in units of the clock.
    time: u64,
    sectors: u64,
    bytes: Split,
    serviced: Split,
    /// From dispatch to completion, ns.
    service: Split,
    /// From allocation to dispatch, ns.
    wait: Split,
    merged: Split,
    queued: Split,
}

impl Kind {
    pub(super) fn of(op: Op, sync: bool) -> Self {
        let op = match op {
            Op::Read => 0,
            Op::Discard => 2,
            _ => 1,
        };
        Kind { op, sync }
    }
}

impl Split {
    fn add(&mut self, kind: Kind, amount: u64) {
        self.by_op[usize::from(kind.op)] += amount;
        self.by_sync[usize::from(kind.sync)] += amount;
    }

    fn subtract(&mut self, kind: Kind, amount: u64) {
        self.by_op[usize::from(kind.op)] -= amount;
        self.by_sync[usize::from(kind.sync)] -= amount;
    }

    fn total(&self) -> u64 {
        self.by_op.iter().sum()
    }

    /// The lines of a file: those of the device, and the sum over all devices, which is this one.
    fn lines(&self, device: &str) -> String {
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

impl AddAssign for Split {
    fn add_assign(&mut self, other: Split) {
        self.by_op.iter_mut().zip(other.by_op).for_each(|(mine, theirs)| *mine += theirs);
        self.by_sync.iter_mut().zip(other.by_sync).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.time += other.time;
        self.sectors += other.sectors;
        self.bytes += other.bytes;
        self.serviced += other.serviced;
        self.service += other.service;
        self.wait += other.wait;
        self.merged += other.merged;
        self.queued += other.queued;
    }
}

impl Statistics {
    /// A request waits.
    pub(super) fn queued(&mut self, kind: Kind) {
        self.queued.add(kind, 1);
    }

    /// A request waits no longer.
    pub(super) fn left(&mut self, kind: Kind) {
        self.queued.subtract(kind, 1);
    }

    /// A bio has joined a request, or a request another.
    pub(super) fn merged(&mut self, kind: Kind) {
        self.merged.add(kind, 1);
    }

    /// A request is given out.
    pub(super) fn dispatched(&mut self, kind: Kind, sectors: u32) {
        self.sectors += u64::from(sectors);
        self.bytes.add(kind, u64::from(sectors) * SECTOR_BYTES);
        self.serviced.add(kind, 1);
    }

    /// A request has completed.
    pub(super) fn completed(&mut self, kind: Kind, [allocated, dispatched, now]: [Instant; 3]) {
        let Nanos(wait) = dispatched.since(allocated);
        let Nanos(service) = now.since(dispatched);
        self.wait.add(kind, wait);
        self.service.add(kind, service);
    }

    /// A turn has ended.
    pub(super) fn used(&mut self, time: i64) {
        self.time += time.max(0) as u64;
    }

    /// Begins anew; what waits goes on waiting.
    pub(super) fn forget_all_but_waiting(&mut self) {
        *self = Statistics { queued: self.queued, ..Statistics::default() };
    }

    /// All but what waits.
    pub(super) fn without_waiting(self) -> Statistics {
        Statistics { queued: Split::default(), ..self }
    }

    /// A file by its name without prefix.
    fn file(&self, name: &str, device: &str) -> Option<String> {
        let split = match name {
            "time" => return Some(format!("{device} {}\n", self.time)),
            "sectors" => return Some(format!("{device} {}\n", self.sectors)),
            "io_service_bytes" => &self.bytes,
            "io_serviced" => &self.serviced,
            "io_service_time" => &self.service,
            "io_wait_time" => &self.wait,
            "io_merged" => &self.merged,
            "io_queued" => &self.queued,
            _ => return None,
        };
        Some(split.lines(device))
    }
}

impl<L: CfqLog> Cfq<L> {
    /// What a cgroup's file `blkio.<name>` shows of the device `major:minor`; nothing if there is no such file or the
    /// cgroup has done nothing here. With `_recursive` behind it a name includes all cgroups below, also former ones.
    #[must_use]
    pub fn statistics(&self, cgroup: CgroupId, name: &str, device: (u32, u32)) -> Option<String> {
        let device = format!("{}:{}", device.0, device.1);
        let (name, recursive) = match name.strip_suffix("_recursive") {
            Some(name) => (name, true),
            None => (name, false),
        };
        if !self.groups.exists(cgroup) {
            return None;
        }
        let mut shown = self.groups[cgroup].statistics;
        if recursive {
            shown = Statistics::default();
            self.groups.within(cgroup).for_each(|group| {
                shown += group.statistics;
                shown += group.of_removed;
            });
        }
        shown.file(name, &device)
    }

    /// A number was written to a cgroup's `blkio.reset_stats`.
    pub fn reset_statistics(&mut self, cgroup: CgroupId) {
        if self.groups.exists(cgroup) {
            self.groups[cgroup].statistics.forget_all_but_waiting();
        }
    }
}
