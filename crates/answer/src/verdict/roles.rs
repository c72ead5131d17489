//! Roles of parties: which wait for their I/O, and which are bulk work.

use super::party::Party;
use hoistway_measure::Operation;

/// Mean I/O size, bytes, from which on a party's I/O is a stream, judged by its bandwidth.
const STREAM_BYTES: f64 = 65_536.0;
/// Maximum queue depth at which a process may wait for each I/O.
const LOW_DEPTH_MAX: u32 = 8;

/// The role of I/O for a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A user waits for a turn of its loop: a commit, a read, a page.
    Waits,
    /// A user waits until the whole job is done, or for a stream: only its progress counts.
    WaitsForProgress,
    /// Bulk work.
    Bulk,
}

impl Role {
    /// The votes of a party with this role.
    pub(super) fn votes(self) -> f64 {
        if self == Role::Bulk { 0.5 } else { 1.0 }
    }
}

/// The roles of all parties of a load, in their order. A party of the idle class is bulk work, because nobody waits for it, unless all
/// parties have that class.
pub(super) fn roles(parties: &[Party<'_>]) -> Vec<Role> {
    let is_idle = |party: &Party<'_>| party.demand().is_some_and(|demand| demand.is_idle);
    let are_all_idle = parties.iter().all(is_idle);
    let is_background = |party: &Party<'_>| is_idle(party) && !are_all_idle;
    let depth = |party: &Party<'_>| {
        party.demand().filter(|_| !only_fills_page_cache(party) && !is_background(party)).map(|demand| demand.depth)
    };
    let least = parties.iter().filter_map(depth).min();
    parties.iter().map(|party| if is_background(party) { Role::Bulk } else { role(party, least) }).collect()
}

fn role(party: &Party<'_>, least_depth: Option<u32>) -> Role {
    let syncs = party.operations().any(|operation| operation == Operation::Sync);
    let Some(demand) = party.demand() else {
        // Without a known demand, the operations decide: people wait for small reads and commits.
        let reads = party.operations().any(|operation| operation == Operation::Read && !party.is_stream_of(operation));
        return if syncs || reads { Role::Waits } else { Role::Bulk };
    };
    if demand.depth > LOW_DEPTH_MAX || only_fills_page_cache(party) {
        return Role::Bulk;
    }
    let syncs = syncs || demand.syncs;
    let is_paced = demand.thinks || demand.asked_iops.is_some();
    let is_shallow = Some(demand.depth) == least_depth;
    if !(syncs || is_paced || demand.is_realtime || demand.ends || is_shallow) {
        return Role::Bulk;
    }
    // A sync always ends a turn that a user waits for. Without one, an unpaced job that ends or streams is waited for as a whole.
    let only_streams = || party.operations().all(|operation| party.is_stream_of(operation));
    if !syncs && !is_paced && (demand.ends || only_streams()) { Role::WaitsForProgress } else { Role::Waits }
}

/// Whether a party only fills the page cache, without waiting for write-back.
fn only_fills_page_cache(party: &Party<'_>) -> bool {
    let is_buffered = party.demand().is_some_and(|demand| demand.is_buffered && !demand.syncs);
    is_buffered && party.operations().all(|operation| operation == Operation::Write)
}

/// The amount of I/O of an operation.
pub(super) struct Volume {
    pub(super) ios: u64,
    pub(super) bytes: u64,
}

impl Party<'_> {
    /// Whether an operation's I/Os are so large that its bandwidth is what counts.
    pub(super) fn is_stream_of(&self, operation: Operation) -> bool {
        let Volume { ios, bytes } = self.volume(operation);
        operation != Operation::Sync && bytes as f64 >= STREAM_BYTES * ios as f64
    }

    /// I/Os and bytes of an operation in all runs.
    pub(super) fn volume(&self, operation: Operation) -> Volume {
        let rows = self.operation_results(operation).flat_map(|operation| &operation.rows);
        let samples = rows.flat_map(|row| row.samples());
        samples.fold(Volume { ios: 0, bytes: 0 }, |sum, sample| Volume {
            ios: sum.ios + sample.ios,
            bytes: sum.bytes + sample.bytes,
        })
    }
}
