//! Which parties wait for their I/O, and which are bulk work.

use super::party::Party;
use hoistway_measure::Operation;

/// Bytes of an I/O from which on a party moves a stream: what counts of it is how fast that goes.
const STREAM_BYTES: f64 = 65_536.0;
/// I/Os in flight up to which a process may wait for each of them.
const LOW_DEPTH_MAX: u32 = 8;

/// What an I/O means to a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A user waits for a turn of its loop: a commit, a read, a page.
    Waits,
    /// A user waits until it is done, or for a stream that comes one I/O at a time: its progress is all there is of a wait.
    WaitsForProgress,
    /// Bulk work.
    Bulk,
}

impl Role {
    /// Votes in a decision.
    pub(super) fn votes(self) -> f64 {
        if self == Role::Bulk { 0.5 } else { 1.0 }
    }
}

/// The roles of all parties of a load, in their order.
pub(super) fn roles(parties: &[Party<'_>]) -> Vec<Role> {
    let depth = |party: &Party<'_>| party.demand().filter(|_| !only_fills_page_cache(party)).map(|demand| demand.depth);
    let least = parties.iter().filter_map(depth).min();
    parties.iter().map(|party| role(party, least)).collect()
}

fn role(party: &Party<'_>, least_depth: Option<u32>) -> Role {
    let syncs = party.operations().any(|operation| operation == Operation::Sync);
    let Some(demand) = party.demand() else {
        // All that is known is what it did: small reads and commits are what people wait for.
        let reads = party.operations().any(|operation| operation == Operation::Read && !party.is_stream_of(operation));
        return if syncs || reads { Role::Waits } else { Role::Bulk };
    };
    if demand.depth > LOW_DEPTH_MAX || only_fills_page_cache(party) {
        return Role::Bulk;
    }
    let syncs = syncs || demand.syncs;
    let is_paced = demand.thinks || demand.asked_iops.is_some();
    let is_shallow = Some(demand.depth) == least_depth;
    match () {
        () if !(syncs || is_paced || demand.is_realtime || demand.ends || is_shallow) => Role::Bulk,
        () if syncs => Role::Waits,
        () if demand.ends && !is_paced => Role::WaitsForProgress,
        () if !is_paced && party.operations().all(|operation| party.is_stream_of(operation)) => Role::WaitsForProgress,
        () => Role::Waits,
    }
}

/// Whether it only fills the page cache: what is written later is not waited for.
fn only_fills_page_cache(party: &Party<'_>) -> bool {
    let is_buffered = party.demand().is_some_and(|demand| demand.is_buffered && !demand.syncs);
    is_buffered && party.operations().all(|operation| operation == Operation::Write)
}

impl Party<'_> {
    /// Whether an operation moves so much at once that its bandwidth is what counts.
    pub(super) fn is_stream_of(&self, operation: Operation) -> bool {
        let (ios, bytes) = self.volume(operation);
        operation != Operation::Sync && bytes as f64 >= STREAM_BYTES * ios as f64
    }

    /// I/Os and bytes of an operation in all runs.
    pub(super) fn volume(&self, operation: Operation) -> (u64, u64) {
        let rows = self.of_operation(operation).flat_map(|operation| &operation.rows);
        let samples = rows.flat_map(|row| row.samples());
        samples.fold((0, 0), |(ios, bytes), sample| (ios + sample.ios, bytes + sample.bytes))
    }
}
