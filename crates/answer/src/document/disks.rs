//! Disks that are unlike, each with jobs of its own: each gets its own verdict.

use serde::{Deserialize, Serialize};

use super::ResultsDocument;

/// Disks with the same model, and the jobs that use them and no others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskGroup {
    /// The model.
    pub model: String,
    /// The names of the disks' files.
    pub files: Vec<String>,
    /// The jobs: their indexes.
    pub jobs: Vec<u32>,
    /// The kernel's default scheduler for these disks.
    pub default_scheduler: String,
}

impl ResultsDocument {
    /// The group of disks of this verdict's files; `None` if the verdict is on all disks.
    pub fn disk_group(&self, files: &[String]) -> Option<&DiskGroup> {
        self.disk_groups.iter().find(|group| group.files == files)
    }
}
