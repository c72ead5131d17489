//! Garbage collection with a store of free flash, which programs use up and collection refills: one die at a time while there is
//! any, all dies in a long stretch once it is used up.
//!
//! A program uses up a whole unit of flash, however little data it holds. So with more I/O outstanding collection keeps up
//! with more bytes, because programs are fuller. A program of a sequential stream uses up none: the blocks that it overwrites hold nothing
//! else, and are erased without a move.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hoistway_blk::ground::Instant;

use super::dies::{Dies, HELD_UP_MAX};
use super::parameters::CollectionParameters;
use crate::random::{Random, UniformTime, from_us};

/// While more than one part in this many of the store is free, steps may be deferred.
const LOW_PART: u32 = 4;

/// Parts of a unit.
const PARTS: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub(super) struct Collection {
    /// Number of programs that there is room for.
    free: u32,
    /// The part of another unit that is used up, in [`PARTS`].
    used_parts: u64,
    /// Its maximum.
    programs: u32,
    step: UniformTime,
    /// Programs that a step makes room for.
    step_programs: u32,
    /// Running steps, ordered by end.
    steps: BinaryHeap<Reverse<Instant>>,
    /// Whether the store was empty and has not been full since: no step would fit.
    is_urgent: bool,
    /// No die is idle before this time.
    none_idle_before: Instant,
    /// Since when programs wait for a step for which no die was idle.
    held_up_since: Option<Instant>,
    /// Whether steps wait until no read is in the dies, while there is free flash.
    defers: bool,
}

impl Collection {
    pub(super) fn new(parameters: &CollectionParameters, jitter_percent: f64, defers: bool) -> Collection {
        Collection {
            free: parameters.programs,
            used_parts: 0,
            programs: parameters.programs,
            step: UniformTime::around(from_us(parameters.step_us), jitter_percent),
            // Otherwise the store would never be full.
            step_programs: parameters.step_programs.min(parameters.programs),
            steps: BinaryHeap::new(),
            is_urgent: false,
            none_idle_before: Instant::ZERO,
            held_up_since: None,
            defers,
        }
    }

    /// Whether programs wait until the store is full.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Programs that the store is short of.
    #[cfg(test)]
    pub(super) fn used(&self) -> u32 {
        self.programs - self.free
    }

    /// Whether no step runs.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.steps.is_empty()
    }

    /// A program of `bytes` starts, of which `random_bytes` belong to no sequential stream.
    #[inline]
    pub(super) fn consume(&mut self, random_bytes: u64, bytes: u64) {
        self.used_parts += if random_bytes == bytes { PARTS } else { random_bytes * PARTS / bytes };
        if self.used_parts >= PARTS {
            self.used_parts -= PARTS;
            self.free -= 1;
            self.is_urgent = self.free == 0;
        }
    }

    /// Steps that may start: one at a time, or as many as are missing if programs wait for them.
    #[inline]
    fn steps_to_start(&self) -> u32 {
        let missing = (self.programs - self.free) / self.step_programs;
        let wanted = if self.is_urgent { missing } else { missing.min(1) };
        wanted.saturating_sub(self.steps.len() as u32)
    }

    /// When a step may start at the earliest.
    #[inline]
    fn may_start_at(&self, dies: &Dies) -> Instant {
        let is_deferred = self.defers && !self.is_urgent && self.free > self.programs / LOW_PART;
        if is_deferred { self.none_idle_before.max(dies.reads_until()) } else { self.none_idle_before }
    }

    /// When the next step ends, or can start if programs wait for it or it was deferred.
    #[inline]
    pub(super) fn next_event(&self, dies: &Dies) -> Option<Instant> {
        let ends = self.steps.peek().map(|&Reverse(ends)| ends);
        if (self.is_urgent || self.defers) && self.steps_to_start() > 0 {
            let starts = self.may_start_at(dies);
            return Some(ends.map_or(starts, |ends| ends.min(starts)));
        }
        ends
    }

    /// Ends the steps that are done at `at`.
    pub(super) fn advance(&mut self, at: Instant) {
        while let Some(&Reverse(ends)) = self.steps.peek()
            && ends <= at
        {
            self.steps.pop();
            self.free += self.step_programs;
        }
        self.is_urgent &= self.free + self.step_programs <= self.programs;
        if !self.is_urgent {
            self.held_up_since = None;
        }
    }

    /// Starts steps on idle dies. Data waiting for a die must have been started, unless collection is urgent: then reads that keep
    /// coming hold it up for [`HELD_UP_MAX`] at most.
    #[inline]
    pub(super) fn start(&mut self, at: Instant, dies: &mut Dies, random: &mut Random) {
        let steps_to_start = self.steps_to_start();
        if steps_to_start > 0 && at >= self.may_start_at(dies) {
            self.start_on_idle(at, steps_to_start, dies, random);
        }
    }

    fn start_on_idle(&mut self, at: Instant, mut steps_to_start: u32, dies: &mut Dies, random: &mut Random) {
        let is_held_up = self.is_urgent && dies.held_up(at, &mut self.held_up_since) >= HELD_UP_MAX;
        self.none_idle_before = Instant(u64::MAX);
        for die in 0..dies.count() {
            let mut free_at = dies.free_at(die);
            if (free_at <= at || is_held_up) && steps_to_start > 0 {
                steps_to_start -= 1;
                free_at = dies.occupy(die, at, self.step.draw(random));
                self.steps.push(Reverse(free_at));
                self.held_up_since = None;
            }
            self.none_idle_before = self.none_idle_before.min(free_at);
        }
    }
}
