//! The platters, cut into slices as a cake is: of some hundreds of places the head finds the one that it reaches first by
//! looking at few.
//!
//! Slice after slice comes by, and what passes in an earlier one is reached earlier, if the arm is there by then. So in the slice that comes
//! by next the places count that are as near as the arm gets until it is over, in the one behind it those that are as near as it gets
//! until then, and so on until a slice begins later than the best was reached. What is looked at too early only costs
//! the look.

use hoistway_blk::ground::Instant;

use super::geometry::{Geometry, JUST_NOW_NS, Place};
use super::mechanics::Mechanics;

/// So many things are in a slice when all are there: fewer are fewer places to look at and more slices to go through.
const THINGS_OF_A_SLICE: u64 = 4;

/// Slices of the platters at least and at most, whatever they hold.
const SLICES_MIN: u64 = 16;
const SLICES_MAX: u64 = 1024;

/// Slices of disks that turn absurdly fast for their arm are wider, so that nobody goes through more than these.
const SLICES_OF_A_STROKE_MAX: u64 = 4096;

#[derive(Clone, Debug)]
pub(super) struct Slices {
    /// How long one takes to come by, ns. The last may be narrower.
    width_ns: u64,
    /// How far away the arm gets, in cylinders, until the slice before the one under the head is over (what has passed just now is still
    /// caught), the one under the head, the next one and so on, until everything has come by.
    reach: Vec<u64>,
    /// The cylinders and things of each slice, in no order.
    slices: Vec<Vec<(u64, usize)>>,
}

impl Slices {
    /// Of at most so many things.
    pub(super) fn new(things_max: u32, mechanics: &Mechanics) -> Slices {
        let Geometry { rotation_ns, cylinders, .. } = mechanics.geometry;
        let stroke_ns = mechanics.stroke_ns(cylinders);
        let wanted = (u64::from(things_max) / THINGS_OF_A_SLICE).clamp(SLICES_MIN, SLICES_MAX);
        let width_ns = rotation_ns.div_ceil(wanted).max(stroke_ns / SLICES_OF_A_STROKE_MAX);
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
        let reach = (0..=last).map(|slice| reach_in((slice * width_ns).saturating_add(JUST_NOW_NS))).collect();
        // Some hold more than their share.
        let share = (2 * things_max.div_ceil(slices as u32)) as usize;
        Slices { width_ns, reach, slices: (0..slices).map(|_| Vec::with_capacity(share)).collect() }
    }

    /// What is in the slice of this place.
    fn beside(&mut self, place: &Place) -> &mut Vec<(u64, usize)> {
        &mut self.slices[(place.angle_ns / self.width_ns) as usize]
    }

    /// A thing is here.
    pub(super) fn add(&mut self, place: &Place, thing: usize) {
        self.beside(place).push((place.cylinder, thing));
    }

    /// It is about to be elsewhere.
    ///
    /// # Panics
    /// If it was not here.
    pub(super) fn remove(&mut self, place: &Place, thing: usize) {
        let beside = self.beside(place);
        let at = beside.iter().position(|&(_, other)| other == thing).expect("everything is in its slice");
        beside.swap_remove(at);
    }

    /// What is here has another number now.
    ///
    /// # Panics
    /// If it was not here.
    pub(super) fn renumber(&mut self, place: &Place, thing: usize, now: usize) {
        let found = self.beside(place).iter_mut().find(|(_, other)| *other == thing);
        found.expect("everything is in its slice").1 = now;
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
        // When the slice's turn begins, ns after the turn before the one that is under way did.
        let (mut slice, mut turn_ns) =
            if under_the_head == 0 { (self.slices.len() - 1, 0) } else { (under_the_head - 1, rotation_ns) };
        let mut best = (u64::MAX, usize::MAX);
        for &reach in &self.reach {
            let begins_ns = turn_ns + slice as u64 * self.width_ns;
            if begins_ns > best.0.saturating_add(rotation_ns + turned_ns) {
                break;
            }
            // From `reach` below the head's cylinder to `reach` above it, in one comparison.
            let lowest = cylinder.wrapping_sub(reach);
            for &(at, thing) in &self.slices[slice] {
                if at.wrapping_sub(lowest) <= 2 * reach
                    && let Some(place) = place_of(thing)
                {
                    best = best.min((mechanics.positioning(now, place).0, thing));
                }
            }
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
