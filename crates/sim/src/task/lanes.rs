//! The disks that a task uses: it submits to one at a time, and turns to another when that is its next I/O's.

use super::Task;
use crate::submitter::Submitter;

/// A disk that a task uses.
pub(crate) struct TaskDisk {
    /// Which of the process's devices it is.
    pub(super) device: u8,
    pub(crate) disk: u32,
    /// To the disk. The plug is that of the running system call.
    pub(crate) submitter: Submitter,
}

impl TaskDisk {
    /// Those of a process, the first one apart: there is always one.
    pub(super) fn of(files: &[u32], submitter: impl Fn(u32) -> Submitter) -> (TaskDisk, Vec<TaskDisk>) {
        let lane = |(device, &disk)| TaskDisk { device, disk, submitter: submitter(disk) };
        let mut lanes = (0..).zip(files).map(lane);
        let first = lanes.next().unwrap_or_else(|| lane((0, &0)));
        (first, lanes.collect())
    }
}

impl Task {
    /// The disks that it uses.
    pub(crate) fn disks(&self) -> impl Iterator<Item = u32> {
        std::iter::once(&self.lane).chain(&self.other_lanes).map(|lane| lane.disk)
    }

    /// Continues with another disk, if there is one.
    #[cold]
    pub(super) fn switch_to_disk(&mut self, is_wanted: impl Fn(&TaskDisk) -> bool) -> bool {
        let Some(lane) = self.other_lanes.iter_mut().find(|lane| is_wanted(lane)) else { return false };
        std::mem::swap(&mut self.lane, lane);
        true
    }

    /// Whether it uses more than one.
    #[inline]
    pub(crate) fn has_other_disks(&self) -> bool {
        !self.other_lanes.is_empty()
    }

    /// A disk that it is not submitting to, for which it has something plugged.
    pub(crate) fn other_plugged_disk(&mut self) -> Option<&mut TaskDisk> {
        self.other_lanes.iter_mut().find(|lane| lane.submitter.is_plugged())
    }
}
