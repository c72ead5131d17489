//! The platters, cut into slices as a cake is: of some hundreds of places the head finds the one that it reaches first by
//! looking at few.
//!
//! Slice after slice comes by, and what passes in an earlier one is reached earlier, if the arm is there by then. So in the slice that comes
//! by next the places count that are as near as the arm gets until it is over, in the one behind it those that are as near as it gets
//! until then, and so on until a slice begins later than the best was reached. What is looked at too early only costs
//! the look.

use hoistway_blk::Instant;

use super::geometry::{Geometry, JUST_NOW_NS, Place};
use super::index::Index;
use super::mechanics::Mechanics;

/// More are fewer places to look at and more slices to go through.
const SLICES: u64 = 128;

/// Slices of disks that turn absurdly fast for their arm are wider, so that nobody goes through more than these.
const SLICES_OF_A_STROKE_MAX: u64 = 256;

#[derive(Clone, Debug)]
pub(super) struct Slices {
    /// How long one takes to come by, ns. The last may be narrower.
    width_ns: u64,
    /// How far away the arm gets, in cylinders, until the slice under the head is over, the next one and so on, until everything has
    /// come by.
    reach: Vec<u64>,
    /// What is in each slice, by cylinder.
    slices: Vec<Index>,
}

impl Slices {
    /// Of at most so many things.
    pub(super) fn new(things_max: u32, mechanics: &Mechanics) -> Slices {
        let Geometry { rotation_ns, cylinders, .. } = mechanics.geometry;
        let stroke_ns = mechanics.stroke_ns(cylinders);
        let width_ns = rotation_ns.div_ceil(SLICES).max(stroke_ns / SLICES_OF_A_STROKE_MAX);
        let slices = rotation_ns.div_ceil(width_ns);
        // More cylinders are never quicker.
        let reach_in = |ns: u64| {
            let (mut within, mut beyond) = (0, cylinders + 1);
            while beyond - within > 1 {
                let middle = within + (beyond - within) / 2;
                if mechanics.stroke_ns(middle) <= ns { within = middle } else { beyond = middle }
            }
            within
        };
        let last = stroke_ns.div_ceil(width_ns) + slices + 1;
        let reach = (1..=last).map(|slice| reach_in((slice * width_ns).saturating_add(JUST_NOW_NS))).collect();
        // Some slices hold more than their share.
        let share = u64::from(things_max).div_ceil(slices) * 2;
        Slices { width_ns, reach, slices: (0..slices).map(|_| Index::new(share as usize)).collect() }
    }

    /// The slice of this place.
    fn of(&mut self, place: &Place) -> &mut Index {
        &mut self.slices[(place.angle_ns / self.width_ns) as usize]
    }

    /// A thing is here.
    pub(super) fn add(&mut self, place: &Place, thing: usize) {
        self.of(place).add(place.cylinder, thing);
    }

    /// It is about to be elsewhere.
    ///
    /// # Panics
    /// If it was not here.
    pub(super) fn remove(&mut self, place: &Place, thing: usize) {
        self.of(place).remove(place.cylinder, thing);
    }

    /// What is here has a lower number now.
    ///
    /// # Panics
    /// If it was not here.
    pub(super) fn renumber(&mut self, place: &Place, thing: usize, lower: usize) {
        self.of(place).renumber(place.cylinder, thing, lower);
    }

    /// Which of the things is reached first, of those for which `place_of` says where they are. Ties go to the first.
    pub(super) fn nearest_of<'a>(
        &self,
        now: Instant,
        mechanics: &Mechanics,
        place_of: impl Fn(usize) -> Option<&'a Place>,
    ) -> Option<usize> {
        let (rotation_ns, cylinder) = (mechanics.geometry.rotation_ns, mechanics.head_at.cylinder);
        let turned_ns = now.0 % rotation_ns;
        let under_the_head = (turned_ns / self.width_ns) as usize;
        let mut best = (u64::MAX, usize::MAX);
        let mut look = |slice: usize, reach: u64| {
            for thing in self.slices[slice].within(cylinder.saturating_sub(reach), cylinder + reach) {
                if let Some(place) = place_of(thing) {
                    best = best.min((mechanics.positioning(now, place).0, thing));
                }
            }
            best.0
        };
        // What has passed just now is still caught.
        let mut least_ns = look(under_the_head.checked_sub(1).unwrap_or(self.slices.len() - 1), self.reach[0]);
        let (mut slice, mut turn_ns) = (under_the_head, 0);
        for &reach in &self.reach {
            if turn_ns + slice as u64 * self.width_ns > least_ns.saturating_add(turned_ns) {
                break;
            }
            least_ns = look(slice, reach);
            slice += 1;
            if slice == self.slices.len() {
                (slice, turn_ns) = (0, turn_ns + rotation_ns);
            }
        }
        (best.0 < u64::MAX).then_some(best.1)
    }
}

#[cfg(test)]
mod tests;
