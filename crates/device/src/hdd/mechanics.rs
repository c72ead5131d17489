//! Head movement: the time from one position to another, and which of several is reached first.

use hoistway_blk::ground::{Instant, Nanos};

use super::HddParameters;
use super::geometry::{Geometry, HeadPosition};

/// The arm and the platters.
#[derive(Clone, Debug)]
pub(super) struct Mechanics {
    pub(super) geometry: Geometry,
    seek: SeekCurve,
    /// The position of the head: after the last sector that it accessed.
    pub(super) head_at: HeadPosition,
}

/// Time of a seek over a fraction `d` of all cylinders: `a + b * sqrt(d) + c * d`. The square root models acceleration
/// and braking, the linear part the cruise. The curve matches the three figures of a data sheet.
#[derive(Clone, Debug)]
pub(super) struct SeekCurve {
    /// ns.
    a: f64,
    /// ns, for the whole stroke.
    b: f64,
    /// ns, for the whole stroke.
    c: f64,
    /// One cylinder as a fraction of all.
    cylinder: f64,
    /// The time of each short seek, ns.
    short_ns: Box<[u64]>,
}

/// Seeks over fewer cylinders are looked up: those within a file of some gigabytes.
const SHORT_CYLINDERS: u64 = 1024;

impl SeekCurve {
    /// Between two random positions the mean of `d` is 1/3 and that of its square root 8/15. The check of presets
    /// ensures that neither `b` nor `c` is negative.
    fn new(parameters: &HddParameters, cylinders: u64) -> SeekCurve {
        let whole_ms = parameters.seek_full_stroke_ms - parameters.seek_track_to_track_ms;
        let average_ms = parameters.seek_average_ms - parameters.seek_track_to_track_ms;
        let b_ms = (average_ms - whole_ms / 3.0) * 5.0;
        let c_ms = whole_ms - b_ms;
        let mut curve = SeekCurve {
            a: parameters.seek_track_to_track_ms * 1e6,
            b: b_ms * 1e6,
            c: c_ms * 1e6,
            cylinder: 1.0 / cylinders as f64,
            short_ns: Box::default(),
        };
        curve.short_ns = (0..SHORT_CYLINDERS.min(cylinders)).map(|cylinders| curve.compute_ns(cylinders)).collect();
        curve
    }

    #[inline]
    fn ns(&self, cylinders: u64) -> u64 {
        match self.short_ns.get(cylinders as usize) {
            Some(&ns) => ns,
            None => self.compute_ns(cylinders),
        }
    }

    fn compute_ns(&self, cylinders: u64) -> u64 {
        let d = cylinders as f64 * self.cylinder;
        (self.a + self.b * d.sqrt() + self.c * d) as u64
    }
}

impl Mechanics {
    pub(super) fn new(geometry: Geometry, parameters: &HddParameters) -> Mechanics {
        let seek = SeekCurve::new(parameters, geometry.cylinders);
        let head_at = geometry.position(0);
        Mechanics { geometry, seek, head_at }
    }

    /// Time of a seek over this many cylinders, ns.
    pub(super) fn stroke_ns(&self, cylinders: u64) -> u64 {
        self.seek.ns(cylinders)
    }

    /// Time from `now` until the head is on the track of `to`.
    #[inline]
    fn seek_ns(&self, target: &HeadPosition) -> u64 {
        match target.cylinder.abs_diff(self.head_at.cylinder) {
            0 if target.head == self.head_at.head => 0,
            0 => self.geometry.head_switch_ns,
            cylinders => self.seek.ns(cylinders),
        }
    }

    /// Time from `now` until the sector of `target` passes the head.
    #[inline]
    pub(super) fn positioning(&self, now: Instant, target: &HeadPosition) -> Nanos {
        let seek_ns = self.seek_ns(target);
        Nanos(seek_ns + self.geometry.arrival(now.0.saturating_add(seek_ns)).wait_ns(target))
    }

    /// The position that is reached first. Ties go to the first one.
    pub(super) fn nearest<'a>(
        &self,
        now: Instant,
        positions: impl Iterator<Item = (usize, &'a HeadPosition)>,
    ) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        let arrives_at_once = self.geometry.arrival(now.0);
        for (index, position) in positions {
            let best_ns = best.map_or(u64::MAX, |(ns, _)| ns);
            // Its sector does not pass earlier, however fast the arm is. That rules out most positions.
            if arrives_at_once.wait_ns(position) >= best_ns {
                continue;
            }
            let seek_ns = self.seek_ns(position);
            if seek_ns >= best_ns {
                continue;
            }
            let ns = seek_ns + self.geometry.arrival(now.0.saturating_add(seek_ns)).wait_ns(position);
            if ns < best_ns {
                best = Some((ns, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Moves the head to `sector`, whose position is `from`, and over `sectors` of them, starting at `now`. Returns when the
    /// last one has passed.
    pub(super) fn pass(&mut self, now: Instant, sector: u64, start: &HeadPosition, sectors: u64) -> Instant {
        let to = self.geometry.position_after(start, sector + sectors);
        let begin = now + self.positioning(now, start);
        self.head_at = to;
        begin + self.geometry.transfer_between((sector, start), (sector + sectors, &to))
    }
}

#[cfg(test)]
mod tests;
