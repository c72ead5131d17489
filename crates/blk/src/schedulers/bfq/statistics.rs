//! What groups have done on the device, as cgroup v1 shows it in its `blkio.bfq.` files: bytes and requests, counted when
//! they are given out. What only kernels with bfq's debugging option show is left out. Rules: bfq.md 5.3, 23.5.

use std::ops::AddAssign;

use super::super::process_queue::{ByKind, Kind};
use super::Bfq;
use super::entity::{GroupId, QueueId};
use crate::cgroup_weight::DeviceNumber;
use crate::ids::{CgroupId, SECTOR_BYTES};

/// What a group has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    bytes: ByKind,
    serviced: ByKind,
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.bytes += other.bytes;
        self.serviced += other.serviced;
    }
}

impl Bfq {
    /// A request of a queue is given out.
    pub(super) fn count_dispatch(&mut self, q: QueueId, kind: Kind, sectors: u32) {
        let statistics = &mut self.groups[self.queues[q].group].statistics;
        statistics.bytes.add(kind, u64::from(sectors) * SECTOR_BYTES);
        statistics.serviced.add(kind, 1);
    }

    /// A group is gone: what it has done counts for the one above.
    pub(super) fn fold_statistics(&mut self, group: GroupId) {
        let mut gone = std::mem::take(&mut self.groups[group].statistics);
        gone += std::mem::take(&mut self.groups[group].of_removed);
        let parent = self.groups[group].parent;
        self.groups[parent].of_removed += gone;
    }

    /// A file of a cgroup; nothing if there is no such file or the cgroup is not known here.
    pub(super) fn shown_statistics(&self, cgroup: CgroupId, file: &str, device: DeviceNumber) -> Option<String> {
        let group = self.groups.find(cgroup).filter(|&group| self.groups[group].cgroup == cgroup)?;
        let (name, recursive) = match file.strip_suffix("_recursive") {
            Some(name) => (name, true),
            None => (file, false),
        };
        let mut sum = self.groups[group].statistics;
        if recursive {
            sum = self.groups.sum_within(group);
        }
        match name {
            "bfq.io_service_bytes" => Some(sum.bytes.lines(device)),
            "bfq.io_serviced" => Some(sum.serviced.lines(device)),
            _ => None,
        }
    }
}
