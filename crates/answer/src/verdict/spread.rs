//! Judged figures whose repeats differ widely, because a few microseconds of host timing decide them: their mean is not representative.

use super::Judge;
use crate::document::{Aspect, Spread};
use crate::figure::Figure;

/// If repeats differ by at least this factor, the conclusion prints the lowest and the highest. Below it, the mean and its interval
/// describe every repeat; above it, one repeat can recommend what another rejects.
const WIDE_SPREAD: f64 = 2.0;

impl Judge<'_> {
    /// The judged figures under these variants whose repeats differ widely. Maxima always do, and are left out.
    pub(super) fn spreads(&self, variants: &[usize]) -> Vec<Spread> {
        let mut spreads = Vec::new();
        for part in self.focus.parts.iter().filter(|part| part.figure != Figure::Max) {
            for &variant in variants {
                let value =
                    |repeat| part.party.value(Some(part.operation), Aspect::Figure(part.figure), variant, repeat);
                let values: Vec<f64> = self.setup.repeats().filter_map(value).collect();
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(0.0, f64::max);
                if values.len() > 1 && most > 0.0 && most >= least * WIDE_SPREAD {
                    spreads.push(Spread { figure: part.name().figure, scheduler: self.label(variant), least, most });
                }
            }
        }
        spreads
    }
}
