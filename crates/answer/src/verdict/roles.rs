//! Roles of parties: which wait for their I/O, and which are bulk work.

use super::party::Party;
use hoistway_measure::Operation;

/// Mean I/O size, bytes, from which on a party's I/O is a stream, judged by its bandwidth.
const STREAM_BYTES: f64 = 65_536.0;
/// Maximum queue depth at which a process may wait for each I/O.
const LOW_DEPTH_MAX: u32 = 8;

/// A sync that ends at least this many written bytes is the end of bulk work, bytes: nobody waits for a single one.
const BULK_BYTES_PER_SYNC: u64 = 16 << 20;
/// Weight of a cgroup for which none was set.
const DEFAULT_WEIGHT: u32 = 100;

/// The role of I/O for a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A user waits for a turn of its loop: a commit, a read, a page.
    Waits,
    /// A user waits until the whole job is done, or for a stream: only its progress counts.
    WaitsForProgress,
    /// Bulk work.
    Bulk,
    /// It gets what others leave, as it asked for: I/O of the idle class, and discards, beside others.
    LeftOver,
}

impl Role {
    /// Whether a user waits for it.
    pub(super) fn is_waited_for(self) -> bool {
        matches!(self, Role::Waits | Role::WaitsForProgress)
    }
}

/// The votes of a party: half of one for bulk work, none for what gets only what is left over, in proportion to the weight that was set for its cgroup, as in weighted proportional
/// fairness.
pub(super) fn votes(party: &Party<'_>, role: Role) -> f64 {
    let by_role = match role {
        Role::Waits | Role::WaitsForProgress => 1.0,
        Role::Bulk => 0.5,
        Role::LeftOver => 0.0,
    };
    by_role * f64::from(party.weight()) / f64::from(DEFAULT_WEIGHT)
}

/// The roles of all parties of a load, in their order. A party of the idle class, or one that only discards, gets what is left over, unless
/// all parties are such.
pub(super) fn roles(parties: &[Party<'_>]) -> Vec<Role> {
    let are_all_background = parties.iter().all(is_background);
    let may_wait = |party: &&Party<'_>| (are_all_background || !is_background(party)) && !is_bulk_by_itself(party);
    let least_depth = parties.iter().filter(may_wait).filter_map(|party| Some(party.demand()?.depth)).min();
    let do_some_have_a_reason = parties.iter().filter(may_wait).any(has_reason_to_wait);
    let waits = |party: &&Party<'_>| {
        let depth = party.demand().map(|demand| demand.depth);
        // A stream without pauses has the least depth only by chance where others are known to wait: a backup reads one block at a time, too.
        let is_chance = do_some_have_a_reason && only_streams(party);
        has_reason_to_wait(party) || (depth.is_some() && depth == least_depth && !is_chance)
    };
    // Who sets unlike weights asks for shares, which only some schedulers give, and those in slices of time. A party that asks for a rate
    // has its share, and waits.
    let asks_for_shares = parties.iter().any(|party| party.weight() != parties[0].weight());
    let role = |party| match party {
        party if may_wait(&party) && waits(&party) && asks_for_shares && !asks_for_rate(party) => {
            Role::WaitsForProgress
        }
        party if may_wait(&party) && waits(&party) => role_if_waiting(party),
        party if is_background(party) && !are_all_background => Role::LeftOver,
        _ => Role::Bulk,
    };
    parties.iter().map(role).collect()
}

/// Whether a party cannot be waiting: its queue is deep, or it only fills the page cache.
fn is_bulk_by_itself(party: &Party<'_>) -> bool {
    party.demand().is_some_and(|demand| demand.depth > LOW_DEPTH_MAX) || only_fills_page_cache(party)
}

/// Whether somebody may wait for a party, even if others are more likely to be waited for: its queue is short, and it does not stream.
pub(super) fn may_be_waited_for(party: &Party<'_>) -> bool {
    !is_background(party) && !is_bulk_by_itself(party) && !only_streams(party)
}

/// Whether something other than its depth says that a user waits for a party.
fn has_reason_to_wait(party: &Party<'_>) -> bool {
    match party.demand() {
        Some(demand) => commits(party) || is_paced(party) || demand.is_realtime || demand.ends,
        // Without a known demand, the operations decide: people wait for small reads and commits.
        None => commits(party) || party.operations().any(|it| it == Operation::Read && !party.is_stream_of(it)),
    }
}

fn role_if_waiting(party: &Party<'_>) -> Role {
    let Some(demand) = party.demand() else { return Role::Waits };
    // A commit always ends a turn that a user waits for. Without any, an unpaced job that ends or streams is waited for as a whole.
    let is_one_wait = demand.ends || only_streams(party);
    if !commits(party) && !is_paced(party) && is_one_wait { Role::WaitsForProgress } else { Role::Waits }
}

fn is_paced(party: &Party<'_>) -> bool {
    party.demand().is_some_and(|demand| demand.thinks || demand.asked_iops.is_some())
}

fn asks_for_rate(party: &Party<'_>) -> bool {
    party.demand().is_some_and(|demand| demand.asked_iops.is_some())
}

/// Whether it waits until little that it wrote is durable.
fn commits(party: &Party<'_>) -> bool {
    let syncs = party.operations().any(|operation| operation == Operation::Sync);
    (syncs || party.demand().is_some_and(|demand| demand.syncs)) && !party.writes_bulk_between_syncs()
}

/// Whether all that it does are streams, with or without syncs at the end of bulk writes.
fn only_streams(party: &Party<'_>) -> bool {
    party.operations().all(|operation| match operation {
        Operation::Sync => party.writes_bulk_between_syncs(),
        _ => party.is_stream_of(operation),
    })
}

fn is_background(party: &Party<'_>) -> bool {
    party.only_discards() || party.demand().is_some_and(|demand| demand.is_idle)
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
    /// Whether it does I/O, and all of it are discards.
    pub(super) fn only_discards(&self) -> bool {
        let mut operations = self.operations().peekable();
        operations.peek().is_some() && operations.all(|operation| operation == Operation::Trim)
    }

    /// The weight of its cgroup, or of its guest on the host.
    pub(super) fn weight(&self) -> u32 {
        self.demand().and_then(|demand| demand.weight).unwrap_or(DEFAULT_WEIGHT)
    }

    /// Whether an operation's I/Os are so large that its bandwidth is what counts.
    pub(super) fn is_stream_of(&self, operation: Operation) -> bool {
        let Volume { ios, bytes } = self.volume(operation);
        operation != Operation::Sync && bytes as f64 >= STREAM_BYTES * ios as f64
    }

    /// Whether it writes much between two syncs.
    pub(super) fn writes_bulk_between_syncs(&self) -> bool {
        self.volume(Operation::Write).bytes / self.volume(Operation::Sync).ios.max(1) >= BULK_BYTES_PER_SYNC
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
