//! Page cache statistics of a run.
//!
//! Used by: crates `sim`, `answer`, `experiment`.
//! Tests: `crates/sim/tests/page_cache.rs`.

use serde::{Deserialize, Serialize};

/// Statistics of the host's page cache, in whole pages, from the start of the run including ramps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCacheSummary {
    /// Memory of the host, all of which is used as page cache.
    pub memory_bytes: u64,
    /// Bytes read by processes.
    pub read_bytes: u64,
    /// Bytes read that had to come from a device and were not already in flight.
    pub missed_bytes: u64,
    /// Bytes read ahead.
    pub read_ahead_bytes: u64,
    /// Bytes written by processes.
    pub written_bytes: u64,
    /// Bytes written to pages that were dirty already.
    pub overwritten_bytes: u64,
    /// Bytes written back by flushers.
    pub written_back_bytes: u64,
    /// Bytes written back by processes: fsync, and writes with O_SYNC or O_DSYNC.
    pub synced_bytes: u64,
    /// Dirty bytes that were discarded.
    pub discarded_bytes: u64,
    /// Dirty bytes at the end of the run.
    pub dirty_bytes: u64,
    /// Writes that had to wait because too many pages were dirty.
    pub throttled_writes: u64,
    /// Journal commits, if the host's file systems have a journal.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commits: u64,
    /// Bytes written to journals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub journal_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
