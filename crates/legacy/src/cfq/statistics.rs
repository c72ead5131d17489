//! What groups have done on the device, as cgroup v1 shows it in its `blkio.` files.
//!
//! Requests are counted when they are given out, times when they complete. What only debugging kernels show is left out.
//!
//! Rules: `cfq.md` 21.

use std::ops::AddAssign;

use hoistway_blk::kit::process_queue::{ByKind, Kind};
use hoistway_blk::{CgroupId, DeviceNumber, Instant, Nanos, SECTOR_BYTES};

use super::Cfq;
use super::log::CfqLog;

/// What a group has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    /// Time charged to it, in units of the clock.
    time: u64,
    sectors: u64,
    bytes: ByKind,
    serviced: ByKind,
    /// From dispatch to completion, ns.
    service: ByKind,
    /// From allocation to dispatch, ns.
    wait: ByKind,
    merged: ByKind,
    queued: ByKind,
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
        Statistics { queued: ByKind::default(), ..self }
    }

    /// A file by its name without prefix.
    fn file(&self, name: &str, device: DeviceNumber) -> Option<String> {
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
    /// A file of a cgroup; nothing if there is no such file or the cgroup has done nothing here.
    pub(super) fn shown_statistics(&self, cgroup: CgroupId, file: &str, device: DeviceNumber) -> Option<String> {
        if !self.groups.exists(cgroup) {
            return None;
        }
        let Some(file) = file.strip_suffix("_recursive") else {
            return self.groups[cgroup].statistics.file(file, device);
        };
        let mut sum = Statistics::default();
        self.groups.within(cgroup).for_each(|group| {
            sum += group.statistics;
            sum += group.of_removed;
        });
        sum.file(file, device)
    }

    /// A cgroup's statistics begin anew.
    pub(super) fn reset_statistics(&mut self, cgroup: CgroupId) {
        if self.groups.exists(cgroup) {
            self.groups[cgroup].statistics.forget_all_but_waiting();
        }
    }
}
