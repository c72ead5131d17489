//! Bootstrap estimate of how stable a decision is: the share of resamplings of the repeats that reach it.

use hoistway_measure::stats;

use super::roles::Role;
use super::{Judge, UNCERTAIN_FACTOR};
use crate::document::{Aspect, Candidate, Decision, FocusFrom, Outcome, Shift, Verdict};
use crate::figure::Figure;

/// Number of resamplings, enough to know the share to about 1 %.
const RESAMPLINGS: u64 = 1000;
/// A decision that at least this share of the resamplings reaches is certain.
const CERTAIN_SHARE: f64 = 0.99;
/// The 97.5 % quantile of the normal distribution; intervals use the same quantile of Student's t.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// Per-repeat inputs to the decision for one variant.
struct Series {
    balance: Vec<f64>,
    /// The combined gain of the parties that wait, if they can outvote the balance.
    waiting: Option<Vec<f64>>,
    /// Whether a figure shows the gain beyond the noise; otherwise it is not recommended.
    is_explained: bool,
    comes_first: bool,
}

/// How much better than the reference a variant is in one resampling, those that come first before others.
type Worth = (bool, f64);

/// How much better than the reference each candidate is in each resampling; `None` where it is not worth a change.
pub(super) struct Resampled {
    worths: Vec<Vec<Option<Worth>>>,
    smallest: f64,
}

impl Resampled {
    /// The share of resamplings in which the candidate with this number is worth a change from the reference.
    pub(super) fn share_better(&self, candidate: usize) -> f64 {
        self.share(|worths| worths[candidate].is_some())
    }

    /// The share of resamplings that reach the decision for a candidate, or for the reference: no other is better by more than the smallest
    /// effect.
    pub(super) fn share_reaching(&self, chosen: Option<usize>) -> f64 {
        self.share(|worths| {
            let by_kind = |a: &Worth, b: &Worth| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            let top = worths.iter().flatten().copied().max_by(by_kind);
            match (chosen, top) {
                (Some(chosen), Some(top)) => {
                    worths[chosen].is_some_and(|worth| worth.0 == top.0 && worth.1 >= top.1 - self.smallest)
                }
                (chosen, top) => chosen.is_none() && top.is_none(),
            }
        })
    }

    fn share(&self, holds: impl Fn(&[Option<Worth>]) -> bool) -> f64 {
        self.worths.iter().filter(|worths| holds(worths)).count() as f64 / self.worths.len() as f64
    }
}

impl Judge<'_> {
    /// Decides in resamplings of the repeats (bootstrap, the same for all variants). `None` if a variant lacks some of the repeats.
    ///
    /// In each resampling, a variant is worth a change if it is better than the reference by the smallest effect and is not outvoted by
    /// the parties that wait.
    /// Bootstrap means of few repeats underestimate the spread, so deviations are widened to match Student's t.
    pub(super) fn resampled(&self, candidates: &[(usize, Candidate)]) -> Option<Resampled> {
        let series = |(variant, candidate): &(usize, Candidate)| match candidate.outcome {
            Outcome::Incomparable => Some(None),
            _ => self.series(*variant, candidate).map(Some),
        };
        let series: Vec<Option<Series>> = candidates.iter().map(series).collect::<Option<_>>()?;
        let repeats = self.setup.repeats().count();
        let stretch = stretch(repeats)?;
        let smallest = self.smallest_effect.ln_1p();
        let mut random = Random(repeats as u64);
        let resample = |_| {
            let sample: Vec<usize> = (0..repeats).map(|_| random.below(repeats as u64) as usize).collect();
            let mean_of = |values: &Vec<f64>| {
                let all = values.iter().sum::<f64>() / repeats as f64;
                all + stretch * (sample.iter().map(|index| values[*index]).sum::<f64>() / repeats as f64 - all)
            };
            let worth = |inputs: &Option<Series>| {
                let inputs = inputs.as_ref().filter(|inputs| inputs.is_explained)?;
                let is_rejected_by_waiting_parties =
                    inputs.waiting.as_ref().is_some_and(|waiting| mean_of(waiting) <= -smallest);
                let balance = mean_of(&inputs.balance);
                (balance >= smallest && !is_rejected_by_waiting_parties).then_some((inputs.comes_first, balance))
            };
            series.iter().map(worth).collect()
        };
        Some(Resampled { worths: (0..RESAMPLINGS).map(resample).collect(), smallest })
    }

    /// The inputs for a variant; `None` if a repeat is missing.
    fn series(&self, variant: usize, candidate: &Candidate) -> Option<Series> {
        let balance = self.setup.repeats().map(|repeat| self.balance(variant, repeat)).collect::<Option<_>>()?;
        let waiting_gain = |repeat| self.setup.gain_of(self.judged_parties, variant, repeat, Role::is_waited_for);
        let waiting =
            if self.focus.from == FocusFrom::Asked { None } else { self.setup.repeats().map(waiting_gain).collect() };
        Some(Series {
            balance,
            waiting,
            is_explained: !self.is_unexplained(candidate),
            comes_first: self.comes_first(variant, candidate),
        })
    }
}

impl Verdict {
    /// Whether more runs would hardly change the decision, nor show that the change costs more than it gains. True if there is nothing
    /// to decide.
    pub fn is_sure(&self) -> bool {
        let is_certain = self.certainty.is_some_and(|certainty| certainty >= CERTAIN_SHARE);
        match self.decision {
            Decision::Alone => true,
            Decision::OneRun => false,
            Decision::Keep => is_certain,
            Decision::Change => {
                let changed = self.candidates.iter().find(|candidate| candidate.scheduler == self.recommended);
                let may_lose_more = changed.is_some_and(|candidate| {
                    let gain = candidate.gain.map_or(UNCERTAIN_FACTOR, |gain| gain.factor);
                    candidate.losses.iter().any(|loss| loss.may_exceed(gain))
                });
                is_certain && !may_lose_more
            }
        }
    }
}

impl Shift {
    /// Whether this loss does not count because the runs do not agree on it, but may exceed the gain (a factor). Never true for a
    /// largest latency, which is a single I/O.
    pub fn may_exceed(&self, gain: f64) -> bool {
        let is_doubtful = self.significant == Some(false) && !self.weighs;
        is_doubtful && self.factor > gain && self.aspect != Aspect::Figure(Figure::Max)
    }
}

/// The factor that widens deviations of resampled means for this number of repeats; `None` for fewer than two.
fn stretch(repeats: usize) -> Option<f64> {
    let sample: Vec<f64> = (0..repeats).map(|number| number as f64).collect();
    let count = repeats as f64;
    // The standard deviation of resampled means of these numbers.
    let resampled = stats::sample_stddev(&sample)? * (count - 1.0).sqrt() / count;
    Some(stats::half_width(&sample)? / (NORMAL_QUANTILE * resampled))
}

/// SplitMix64, seeded with the number of repeats so that resamplings are reproducible.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_few_repeats_are_stretched_most() {
        // t of 2 degrees of freedom over the normal quantile, times the root of 3/2.
        let of_three = 4.302_653 / NORMAL_QUANTILE * 1.5_f64.sqrt();
        assert!((stretch(3).unwrap() - of_three).abs() < 1e-6);
        assert!(stretch(10).unwrap() < 1.3 && (stretch(1000).unwrap() - 1.0).abs() < 0.01);
        assert_eq!(stretch(1), None);
    }
}
