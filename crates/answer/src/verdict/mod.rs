//! What a comparison says to do: decided from its document alone.
//!
//! One figure, or several with weights, is in *focus*. Every scheduler is compared with a reference, the kernel's default if it is
//! there, by the ratio of that figure, repeat by repeat. A change is worth it if
//!
//! * the figure is better beyond the noise, and by more than the smallest effect that matters;
//! * nothing is lost by a larger factor than is gained: throughput, latencies, commits and fairness of every job, and the largest
//!   latency of the job in focus itself, if it is at least twice as long and the repeats
//!   agree on it (what else is longer is told, and does not weigh: each is a single I/O); a loss that may be chance weighs if it
//!   is large, and is told at least if it would be more than the gain;
//! * nobody else is better at everything.
//!
//! Of several that are, and cannot be told apart, the one with the smallest losses is named. Otherwise the reference stays.

mod focus;
mod party;
mod ratio;
mod shifts;

use std::cmp::Ordering;

use self::focus::Focus;
use self::party::Party;
pub(crate) use self::ratio::logarithm;
use self::ratio::{Ratio, rounded};
use self::shifts::shifts;
pub(crate) use self::shifts::{can_outweigh, is_told_though_uncertain, shown};
use crate::analysis::{Analysis, Estimate, Variant};
use crate::document::{Aspect, Candidate, Decision, Outcome, ResultsDocument, Shift, Verdict};
use crate::figure::Figure;
use crate::figure_name::FigureName;

/// What is less, as a fraction, is no difference to anybody.
pub const SMALLEST_EFFECT: f64 = 0.02;
/// A gain elsewhere that is worth a change by itself, as a factor.
const GAIN_ELSEWHERE: f64 = 1.1;
/// Of so many I/Os at least one must have waited beside another for a scheduler to have had a choice.
const IOS_PER_CHOICE: u64 = 1000;

/// The verdict on each place that the runs took place in; none if settings changed meanwhile, so that a row is of several.
pub fn verdicts(document: &ResultsDocument) -> Vec<Verdict> {
    if !document.writes.is_empty() {
        return Vec::new();
    }
    let comparison = Analysis::of(document);
    let Some(focus) = focus::chosen(document, &comparison) else { return Vec::new() };
    let mut setups: Vec<u32> = comparison.variants.iter().map(|variant| variant.first().setup).collect();
    setups.dedup();
    setups.sort_unstable();
    setups.dedup();
    setups.into_iter().filter_map(|setup| Judge::of(document, &comparison, &focus, setup)?.verdict(setup)).collect()
}

impl Verdict {
    /// A figure that was judged, under the variant with this label: of jobs that are alike their median, as it was judged. None if the
    /// variant has nothing of it.
    pub fn estimate(&self, comparison: &Analysis<'_>, figure: &FigureName, label: &str) -> Option<Estimate> {
        let (job, operation) = comparison.find(figure).ok()?;
        let variant = comparison.variants.iter().position(|variant| variant.label == label)?;
        if self.alike.len() < 2 {
            return Some(operation.row(variant)?.estimate(figure.figure));
        }
        let party = Party::all(comparison).into_iter().find(|party| party.jobs.iter().any(|one| one.job == job.job))?;
        let repeats = comparison.variants[variant].runs.iter().map(|run| run.repeat);
        let value = |repeat| party.value(Some(figure.operation), Aspect::Figure(figure.figure), variant, repeat);
        let values: Vec<f64> = repeats.filter_map(value).collect();
        (!values.is_empty()).then(|| Estimate::of(figure.figure, &values))
    }
}

/// Whoever judges the variants of a place.
struct Judge<'a> {
    document: &'a ResultsDocument,
    comparison: &'a Analysis<'a>,
    focus: &'a Focus<'a>,
    /// Those that the kernel has.
    variants: Vec<usize>,
    reference: usize,
    /// What the kernel gives the devices of this place.
    default: Option<&'a str>,
    smallest_effect: f64,
}

impl<'a> Judge<'a> {
    fn of(
        document: &'a ResultsDocument,
        comparison: &'a Analysis<'a>,
        focus: &'a Focus<'a>,
        setup: u32,
    ) -> Option<Self> {
        let here = |index: &usize| comparison.variants[*index].first().setup == setup;
        let mut variants: Vec<usize> = (0..comparison.variants.len()).filter(here).collect();
        let is_of_kernel = |index: &usize| comparison.variants[*index].first().ran_as.is_none();
        if variants.iter().any(is_of_kernel) {
            variants.retain(is_of_kernel);
        }
        let default =
            document.setups.get(setup as usize).map_or(&document.default_scheduler, |at| &at.default_scheduler);
        let default = default.as_deref();
        let variant = |index: &usize| &comparison.variants[*index];
        let wanted = document.baseline.as_deref().map(|_| &comparison.variants[comparison.baseline]);
        let find =
            |is_meant: &dyn Fn(&Variant<'_>) -> bool| variants.iter().copied().find(|one| is_meant(variant(one)));
        // The default settings of a scheduler before others of it.
        let of_scheduler = |name: &str| {
            find(&|one| one.scheduler() == name && one.first().variant.is_usual())
                .or_else(|| find(&|one| one.scheduler() == name))
        };
        let like = |wanted: &Variant<'_>| {
            let knobs = wanted.first().variant.knobs();
            find(&|one| one.scheduler() == wanted.scheduler() && one.first().variant.knobs() == knobs)
                .or_else(|| of_scheduler(wanted.scheduler()))
        };
        let reference = wanted.and_then(like).or_else(|| default.and_then(of_scheduler));
        let reference = reference.or(variants.first().copied())?;
        let smallest_effect = document.smallest_effect.unwrap_or(SMALLEST_EFFECT);
        Some(Self { document, comparison, focus, variants, reference, default, smallest_effect })
    }

    fn verdict(&self, setup: u32) -> Option<Verdict> {
        let [first, ..] = &self.focus.parts[..] else { return None };
        let others = self.variants.iter().copied().filter(|variant| *variant != self.reference);
        let mut candidates: Vec<(usize, Candidate)> =
            others.map(|variant| (variant, self.candidate(variant))).collect();
        candidates.sort_by(|(_, a), (_, b)| by_gain(a, b));
        let is_single = self.variants.iter().all(|index| self.comparison.variants[*index].runs.len() < 2);
        let (decision, recommended) = match () {
            () if candidates.is_empty() => (Decision::Alone, None),
            () if is_single => {
                let ahead = candidates.iter().find(|(_, candidate)| candidate.outcome == Outcome::Better);
                (Decision::OneRun, ahead.map(|(variant, _)| *variant))
            }
            () => match self.best(&candidates) {
                Some(best) => (Decision::Change, Some(best)),
                None => (Decision::Keep, None),
            },
        };
        let alike = if first.party.jobs.len() > 1 {
            first.party.jobs.iter().map(|job| job.name.clone()).collect()
        } else {
            Vec::new()
        };
        Some(Verdict {
            setup,
            focus: self.focus.parts.iter().map(focus::Part::name).collect(),
            alike,
            focus_from: self.focus.from,
            smallest_effect: self.smallest_effect,
            reference: self.label(self.reference),
            reference_is_default: self.is_default(&self.comparison.variants[self.reference]),
            decision,
            recommended: self.label(recommended.unwrap_or(self.reference)),
            had_a_choice: self.had_a_choice(),
            candidates: candidates.into_iter().map(|(_, candidate)| candidate).collect(),
        })
    }

    /// Whether it is what the kernel gives the devices by itself.
    fn is_default(&self, variant: &Variant<'_>) -> bool {
        self.default == Some(variant.scheduler()) && variant.is_untouched()
    }

    fn label(&self, variant: usize) -> String {
        self.comparison.variants[variant].label.clone()
    }

    /// How much better one variant is than another by the focus: the mean of the figures' logarithms by their weights.
    fn gain(&self, from: usize, to: usize) -> Option<Ratio> {
        let of_repeat = |repeat| {
            let (mut sum, mut weights) = (0.0, 0.0);
            for part in &self.focus.parts {
                let value =
                    |variant| part.party.value(Some(part.operation), Aspect::Figure(part.figure), variant, repeat);
                sum += part.weight * logarithm(value(from)?, value(to)?, part.figure.higher_is_better())?;
                weights += part.weight;
            }
            Some(sum / weights)
        };
        let repeats = self.comparison.variants[from].runs.iter().map(|run| run.repeat);
        Ratio::of(&repeats.filter_map(of_repeat).collect::<Vec<_>>())
    }

    fn candidate(&self, variant: usize) -> Candidate {
        let gain = self.gain(self.reference, variant);
        let is_single = gain.is_some_and(|gain| gain.is_significant().is_none());
        let smallest = self.smallest_effect.ln_1p();
        let is_gain = |gain: &Ratio| gain.mean >= smallest && (is_single || gain.is_better());
        let gained = gain.filter(is_gain).map(|gain| gain.mean.exp());
        let places = [self.reference, variant];
        let moved = shifts(self.comparison, self.focus, places, self.smallest_effect, gained);
        let outcome = match gain {
            None => Outcome::Incomparable,
            Some(gain) if is_gain(&gain) => {
                let outweighs = |loss: &Shift| loss.weighs && loss.factor.ln() > gain.mean;
                if moved.losses.iter().any(outweighs) { Outcome::Outweighed } else { Outcome::Better }
            }
            Some(gain) if -gain.mean >= smallest && (is_single || gain.is_worse()) => Outcome::Worse,
            Some(gain) if !is_single && -gain.mean < smallest && self.is_better_elsewhere(&moved) => {
                Outcome::BetterElsewhere
            }
            Some(gain) if gain.mean.abs() < smallest => Outcome::NoDifference,
            Some(_) => Outcome::WithinNoise,
        };
        let (losses, gains) = (moved.losses, moved.gains);
        Candidate { scheduler: self.label(variant), gain: gain.map(Ratio::as_change), outcome, losses, gains }
    }

    fn is_better_elsewhere(&self, moved: &shifts::Shifts) -> bool {
        let is_large = |gain: &Shift| gain.weighs && gain.factor >= GAIN_ELSEWHERE && gain.significant == Some(true);
        moved.losses.is_empty() && moved.gains.iter().any(is_large)
    }

    /// Whom to change to, if to anybody.
    fn best(&self, candidates: &[(usize, Candidate)]) -> Option<usize> {
        for wanted in [Outcome::Better, Outcome::BetterElsewhere] {
            let is_worth_it = |(variant, candidate): &&(usize, Candidate)| {
                let is_beaten = || self.variants.iter().any(|other| self.beats(*other, *variant));
                candidate.outcome == wanted && !is_beaten()
            };
            let worth_it: Vec<&(usize, Candidate)> = candidates.iter().filter(is_worth_it).collect();
            // They stand in the order of their gains.
            let Some((top, _)) = worth_it.first() else { continue };
            let as_good = worth_it.iter().filter(|(variant, _)| {
                variant == top || self.gain(*variant, *top).is_some_and(|ahead| !ahead.is_better())
            });
            let cheapest = as_good.min_by_key(|(_, candidate)| rounded(cost(candidate)))?;
            return Some(cheapest.0);
        }
        None
    }

    /// Whether one variant is better than another at everything, beyond the noise.
    fn beats(&self, one: usize, other: usize) -> bool {
        let mut figures = 0;
        for job in &self.comparison.jobs {
            for operation in &job.operations {
                for figure in Figure::ALL.into_iter().filter(|figure| figure.is_of(operation.operation)) {
                    let (Some(one), Some(other)) = (operation.row(one), operation.row(other)) else { return false };
                    let repeats = self.comparison.variants[other.variant].runs.iter().map(|run| run.repeat);
                    let logarithms = repeats.filter_map(|repeat| {
                        let (from, to) = (other.sample(repeat)?.figure(figure), one.sample(repeat)?.figure(figure));
                        logarithm(from, to, figure.higher_is_better())
                    });
                    if !Ratio::of(&logarithms.collect::<Vec<_>>()).is_some_and(Ratio::is_better) {
                        return false;
                    }
                    figures += 1;
                }
            }
        }
        figures > 0
    }

    /// Whether requests waited for a scheduler to choose among them.
    fn had_a_choice(&self) -> Option<bool> {
        let of_setup = self.variants.iter().flat_map(|variant| &self.comparison.variants[*variant].runs);
        let (mut choices, mut ios) = (0, 0);
        for run in of_setup.filter(|run| run.scheduler != "none") {
            for disk in &run.disks {
                choices += disk.choices?;
            }
            ios += run.simulated_ios;
        }
        (ios > 0 && !self.document.runs.iter().all(|run| run.disks.is_empty()))
            .then_some(choices * IOS_PER_CHOICE >= ios)
    }
}

/// The best first; among equals in the order of their names.
fn by_gain(a: &Candidate, b: &Candidate) -> Ordering {
    let of = |candidate: &Candidate| candidate.gain.map_or(i64::MIN, |gain| rounded(gain.factor.ln()));
    of(b).cmp(&of(a)).then_with(|| a.scheduler.cmp(&b.scheduler))
}

/// All that a candidate loses, in logarithms.
fn cost(candidate: &Candidate) -> f64 {
    candidate.losses.iter().filter(|loss| loss.weighs).map(|loss| loss.factor.ln()).sum()
}
