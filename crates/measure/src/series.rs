//! The progress of a run over time: I/Os and their latency by interval, in bounded memory.
//!
//! Used by: `measurement`, `settling`; crate `answer`.
//! Tests: below.

/// Maximum intervals of a series. When more would be needed, intervals are merged in pairs, so the finished series of a
/// long run has between half of the maximum and the maximum.
pub const INTERVALS_MAX: usize = 128;

/// Initial length of the intervals, ns.
const FIRST_INTERVAL_NS: u64 = 1_000_000;

/// I/Os that completed in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Number of I/Os.
    pub ios: u64,
    /// Sum of their total latencies, ns.
    pub lat_ns: u64,
}

/// I/Os by their completion time, in intervals of equal length that grows with the run.
///
/// An empty series has no intervals; the first record allocates all of them (2 KiB).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    intervals: Option<Box<[Interval; INTERVALS_MAX]>>,
    /// Length of an interval, ns: [`FIRST_INTERVAL_NS`] times a power of two.
    length_ns: u64,
    /// The interval of the last record.
    current: usize,
    /// The end of that interval, ns.
    current_end_ns: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self::new()
    }
}

impl Series {
    /// An empty series.
    pub const fn new() -> Self {
        Self { intervals: None, length_ns: FIRST_INTERVAL_NS, current: 0, current_end_ns: FIRST_INTERVAL_NS }
    }

    /// Counts an I/O that completed `at_ns` after the start of the measurement. Times must not decrease.
    #[inline]
    pub fn record(&mut self, at_ns: u64, lat_ns: u64) {
        if at_ns >= self.current_end_ns {
            self.advance(at_ns);
        }
        let intervals = match &mut self.intervals {
            Some(intervals) => intervals,
            empty => empty.insert(allocate()),
        };
        let interval = &mut intervals[self.current];
        interval.ios += 1;
        interval.lat_ns = interval.lat_ns.saturating_add(lat_ns);
    }

    #[cold]
    fn advance(&mut self, at_ns: u64) {
        while at_ns / self.length_ns >= INTERVALS_MAX as u64 {
            self.join_pairs();
        }
        self.current = (at_ns / self.length_ns) as usize;
        self.current_end_ns = (self.current as u64 + 1).saturating_mul(self.length_ns);
    }

    fn join_pairs(&mut self) {
        self.length_ns = self.length_ns.saturating_mul(2);
        let Some(intervals) = &mut self.intervals else { return };
        for half in 0..INTERVALS_MAX / 2 {
            let (first, second) = (intervals[2 * half], intervals[2 * half + 1]);
            intervals[half] =
                Interval { ios: first.ios + second.ios, lat_ns: first.lat_ns.saturating_add(second.lat_ns) };
        }
        intervals[INTERVALS_MAX / 2..].fill(Interval::default());
    }

    /// Adds the I/Os of another process, as if they had been recorded here.
    pub fn merge(&mut self, other: &Self) {
        if other.intervals.is_none() {
            return;
        }
        let mut other = other.clone();
        while self.length_ns < other.length_ns {
            self.join_pairs();
        }
        while other.length_ns < self.length_ns {
            other.join_pairs();
        }
        let (Some(others), own) = (other.intervals, self.intervals.get_or_insert_with(allocate)) else { return };
        for (own, other) in own.iter_mut().zip(others.iter()) {
            own.ios += other.ios;
            own.lat_ns = own.lat_ns.saturating_add(other.lat_ns);
        }
    }

    /// Length of the intervals, ns.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// The intervals completely within the first `runtime_ns`, without a last interval that the end of the run cuts off.
    pub fn complete(&self, runtime_ns: u64) -> &[Interval] {
        let Some(intervals) = &self.intervals else { return &[] };
        let count = (runtime_ns / self.length_ns).min(INTERVALS_MAX as u64);
        &intervals[..count as usize]
    }

    /// The I/Os after the [complete](Self::complete) intervals, in the one that the end of the run cuts off.
    pub fn rest(&self, runtime_ns: u64) -> Interval {
        let complete = self.complete(runtime_ns).len();
        let intervals = self.intervals.as_deref().map_or(&[][..], |intervals| &intervals[complete..]);
        intervals.iter().fold(Interval::default(), |sum, interval| Interval {
            ios: sum.ios + interval.ios,
            lat_ns: sum.lat_ns.saturating_add(interval.lat_ns),
        })
    }
}

fn allocate() -> Box<[Interval; INTERVALS_MAX]> {
    Box::new([Interval::default(); INTERVALS_MAX])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn every_io_is_in_the_interval_of_its_end_however_long_the_run() {
        for runtime_ms in [1, 100, 128, 129, 1_000, 100_000] {
            let mut series = Series::new();
            (0..runtime_ms).for_each(|ms| series.record(ms * MS, 7));
            let intervals = series.complete(u64::MAX);
            assert_eq!(intervals.iter().map(|interval| interval.ios).sum::<u64>(), runtime_ms);
            let per_interval = series.length_ns() / MS;
            assert!(per_interval == 1 || runtime_ms / per_interval >= 64, "{runtime_ms}: {per_interval} ms");
            for full in &intervals[..(runtime_ms / per_interval) as usize] {
                assert_eq!(*full, Interval { ios: per_interval, lat_ns: 7 * per_interval });
            }
        }
    }

    #[test]
    fn the_interval_that_the_end_cuts_is_left_out() {
        let mut series = Series::new();
        assert!(series.complete(MS).is_empty());
        series.record(5 * MS, 1);
        assert_eq!(series.complete(5 * MS + MS / 2).len(), 5);
        assert_eq!(series.complete(6 * MS).len(), 6);
        let cut = series.rest(5 * MS + MS / 2);
        assert_eq!((cut, series.rest(6 * MS)), (Interval { ios: 1, lat_ns: 1 }, Interval::default()));
    }

    #[test]
    fn merging_is_recording_both() {
        let times = |step: u64, end: u64| (0..end).step_by(step as usize).map(|ms| ms * MS).collect::<Vec<_>>();
        let (short, long) = (times(3, 100), times(10, 50_000));
        let (mut one, mut other, mut both) = (Series::new(), Series::new(), Series::new());
        short.iter().for_each(|&at| one.record(at, 1));
        long.iter().for_each(|&at| other.record(at, 2));
        let mut all: Vec<_> = short.iter().map(|&at| (at, 1)).chain(long.iter().map(|&at| (at, 2))).collect();
        all.sort_unstable();
        all.iter().for_each(|&(at, lat)| both.record(at, lat));
        for (mut target, source) in [(one.clone(), &other), (other.clone(), &one)] {
            target.merge(source);
            assert_eq!(target.length_ns(), both.length_ns());
            assert_eq!(target.complete(u64::MAX), both.complete(u64::MAX));
        }
    }

    #[test]
    fn times_without_end_do_no_harm() {
        let mut series = Series::new();
        series.record(u64::MAX / 2, u64::MAX);
        series.record(u64::MAX / 2, u64::MAX);
        series.record(u64::MAX, u64::MAX);
        assert_eq!(series.complete(u64::MAX).iter().map(|interval| interval.ios).sum::<u64>(), 2);
    }
}
