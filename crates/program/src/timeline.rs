//! The recording as a whole, over time and by size.

use serde::{Deserialize, Serialize};

/// Parts of equal time (RP24 has ten; these halve them).
const SLICES: u64 = 20;

/// A part of the recording's time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Its begin since the start, in nanoseconds.
    pub start_ns: u64,
    /// I/Os that were submitted.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean number outstanding.
    pub depth_mean: f64,
    /// Most outstanding.
    pub depth_max: u64,
}

/// Followed from entry to entry.
#[derive(Debug)]
pub(crate) struct Timeline {
    slices: Vec<Slice>,
    slice_ns: u64,
    outstanding: u64,
    /// Until when the depth has been added up.
    now_ns: u64,
    /// I/Os by their size: of up to 512 bytes, 1 KiB, and so on.
    sizes: [u64; 24],
}

impl Timeline {
    pub(crate) fn new(span_ns: u64) -> Timeline {
        let slice_ns = (span_ns / SLICES + 1).max(1);
        let slice = |at: u64| Slice { start_ns: at * slice_ns, ..Slice::default() };
        Timeline { slices: (0..SLICES).map(slice).collect(), slice_ns, outstanding: 0, now_ns: 0, sizes: [0; 24] }
    }

    fn at(&mut self, now_ns: u64) -> &mut Slice {
        let at = ((now_ns / self.slice_ns) as usize).min(self.slices.len() - 1);
        &mut self.slices[at]
    }

    /// Adds up the depth until now, slice by slice.
    fn reach(&mut self, now_ns: u64) {
        while self.now_ns < now_ns {
            let (from_ns, depth) = (self.now_ns, self.outstanding);
            let end_ns = (from_ns / self.slice_ns + 1) * self.slice_ns;
            let until_ns = if from_ns / self.slice_ns >= SLICES - 1 { now_ns } else { end_ns.min(now_ns) };
            let slice_ns = self.slice_ns as f64;
            let slice = self.at(from_ns);
            slice.depth_mean += depth as f64 * (until_ns - from_ns) as f64 / slice_ns;
            slice.depth_max = slice.depth_max.max(depth);
            self.now_ns = until_ns;
        }
    }

    pub(crate) fn queued(&mut self, now_ns: u64, bytes: u32) {
        self.reach(now_ns);
        self.outstanding += 1;
        let depth = self.outstanding;
        let slice = self.at(now_ns);
        slice.ios += 1;
        slice.bytes += u64::from(bytes);
        slice.depth_max = slice.depth_max.max(depth);
        if bytes > 0 {
            self.sizes[(bytes.div_ceil(512).next_power_of_two().ilog2() as usize).min(23)] += 1;
        }
    }

    pub(crate) fn gone(&mut self, now_ns: u64) {
        self.reach(now_ns);
        self.outstanding -= 1;
    }

    /// The parts, and how many I/Os there are of up to a number of bytes.
    pub(crate) fn finish(mut self, span_ns: u64) -> (Vec<Slice>, Vec<(u64, u64)>) {
        self.reach(span_ns);
        let sizes = self.sizes.iter().enumerate().filter(|(_, ios)| **ios > 0);
        (self.slices, sizes.map(|(power, ios)| (512 << power, *ios)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_a_mean_over_time() {
        let mut timeline = Timeline::new(2000);
        timeline.queued(0, 4096);
        timeline.queued(50, 513);
        timeline.gone(101);
        timeline.gone(202);
        let (slices, sizes) = timeline.finish(2000);
        let depths: Vec<(f64, u64)> = slices[..3].iter().map(|slice| (slice.depth_mean, slice.depth_max)).collect();
        assert_eq!(depths, [(1.0 + 51.0 / 101.0, 2), (1.0, 1), (0.0, 0)]);
        assert_eq!((slices[0].ios, slices[0].bytes, sizes), (2, 4609, vec![(1024, 1), (4096, 1)]));
    }
}
