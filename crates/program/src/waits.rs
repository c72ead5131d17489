//! Finds dependencies between streams: which stream waits for which (RP18).
//!
//! Used by: `infer`.
//! Tests: `crates/program/tests/program/worked_example.rs`.

use hoistway_load::WAITS_MAX;

use crate::activity::Activity;
use crate::stream::{Kind, Stream, Wait};

/// Number of streams with the most I/Os that are compared with each other.
pub(crate) const COMPARED_MAX: usize = 64;
/// Maximum observed overlaps for a dependency, as a fraction of the number expected by chance.
const SHARE_MAX: f64 = 0.1;
/// Minimum expected overlaps for a test.
const EXPECTED_MIN: f64 = 30.0;
/// The same, if one of the two is a kernel helper.
const EXPECTED_MIN_OF_HELPER: f64 = 5.0;

/// Minimum share of a stream's I/Os that begin a burst; below it, what bursts wait for does not matter.
const BURST_SHARE_MIN: f64 = 0.05;

/// Counts bursts of each stream that begin while another stream is busy.
#[derive(Debug)]
pub(crate) struct BurstOverlaps {
    /// First and last time of each stream.
    active_ns: Vec<(u64, u64)>,
    /// For each pair (waiting, on): bursts of the first while both are active.
    bursts: Vec<u64>,
    /// The bursts among these that began while the second had I/Os outstanding.
    observed: Vec<u64>,
    /// Times at which a stream begins or ends, in order, and how long each stream had been busy until then.
    marks: Vec<(u64, Vec<u64>)>,
    next_mark: usize,
}

/// The overlaps of a pair: observed, and expected by chance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct StreamPair {
    pub(crate) observed: u64,
    pub(crate) expected: f64,
}

impl BurstOverlaps {
    pub(crate) fn new(streams: &[Stream]) -> BurstOverlaps {
        let active_ns: Vec<_> =
            streams.iter().take(COMPARED_MAX).map(|stream| (stream.first_ns, stream.last_ns)).collect();
        let mut times: Vec<u64> = active_ns.iter().flat_map(|(first, last)| [*first, *last]).collect();
        times.sort_unstable();
        times.dedup();
        let count = active_ns.len();
        let marks = times.into_iter().map(|time| (time, Vec::new())).collect();
        BurstOverlaps {
            active_ns,
            bursts: vec![0; count * count],
            observed: vec![0; count * count],
            marks,
            next_mark: 0,
        }
    }

    /// Notes that the log has reached this time; called before the events at that time.
    #[inline]
    pub(crate) fn reached(&mut self, now_ns: u64, activities: &[Activity]) {
        while let Some((time_ns, busy_ns)) = self.marks.get_mut(self.next_mark)
            && *time_ns <= now_ns
        {
            *busy_ns =
                activities.iter().take(self.active_ns.len()).map(|activity| activity.busy_ns(*time_ns)).collect();
            self.next_mark += 1;
        }
    }

    /// A stream begins a burst: it submits an I/O while none are outstanding.
    pub(crate) fn add_burst(&mut self, stream: usize, now_ns: u64, activities: &[Activity]) {
        let count = self.active_ns.len();
        if stream >= count {
            return;
        }
        for (other, (first_ns, last_ns)) in self.active_ns.iter().enumerate() {
            if *first_ns <= now_ns && now_ns <= *last_ns {
                self.bursts[stream * count + other] += 1;
                self.observed[stream * count + other] += u64::from(activities[other].is_busy());
            }
        }
    }

    fn busy_ns(&self, stream: usize, time_ns: u64) -> u64 {
        let index = self.marks.partition_point(|(mark, _)| *mark < time_ns);
        self.marks.get(index).and_then(|(_, busy)| busy.get(stream)).copied().unwrap_or(0)
    }

    /// How often bursts of one stream began while the other was busy; `None` for streams that are not compared.
    pub(crate) fn pair(&self, waiting: usize, on: usize) -> Option<StreamPair> {
        let count = self.active_ns.len();
        if waiting >= count || on >= count {
            return None;
        }
        let (one, other) = (self.active_ns[waiting], self.active_ns[on]);
        let (first, last) = (one.0.max(other.0), one.1.min(other.1));
        if first >= last {
            return Some(StreamPair { observed: 0, expected: 0.0 });
        }
        let busy = self.busy_ns(on, last).saturating_sub(self.busy_ns(on, first));
        let share = busy as f64 / (last - first) as f64;
        let bursts = self.bursts[waiting * count + on] as f64;
        Some(StreamPair { observed: self.observed[waiting * count + on], expected: share * bursts })
    }

    /// Whether bursts are a relevant part of a stream's I/Os: a stream that always has I/Os outstanding waits only for itself.
    fn begins_bursts(&self, waiting: usize, on: usize, ios: u64) -> bool {
        self.bursts[waiting * self.active_ns.len() + on] as f64 >= BURST_SHARE_MIN * ios as f64
    }

    /// The streams that each stream waits for, and the pairs that cannot be tested (RP19).
    pub(crate) fn waits(&self, streams: &[Stream]) -> (Vec<Vec<Wait>>, Vec<(usize, usize)>) {
        let mut waits = vec![Vec::new(); streams.len()];
        let mut untested = Vec::new();
        for waiting in 0..streams.len().min(COMPARED_MAX) {
            // Timers and limits begin a burst of write-back, and `others` are several tasks.
            if matches!(streams[waiting].kind, Kind::WriteBack | Kind::Others) {
                continue;
            }
            for on in (0..streams.len()).filter(|on| *on != waiting && streams[*on].kind != Kind::Others) {
                let Some(StreamPair { observed, expected }) = self.pair(waiting, on) else { continue };
                let (waiting_stream, awaited) = (&streams[waiting], &streams[on]);
                let has_helper = waiting_stream.kind == Kind::Helper || awaited.kind == Kind::Helper;
                let expected_min = if has_helper { EXPECTED_MIN_OF_HELPER } else { EXPECTED_MIN };
                let is_tested = expected >= expected_min;
                let is_assumed =
                    has_helper && !is_tested && waiting_stream.waits_for_durability() && awaited.waits_for_durability();
                let waits_at_times = has_helper && is_rarer_than_chance(observed, expected);
                if (is_tested && observed as f64 <= SHARE_MAX * expected) || is_assumed {
                    waits[waiting].push(Wait { on, observed, expected, is_seen: is_tested });
                } else if (!is_tested || waits_at_times) && self.begins_bursts(waiting, on, waiting_stream.ios) {
                    untested.push((waiting, on));
                }
            }
            waits[waiting].sort_by(|left: &Wait, right| right.expected.total_cmp(&left.expected));
            waits[waiting].truncate(WAITS_MAX);
        }
        (waits, untested)
    }
}

/// Whether so few overlaps happen by chance in less than one of a thousand cases: then some bursts wait and others do not, as those of a
/// task that calls fsync after every fourth write.
fn is_rarer_than_chance(observed: u64, expected: f64) -> bool {
    (observed as f64) < expected - 3.0 * expected.sqrt()
}

impl Stream {
    /// Whether a task waits for its writes to be durable.
    fn waits_for_durability(&self) -> bool {
        self.durable_writes + self.flushes + self.sync_writes > 0
    }
}
