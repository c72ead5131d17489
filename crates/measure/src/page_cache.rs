//! What the page cache did in a run.

use serde::{Deserialize, Serialize};

/// The page cache of the host, in whole pages; from the start of the run, ramps included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCacheSummary {
    /// Memory of the host, all of which is page cache.
    pub memory_bytes: u64,
    /// What processes have read.
    pub read_bytes: u64,
    /// What of it had to come from a device, and was not on its way.
    pub missed_bytes: u64,
    /// What was read before anybody asked for it.
    pub read_ahead_bytes: u64,
    /// What processes have written.
    pub written_bytes: u64,
    /// What of it was dirty before.
    pub overwritten_bytes: u64,
    /// What flushers have sent to devices.
    pub written_back_bytes: u64,
    /// What processes have sent there themselves: fsync, and writes with O_SYNC or O_DSYNC.
    pub synced_bytes: u64,
    /// What was dirty and then discarded.
    pub discarded_bytes: u64,
    /// What is dirty at the end.
    pub dirty_bytes: u64,
    /// Writes that had to wait because too much was dirty.
    pub throttled_writes: u64,
    /// Commits of journals, if the host's file systems have any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commits: u64,
    /// What was written into journals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub journal_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
