//! The timeline of a recording: I/Os and depth in slices of equal length, and sizes.
//!
//! Used by: `describe`, `stream`, `infer`.
//! Tests: below.

use serde::{Deserialize, Serialize};

/// Number of slices (RP24 has ten, which these halve).
const SLICES: u64 = 20;

/// A slice of the recording.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Its start, in nanoseconds since the start of the recording.
    pub start_ns: u64,
    /// I/Os that were submitted.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean number of outstanding I/Os.
    pub depth_mean: f64,
    /// Maximum number of outstanding I/Os.
    pub depth_max: u64,
}

/// Operations of a stream that completed in a slice.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// How many.
    pub ios: u64,
    /// Their mean latency, in nanoseconds; 0 if there are none.
    pub mean_ns: f64,
}

impl Done {
    fn add(&mut self, latency_ns: u64) {
        self.ios += 1;
        self.mean_ns += (latency_ns as f64 - self.mean_ns) / self.ios as f64;
    }
}

/// A slice of a stream.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StreamSlice {
    /// Length of the slice, in nanoseconds.
    pub length_ns: u64,
    /// Reads that completed in it.
    pub reads: Done,
    /// Everything else that completed in it.
    pub writes: Done,
}

/// Empty slices of a stream in a recording of this length.
pub(crate) fn slices_of_stream(span_ns: u64) -> Vec<StreamSlice> {
    vec![StreamSlice { length_ns: slice_ns(span_ns), ..StreamSlice::default() }; SLICES as usize]
}

/// Adds a completion to its slice.
pub(crate) fn add_completion(slices: &mut [StreamSlice], now_ns: u64, is_read: bool, latency_ns: u64) {
    let last = slices.len() - 1;
    let slice = &mut slices[((now_ns / slices[0].length_ns) as usize).min(last)];
    let completions = if is_read { &mut slice.reads } else { &mut slice.writes };
    completions.add(latency_ns);
}

fn slice_ns(span_ns: u64) -> u64 {
    span_ns / SLICES + 1
}

/// The timeline so far; updated with each entry of the log.
#[derive(Debug)]
pub(crate) struct Timeline {
    slices: Vec<Slice>,
    slice_ns: u64,
    outstanding: u64,
    /// Time until which the depth has been summed.
    now_ns: u64,
    /// Number of I/Os by size: up to 512 bytes, up to 1 KiB, and so on.
    sizes: [u64; 24],
}

impl Timeline {
    pub(crate) fn new(span_ns: u64) -> Timeline {
        let slice_ns = slice_ns(span_ns);
        let slice = |index: u64| Slice { start_ns: index * slice_ns, ..Slice::default() };
        Timeline { slices: (0..SLICES).map(slice).collect(), slice_ns, outstanding: 0, now_ns: 0, sizes: [0; 24] }
    }

    fn slice_at(&mut self, now_ns: u64) -> &mut Slice {
        let index = ((now_ns / self.slice_ns) as usize).min(self.slices.len() - 1);
        &mut self.slices[index]
    }

    /// Sums the depth until now, slice by slice.
    fn sum_depth_until(&mut self, now_ns: u64) {
        while self.now_ns < now_ns {
            let (from_ns, depth) = (self.now_ns, self.outstanding);
            let end_ns = (from_ns / self.slice_ns + 1) * self.slice_ns;
            let until_ns = if from_ns / self.slice_ns >= SLICES - 1 { now_ns } else { end_ns.min(now_ns) };
            let slice_ns = self.slice_ns as f64;
            let slice = self.slice_at(from_ns);
            slice.depth_mean += depth as f64 * (until_ns - from_ns) as f64 / slice_ns;
            slice.depth_max = slice.depth_max.max(depth);
            self.now_ns = until_ns;
        }
    }

    pub(crate) fn queued(&mut self, now_ns: u64, bytes: u32) {
        self.sum_depth_until(now_ns);
        self.outstanding += 1;
        let depth = self.outstanding;
        let slice = self.slice_at(now_ns);
        slice.ios += 1;
        slice.bytes += u64::from(bytes);
        slice.depth_max = slice.depth_max.max(depth);
        if bytes > 0 {
            self.sizes[(bytes.div_ceil(512).next_power_of_two().ilog2() as usize).min(23)] += 1;
        }
    }

    pub(crate) fn ended(&mut self, now_ns: u64) {
        self.sum_depth_until(now_ns);
        self.outstanding -= 1;
    }

    /// The slices, and the number of I/Os per size.
    pub(crate) fn finish(mut self, span_ns: u64) -> (Vec<Slice>, Vec<(u64, u64)>) {
        self.sum_depth_until(span_ns);
        let sizes = self.sizes.iter().enumerate().filter(|(_, ios)| **ios > 0);
        (self.slices, sizes.map(|(power, ios)| (512 << power, *ios)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_counted_where_they_are() {
        let mut slices = slices_of_stream(2000);
        for (now_ns, is_read, latency_ns) in [(0, true, 10), (100, true, 30), (101, false, 7), (5000, true, 4)] {
            add_completion(&mut slices, now_ns, is_read, latency_ns);
        }
        assert_eq!(
            (slices[0].reads, slices[1].writes),
            (Done { ios: 2, mean_ns: 20.0 }, Done { ios: 1, mean_ns: 7.0 })
        );
        assert_eq!((slices.len(), slices[19].reads.ios, slices[0].length_ns), (20, 1, 101));
    }

    #[test]
    fn depth_is_a_mean_over_time() {
        let mut timeline = Timeline::new(2000);
        timeline.queued(0, 4096);
        timeline.queued(50, 513);
        timeline.ended(101);
        timeline.ended(202);
        let (slices, sizes) = timeline.finish(2000);
        let depths: Vec<(f64, u64)> = slices[..3].iter().map(|slice| (slice.depth_mean, slice.depth_max)).collect();
        assert_eq!(depths, [(1.0 + 51.0 / 101.0, 2), (1.0, 1), (0.0, 0)]);
        assert_eq!((slices[0].ios, slices[0].bytes, sizes), (2, 4609, vec![(1024, 1), (4096, 1)]));
    }
}
