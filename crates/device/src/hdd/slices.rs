//! The platters divided into slices by angle: with hundreds of positions, the one that the head reaches first is found by
//! examining a few.
//!
//! Slices pass under the head one after the other, and a position in an earlier slice is reached earlier if the arm is there in time. So in
//! the next slice only positions count that the arm can reach before it has passed, in the one after it those that it can reach until then,
//! and so on, until a slice starts later than the best time found. Examining a position too early only costs time.

use hoistway_blk::ground::Instant;

use super::geometry::{Geometry, HeadPosition, PASSED_TOLERANCE_NS};
use super::mechanics::Mechanics;

/// Items per slice when all items are present: with fewer items per slice there are more slices to go through.
const ITEMS_PER_SLICE: u64 = 4;

/// Minimum and maximum number of slices.
const SLICES_MIN: u64 = 16;
const SLICES_MAX: u64 = 1024;

/// Slices of disks that rotate extremely fast relative to their arm are wider, so that at most this many are examined.
const SLICES_OF_A_STROKE_MAX: u64 = 4096;

#[derive(Clone, Debug)]
pub(super) struct Slices {
    /// Time in which one slice passes the head, ns. The last one may be narrower.
    width_ns: u64,
    /// Cylinders that the arm can cross before the slice before the current one has passed (a sector that has just passed can still be
    /// read), before the current slice has passed, the next one, and so on, for a full rotation.
    reach: Vec<u64>,
    /// The cylinders and items of each slice, unordered.
    slices: Vec<Vec<(u64, usize)>>,
}

impl Slices {
    /// Slices for at most this many items.
    pub(super) fn new(items_max: u32, mechanics: &Mechanics) -> Slices {
        let Geometry { rotation_ns, cylinders, .. } = mechanics.geometry;
        let stroke_ns = mechanics.stroke_ns(cylinders);
        let slice_count = (u64::from(items_max) / ITEMS_PER_SLICE).clamp(SLICES_MIN, SLICES_MAX);
        let width_ns = rotation_ns.div_ceil(slice_count).max(stroke_ns / SLICES_OF_A_STROKE_MAX);
        let slices = rotation_ns.div_ceil(width_ns);
        // A seek over more cylinders is never faster.
        let reach_in = |ns: u64| {
            let (mut within, mut beyond) = (0, cylinders + 1);
            while beyond - within > 1 {
                let middle = within + (beyond - within) / 2;
                if mechanics.stroke_ns(middle) <= ns { within = middle } else { beyond = middle }
            }
            within
        };
        let last = stroke_ns.div_ceil(width_ns) + slices + 1;
        let reach = (0..=last).map(|slice| reach_in((slice * width_ns).saturating_add(PASSED_TOLERANCE_NS))).collect();
        // Some slices contain more than the average.
        let capacity = (2 * items_max.div_ceil(slices as u32)) as usize;
        Slices { width_ns, reach, slices: (0..slices).map(|_| Vec::with_capacity(capacity)).collect() }
    }

    /// The content of the slice of this position.
    fn slice_at(&mut self, position: &HeadPosition) -> &mut Vec<(u64, usize)> {
        &mut self.slices[(position.angle_ns / self.width_ns) as usize]
    }

    /// Adds an item at this position.
    pub(super) fn add(&mut self, position: &HeadPosition, item: usize) {
        self.slice_at(position).push((position.cylinder, item));
    }

    /// Removes an item from this position.
    ///
    /// # Panics
    /// If the item was not there.
    pub(super) fn remove(&mut self, position: &HeadPosition, item: usize) {
        let slice = self.slice_at(position);
        let index = slice.iter().position(|&(_, other)| other == item).expect("everything is in its slice");
        slice.swap_remove(index);
    }

    /// Changes the number of the item at this position.
    ///
    /// # Panics
    /// If the item was not there.
    pub(super) fn renumber(&mut self, position: &HeadPosition, item: usize, new_item: usize) {
        let found = self.slice_at(position).iter_mut().find(|(_, other)| *other == item);
        found.expect("everything is in its slice").1 = new_item;
    }

    /// The item that is reached first, among those with a position in `position_of`. Ties go to the first one.
    pub(super) fn nearest<'a>(
        &self,
        now: Instant,
        mechanics: &Mechanics,
        position_of: impl Fn(usize) -> Option<&'a HeadPosition>,
    ) -> Option<usize> {
        let (rotation_ns, cylinder) = (mechanics.geometry.rotation_ns, mechanics.head_at.cylinder);
        let turned_ns = now.0 % rotation_ns;
        let under_the_head = (turned_ns / self.width_ns) as usize;
        // The start of the slice's pass, in ns since the start of the current slice's pass.
        let (mut slice, mut turn_ns) =
            if under_the_head == 0 { (self.slices.len() - 1, 0) } else { (under_the_head - 1, rotation_ns) };
        let mut best = (u64::MAX, usize::MAX);
        for &reach in &self.reach {
            let begins_ns = turn_ns + slice as u64 * self.width_ns;
            if begins_ns > best.0.saturating_add(rotation_ns + turned_ns) {
                break;
            }
            // From `reach` below the head's cylinder to `reach` above it, in a single comparison.
            let lowest = cylinder.wrapping_sub(reach);
            for &(item_cylinder, item) in &self.slices[slice] {
                if item_cylinder.wrapping_sub(lowest) <= 2 * reach
                    && let Some(position) = position_of(item)
                {
                    best = best.min((mechanics.positioning(now, position).0, item));
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
