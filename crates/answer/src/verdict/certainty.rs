//! In how many resamplings of the repeats a decision is the same.

use super::Judge;
use crate::document::{Candidate, Outcome};

/// Resamplings: their share is known to about a percent.
const RESAMPLINGS: u64 = 1000;

impl Judge<'_> {
    /// The share of resamplings (bootstrap) in which the same variant is best, None of repeats that not all variants have.
    ///
    /// It is the same if nothing else is better than it by more than the smallest effect.
    pub(super) fn certainty(&self, best: Option<usize>, candidates: &[(usize, Candidate)]) -> Option<f64> {
        let repeats: Vec<u32> = self.repeats().collect();
        let smallest = self.smallest_effect.ln_1p();
        // Those whose losses rule them out would be no choice in any resampling.
        let is_possible = |(variant, candidate): &&(usize, Candidate)| {
            candidate.outcome != Outcome::Incomparable && !self.is_outvoted(*variant)
        };
        let possible: Vec<usize> = candidates.iter().filter(is_possible).map(|(variant, _)| *variant).collect();
        let of_repeats = |variant: &usize| -> Option<Vec<f64>> {
            repeats.iter().map(|repeat| self.balance(*variant, *repeat)).collect()
        };
        let balances: Option<Vec<Vec<f64>>> = possible.iter().map(of_repeats).collect();
        let (balances, count) = (balances?, repeats.len() as u64);
        let chosen = best.and_then(|best| possible.iter().position(|variant| *variant == best));
        let mut random = Random(count);
        let mut same = 0;
        for _ in 0..RESAMPLINGS {
            let drawn: Vec<usize> = repeats.iter().map(|_| random.below(count) as usize).collect();
            let mean = |of: &Vec<f64>| drawn.iter().map(|index| of[*index]).sum::<f64>() / drawn.len() as f64;
            let means: Vec<f64> = balances.iter().map(mean).collect();
            let top = means.iter().copied().fold(0.0, f64::max);
            let stands = match chosen {
                Some(chosen) => means[chosen] >= smallest && means[chosen] >= top - smallest,
                None => top < smallest,
            };
            same += u64::from(stands);
        }
        Some(same as f64 / RESAMPLINGS as f64)
    }
}

/// SplitMix64: the same resamplings whenever there are as many repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((bits ^ (bits >> 31)) >> 32) * end) >> 32
    }
}
