//! The disks of a task: it submits to one at a time, and switches when its next I/O is for another.

use super::Task;
use crate::submitter::Submitter;

/// A disk that a task uses.
pub(crate) struct TaskDisk {
    /// Index among the process's devices.
    pub(super) device: u8,
    pub(crate) disk: u32,
    /// Submits to the disk; its plug is that of the current system call.
    pub(crate) submitter: Submitter,
}

impl TaskDisk {
    /// The disks of a process: the first one, which always exists, and the others.
    pub(super) fn for_files(files: &[u32], submitter: impl Fn(u32) -> Submitter) -> (TaskDisk, Vec<TaskDisk>) {
        let task_disk = |(device, &disk)| TaskDisk { device, disk, submitter: submitter(disk) };
        let mut task_disks = (0..).zip(files).map(task_disk);
        let first = task_disks.next().unwrap_or_else(|| task_disk((0, &0)));
        (first, task_disks.collect())
    }
}

/// The index of a disk that is none of the process's devices.
const BELOW: u8 = u8::MAX;

impl Task {
    /// Adds a disk below a stacked device that the task uses.
    pub(crate) fn add_disk_below(&mut self, disk: u32, submitter: Submitter) {
        self.has_detour = true;
        self.other_disks.push(TaskDisk { device: BELOW, disk, submitter });
    }

    /// Switches to one of its disks.
    pub(crate) fn switch_to(&mut self, disk: u32) {
        if self.current_disk.disk != disk {
            self.switch_to_disk(|task_disk| task_disk.disk == disk);
        }
    }

    /// The disks that the task uses.
    pub(crate) fn disks(&self) -> impl Iterator<Item = u32> {
        std::iter::once(&self.current_disk).chain(&self.other_disks).map(|task_disk| task_disk.disk)
    }

    /// Switches to another disk that satisfies `is_wanted`. Returns `false` if there is none.
    #[cold]
    pub(super) fn switch_to_disk(&mut self, matches: impl Fn(&TaskDisk) -> bool) -> bool {
        let Some(task_disk) = self.other_disks.iter_mut().find(|task_disk| matches(task_disk)) else { return false };
        std::mem::swap(&mut self.current_disk, task_disk);
        true
    }

    /// Whether it uses several disks.
    #[inline]
    pub(crate) fn has_other_disks(&self) -> bool {
        !self.other_disks.is_empty()
    }

    /// A disk other than the current one with plugged requests.
    pub(crate) fn other_plugged_disk(&mut self) -> Option<&mut TaskDisk> {
        self.other_disks.iter_mut().find(|task_disk| task_disk.submitter.is_plugged())
    }
}
