//! TABS, a scheduler from research that is not in the Linux kernel: writes with forced unit access (FUA) are throttled, so that reads
//! and they each come as near to a fair bandwidth of their own.
//!
//! Used by: `schedulers::registry`.
//! Tests: `crates/blk/src/schedulers/tabs/goals.rs`, `crates/blk/src/schedulers/tabs/tests.rs`.
//!
//! **Promises**: while reads and FUA writes are outstanding, FUA writes get the bandwidth that they have alone times their share of
//! what is outstanding, corrected so that reads come as near to theirs. Something goes whenever something waits and nothing was at the
//! device for a moment. **Costs**: O(1) everywhere, one lock; FUA writes wait for a token bucket, and once for a measurement, in which reads wait, too.
//! **Rules**: docs/rules/tabs.md.

mod goals;

#[cfg(test)]
mod tests;

use crate::bio::{BioFlags, Op};
use crate::ground::id_list::{IdList, Links};
use crate::ground::ids::{HctxId, RqId, SECTOR_BYTES};
use crate::ground::time::Instant;
use crate::ground::tunables::{Grammar, StoreError, Tunable, TunableRow, Tunables, Unit};
use crate::policy::{Choice, Place, PolicyCx, Scheduler};
use crate::request::Request;
use crate::request::merge::Edge;
use crate::watch::reason::Reason;

use goals::{FUA_WRITES, Goals, READS};

/// All that is neither a read nor a FUA write.
const OTHERS: usize = 2;
/// Requeued requests, which precede all others (TABS-10).
const HEAD: usize = 3;

/// What is held back goes once nothing was at the device for a window over this.
const REST_PART: u64 = 100;
const BYTES_PER_MB: u64 = 1_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// The policy. Clone it to look ahead.
#[derive(Clone)]
pub struct Tabs {
    goals: Goals,
    /// The waiting requests by type, in the order in which they came; the last list has requeued ones.
    lists: [IdList; 4],
    /// Bytes of FUA writes that wait, without requeued ones.
    fua_waiting_bytes: u64,
    /// Requests that were dispatched and have not ended, by type.
    at_device: [u32; 3],
    /// The bucket covered all FUA writes that waited, and they are being dispatched (TABS-6).
    is_releasing: bool,
    /// Since when nothing has been at the device, if that is so.
    empty_since: Instant,
    /// Nothing has been at the device for so long that what is held back may go (TABS-9).
    has_rested: bool,
    /// Counts insertions.
    arrivals: u64,
    entries: Vec<Entry>,
    links: Links,
}

/// The state of a request.
#[derive(Clone, Copy, Default)]
struct Entry {
    bytes: u64,
    arrival: u64,
    /// Its list while it waits.
    list: u8,
    kind: u8,
    /// Counted in `at_device`.
    is_at_device: bool,
}

static TUNABLES: Tunables<Tabs> = Tunables {
    grammar: Grammar::InRange,
    rows: &[
        TunableRow::new(
            "read_mbps",
            (Unit::Number, 0, 0, 1_000_000),
            "What the device reads alone, MB/s. 0: what it was seen to read without FUA writes.",
            |tabs| i128::from(tabs.goals.given_bytes_per_s[READS] / BYTES_PER_MB),
            |tabs, mbps| tabs.goals.give(READS, mbps as u64 * BYTES_PER_MB),
        ),
        TunableRow::new(
            "fua_write_mbps",
            (Unit::Number, 0, 0, 1_000_000),
            "What the device writes alone with FUA, MB/s. 0: what it was seen to write without reads.",
            |tabs| i128::from(tabs.goals.given_bytes_per_s[FUA_WRITES] / BYTES_PER_MB),
            |tabs, mbps| tabs.goals.give(FUA_WRITES, mbps as u64 * BYTES_PER_MB),
        ),
        TunableRow::new(
            "window_ms",
            (Unit::Millis, 100, 4, 10_000),
            "How often shares are measured and the bucket is corrected. Smaller: it follows faster; larger: steadier.",
            |tabs| i128::from(tabs.goals.window_ns / NS_PER_MS),
            |tabs, ms| tabs.goals.window_ns = ms as u64 * NS_PER_MS,
        ),
        TunableRow::new(
            "gain_divisor",
            (Unit::Number, 8, 1, 1024),
            "A correction is the error divided by this. Smaller: faster; larger: steadier.",
            |tabs| i128::from(tabs.goals.gain_divisor),
            |tabs, divisor| tabs.goals.gain_divisor = divisor as u64,
        ),
        TunableRow::new(
            "change_percent",
            (Unit::Number, 20, 1, 100),
            "By how much a share has to change before the goals are set anew.",
            |tabs| i128::from(tabs.goals.change_percent),
            |tabs, percent| tabs.goals.change_percent = percent as u64,
        ),
    ],
};

/// The type of a request (TABS-2).
fn kind_of(rq: &Request) -> usize {
    match rq.op {
        Op::Read => READS,
        Op::Write if rq.flags.contains(BioFlags::FUA) => FUA_WRITES,
        _ => OTHERS,
    }
}

impl Tabs {
    /// A fresh scheduler for request ids below `capacity`.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Tabs {
            goals: Goals::new(),
            lists: Default::default(),
            fua_waiting_bytes: 0,
            at_device: [0; 3],
            is_releasing: false,
            empty_since: Instant::ZERO,
            has_rested: true,
            arrivals: 0,
            entries: vec![Entry::default(); capacity],
            links: Links::new(capacity),
        }
    }

    /// Removes a request from its list.
    fn dequeue(&mut self, id: RqId) {
        let Entry { list, bytes, .. } = self.entries[id.index()];
        let list = usize::from(list);
        self.lists[list].remove(&mut self.links, id.0);
        if list == FUA_WRITES {
            self.fua_waiting_bytes -= bytes;
            self.is_releasing &= !self.lists[FUA_WRITES].is_empty();
        }
    }

    /// A request no longer counts as one at the device.
    fn leave_device(&mut self, cx: &PolicyCx<'_>, id: RqId) {
        let entry = &mut self.entries[id.index()];
        if std::mem::take(&mut entry.is_at_device) {
            self.at_device[usize::from(entry.kind)] -= 1;
            if self.is_device_empty() {
                self.empty_since = cx.now.at;
            }
        }
    }

    fn is_device_empty(&self) -> bool {
        self.at_device == [0; 3]
    }

    /// Follows the time: windows, the bucket, and whether it now covers what waits. Sets the timer for what else would wait for nothing.
    fn follow(&mut self, cx: &mut PolicyCx<'_>) {
        let rests_until = Instant(self.empty_since.0 + self.goals.window_ns / REST_PART);
        self.has_rested |= self.is_device_empty() && cx.now.at >= rests_until;
        self.goals.follow(cx.now.at, &self.at_device, self.has_rested);
        if !self.lists[FUA_WRITES].is_empty() {
            self.is_releasing = match self.is_releasing {
                true => self.goals.has_tokens(),
                false => self.goals.covers(self.fua_waiting_bytes),
            };
        }
        let is_held = self.lists.iter().any(|list| !list.is_empty()) && self.next_list().is_none();
        if is_held && self.is_device_empty() {
            cx.requested.set_timer = Some(rests_until);
        }
    }

    /// Whether the first request of a type may go now (TABS-6 to TABS-8).
    fn may_go(&self, kind: usize) -> bool {
        if self.lists[kind].is_empty() {
            return false;
        }
        let is_held = match kind {
            FUA_WRITES => self.goals.measures(READS) || !(self.is_releasing || self.goals.measures(FUA_WRITES)),
            READS => self.goals.measures(FUA_WRITES),
            _ => false,
        };
        !is_held || self.has_rested
    }

    /// The list whose first request goes next.
    fn next_list(&self) -> Option<usize> {
        if !self.lists[HEAD].is_empty() {
            return Some(HEAD);
        }
        if self.may_go(FUA_WRITES) {
            return Some(FUA_WRITES);
        }
        let arrival = |list: &usize| self.lists[*list].first().map(|id| self.entries[id as usize].arrival);
        [READS, OTHERS].into_iter().filter(|&list| self.may_go(list)).min_by_key(arrival)
    }

    /// Sets the size of a request that waits.
    fn resize(&mut self, id: RqId, bytes: u64) {
        let entry = &mut self.entries[id.index()];
        let before = std::mem::replace(&mut entry.bytes, bytes);
        if usize::from(entry.list) == FUA_WRITES {
            self.fua_waiting_bytes = self.fua_waiting_bytes - before + bytes;
        }
        self.goals.resize(usize::from(entry.kind), before, bytes);
    }
}

impl Scheduler for Tabs {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        self.goals.pass(cx.now.at);
        self.leave_device(cx, id);
        let rq = cx.rq(id);
        let kind = kind_of(rq);
        let list = if place == Place::Head { HEAD } else { kind };
        let bytes = u64::from(rq.sectors) * SECTOR_BYTES;
        self.arrivals += 1;
        let entry = &mut self.entries[id.index()];
        // What comes back has been outstanding all the time.
        let before = std::mem::replace(&mut entry.bytes, bytes);
        (entry.arrival, entry.list, entry.kind) = (self.arrivals, list as u8, kind as u8);
        self.goals.resize(kind, before, bytes);
        match place {
            Place::Head => self.lists[list].push_front(&mut self.links, id.0),
            Place::Sorted => self.lists[list].push_back(&mut self.links, id.0),
        }
        if list == FUA_WRITES {
            self.fua_waiting_bytes += bytes;
        }
        self.follow(cx);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _hctx: HctxId) -> Choice {
        self.follow(cx);
        let Some(list) = self.next_list() else {
            let reason = match [READS, FUA_WRITES].map(|kind| self.lists[kind].is_empty()) {
                [true, true] => Reason::Empty,
                [true, false] if !self.goals.measures(READS) => Reason::NoFuaToken,
                _ => Reason::OtherTypeMeasured,
            };
            return Choice { rq: None, reason };
        };
        let id = RqId(self.lists[list].first().expect("a list is chosen for its first request"));
        self.dequeue(id);
        let entry = &mut self.entries[id.index()];
        entry.is_at_device = true;
        self.at_device[usize::from(entry.kind)] += 1;
        self.has_rested = false;
        let reason = match list {
            HEAD => Reason::HeadList,
            FUA_WRITES => {
                self.goals.take(entry.bytes);
                Reason::FuaToken
            }
            _ => Reason::Fifo,
        };
        Choice { rq: Some(id), reason }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        self.goals.pass(cx.now.at);
        self.leave_device(cx, id);
        let entry = &mut self.entries[id.index()];
        let bytes = std::mem::take(&mut entry.bytes);
        self.goals.end(usize::from(entry.kind), bytes);
        self.follow(cx);
        cx.requested.run_queues |= self.has_work();
    }

    fn has_work(&self) -> bool {
        self.next_list().is_some()
    }

    fn on_timer(&mut self, cx: &mut PolicyCx<'_>) {
        self.follow(cx);
        cx.requested.run_queues |= self.has_work();
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _edge: Edge) {
        self.resize(id, u64::from(cx.rq(id).sectors) * SECTOR_BYTES);
    }

    fn on_absorbed(&mut self, _cx: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        let bytes = self.entries[absorbed.index()].bytes;
        self.dequeue(absorbed);
        let entry = &mut self.entries[absorbed.index()];
        entry.bytes = 0;
        self.goals.resize(usize::from(entry.kind), bytes, 0);
        self.resize(survivor, self.entries[survivor.index()].bytes + bytes);
    }

    fn grow(&mut self, capacity: u32) {
        let capacity = (capacity as usize).max(self.entries.len());
        self.entries.resize(capacity, Entry::default());
        self.links.grow(capacity);
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        TUNABLES.shown(self)
    }

    fn set_tunable(&mut self, cx: &mut PolicyCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        TUNABLES.store(self, name, text)?;
        self.follow(cx);
        cx.requested.run_queues |= self.has_work();
        Ok(())
    }
}
