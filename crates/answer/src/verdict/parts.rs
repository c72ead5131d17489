//! Checks a recommendation on parts of a recording's time (RP24): a recording is one sample, and its parts show the noise.

use super::ratio::{LogRatio, logarithm};
use crate::analysis::{Analysis, Variant};
use crate::document::{Candidate, Decision, Outcome, PartsCheck, Run, SeriesSummary, Verdict};
use crate::figure::Figure;
use crate::figure_name::FigureName;

/// Number of parts, of equal length.
const PARTS: usize = 10;

impl PartsCheck {
    /// Compares the variant that a verdict recommends with its reference, part by part. `None` if the reference is recommended, or there is
    /// no series.
    pub(super) fn of(analysis: &Analysis<'_>, verdict: &Verdict) -> Option<PartsCheck> {
        let judged = &verdict.focus.first()?.figure;
        let is_change = matches!(verdict.decision, Decision::Change | Decision::OneRun);
        if !is_change || verdict.recommended == verdict.reference {
            return None;
        }
        // Parts keep no percentiles: the mean stands in.
        let figure = if judged.figure == Figure::Iops { Figure::Iops } else { Figure::Mean };
        let parts_under = |label: &str| -> Option<[Option<f64>; PARTS]> {
            let is_variant = |variant: &&Variant<'_>| variant.label == label && variant.first().setup == verdict.setup;
            let runs = analysis.variants.iter().find(is_variant)?.runs.iter().copied();
            let run_parts = |run: &Run| {
                let job = run.jobs.iter().find(|job| job.name == judged.job)?;
                Some(parts(&job.operation(judged.operation)?.series, figure))
            };
            mean(runs.filter_map(run_parts).collect())
        };
        let (from, to) = (parts_under(&verdict.reference)?, parts_under(&verdict.recommended)?);
        let gain = |(from, to): (&Option<f64>, &Option<f64>)| logarithm((*from)?, (*to)?, figure.higher_is_better());
        let logarithms: Vec<f64> = from.iter().zip(&to).filter_map(gain).collect();
        let change = LogRatio::of(&logarithms)?.as_change();
        let smallest = 1.0 + verdict.smallest_effect;
        Some(PartsCheck {
            figure: FigureName { job: judged.job.clone(), operation: judged.operation, figure },
            reference: verdict.reference.clone(),
            recommended: verdict.recommended.clone(),
            parts: logarithms.len() as u32,
            change,
            is_beyond_chance: change.low.is_some_and(|low| low > smallest),
        })
    }

    /// Whether the change is not recommended after all: it would be recommended for this figure alone, and the parts do not show it beyond chance. If
    /// a mean stands in for a percentile, or the change is better elsewhere, the parts only raise a doubt.
    fn withdraws(&self, verdict: &Verdict) -> bool {
        let is_judged = matches!(&verdict.focus[..], [only] if only.figure == self.figure);
        let is_better =
            |candidate: &Candidate| candidate.scheduler == self.recommended && candidate.outcome == Outcome::Better;
        !self.is_beyond_chance
            && is_judged
            && verdict.decision == Decision::Change
            && (&verdict.reference, &verdict.recommended) == (&self.reference, &self.recommended)
            && verdict.candidates.iter().any(is_better)
    }
}

impl Verdict {
    /// Checks a change on parts of the recording that was the load; the reference stays if they do not show it.
    pub(super) fn checked_on_parts(mut self, analysis: &Analysis<'_>) -> Verdict {
        let Some(check) = PartsCheck::of(analysis, &self) else { return self };
        if check.withdraws(&self) {
            for candidate in self.candidates.iter_mut().filter(|candidate| candidate.scheduler == check.recommended) {
                candidate.outcome = Outcome::WithinNoise;
                candidate.gains.clear();
            }
            (self.decision, self.certainty) = (Decision::Keep, None);
            self.recommended.clone_from(&self.reference);
        }
        self.parts = Some(check);
        self
    }
}

/// A figure in each part of a run; `None` in parts without I/Os.
fn parts(series: &SeriesSummary, figure: Figure) -> [Option<f64>; PARTS] {
    let SeriesSummary { ios, mean_lat_ns, .. } = series;
    let (mut counts, mut sums_ns, mut lengths) = ([0.0; PARTS], [0.0; PARTS], [0.0; PARTS]);
    let length = PARTS as f64 / ios.len() as f64;
    for (index, (ios, mean_ns)) in ios.iter().zip(mean_lat_ns).enumerate() {
        // An interval across a border is split between both parts.
        let (mut begin, end) = (index as f64 * length, (index + 1) as f64 * length);
        while end - begin > 1e-9 {
            let part = ((begin + 1e-9) as usize).min(PARTS - 1);
            let until = if part == PARTS - 1 { end } else { end.min((part + 1) as f64) };
            let share = (until - begin) / length;
            counts[part] += *ios as f64 * share;
            sums_ns[part] += *ios as f64 * share * *mean_ns as f64;
            lengths[part] += share;
            begin = until;
        }
    }
    std::array::from_fn(|part| match figure {
        _ if counts[part] <= 0.0 => None,
        Figure::Iops => Some(counts[part] / lengths[part]),
        _ => Some(sums_ns[part] / counts[part]),
    })
}

/// The mean over repeats, for each part that has I/Os in all of them.
fn mean(repeats: Vec<[Option<f64>; PARTS]>) -> Option<[Option<f64>; PARTS]> {
    let count = repeats.len() as f64;
    let mean = |part: usize| Some(repeats.iter().map(|repeat| repeat[part]).sum::<Option<f64>>()? / count);
    (!repeats.is_empty()).then(|| std::array::from_fn(mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(ios: &[u64], mean_lat_ns: &[u64]) -> SeriesSummary {
        SeriesSummary { interval_seconds: 0.1, ios: ios.to_vec(), mean_lat_ns: mean_lat_ns.to_vec(), rest: None }
    }

    #[test]
    fn parts_contain_all_ios_for_any_number_of_intervals() {
        for count in [3, 10, 64, 127] {
            let ios: Vec<u64> = (1..=count).collect();
            let of = series(&ios, &vec![500; count as usize]);
            let lengths = count as f64 / PARTS as f64;
            let sum: f64 = parts(&of, Figure::Iops).iter().flatten().map(|rate| rate * lengths).sum();
            assert!((sum - ios.iter().sum::<u64>() as f64).abs() < 1e-6, "{count}: {sum}");
            assert!(parts(&of, Figure::Mean).iter().all(|mean| mean.is_some_and(|ns| (ns - 500.0).abs() < 1e-6)));
        }
    }

    #[test]
    fn a_part_without_ios_has_no_mean() {
        let of = series(&[1, 0, 2, 2, 2, 2, 2, 2, 2, 2], &[5, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!(parts(&of, Figure::Mean)[..3], [Some(5.0), None, Some(7.0)]);
        assert_eq!(mean(vec![parts(&of, Figure::Mean), parts(&of, Figure::Mean)]).unwrap()[..2], [Some(5.0), None]);
    }
}
