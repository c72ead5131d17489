//! What a comparison says to do: decided from its document alone.
//!
//! Jobs that are alike are a *party*. Some parties wait for their I/O, the others are bulk work. Every variant is compared with a
//! reference, the kernel's default if it is there, by one number, the *balance*: the mean over all parties, weighted by their votes, of the
//! logarithms of how much better off each is, repeat by repeat. A party that waits has a vote, half of it for its progress and half for its
//! wait; bulk work has half a vote for its progress. Figures that were named have all votes but one. A change is worth it if
//!
//! * the balance is better beyond the noise, and by more than the smallest effect that matters;
//! * the parties that wait do not lose together, unless a figure was named: no depth outvotes them;
//! * no other candidate is better at everything.
//!
//! Of several the one with the best balance is recommended; where a figure is named, of those that are better in it, if there are any.
//! Otherwise the reference stays.

mod certainty;
mod focus;
mod parts;
mod party;
mod place;
mod ratio;
mod score;
mod shifts;
mod spread;
mod turn;
mod waiting;

use std::cmp::Ordering;

use self::focus::Focus;
use self::party::Party;
use self::place::Place;
pub(crate) use self::ratio::logarithm;
use self::ratio::{Ratio, rounded};
use self::score::WeightedParty;
use self::shifts::shifts;
pub(crate) use self::shifts::{can_outweigh, is_reported_though_uncertain, shown};
pub use self::spread::WIDE_SPREAD;
use self::waiting::Role;
use crate::analysis::{Analysis, Estimate};
use crate::document::{Aspect, Candidate, Decision, FocusFrom, Outcome, ResultsDocument, Verdict};
use crate::figure::Figure;
use crate::figure_name::FigureName;

/// Differences smaller than this fraction are ignored.
pub const SMALLEST_EFFECT: f64 = 0.02;
/// Of this many I/Os at least one must have waited beside another, or joined one, for schedulers to do different things.
const IOS_PER_CHOICE: u64 = 1000;
/// Votes of a figure that was named, at least; the parties share another one.
const NAMED_VOTES_MIN: f64 = 3.0;
/// A loss by this factor of parties that wait counts although the repeats do not agree on it.
const UNCERTAIN_FACTOR: f64 = 1.25;

/// The verdict on each place that the runs took place in: none on a place whose device is not the observed one, and none at all if settings
/// changed meanwhile, so that a row is of several.
pub fn verdicts(analysis: &Analysis<'_>) -> Vec<Verdict> {
    let document = analysis.document;
    if !document.writes.is_empty() {
        return Vec::new();
    }
    let stakes = WeightedParty::all(analysis);
    let mut setups: Vec<u32> = analysis.variants.iter().map(|variant| variant.first().setup).collect();
    setups.dedup();
    setups.sort_unstable();
    setups.dedup();
    let places: Vec<Place<'_>> = setups.into_iter().filter_map(|setup| Place::of(analysis, setup)).collect();
    let Some(focus) = focus::chosen(analysis, &stakes, &places) else { return Vec::new() };
    let smallest_effect = document.smallest_effect.unwrap_or(SMALLEST_EFFECT);
    let judge = |place| Judge { analysis, focus: &focus, stakes: &stakes, place, smallest_effect };
    let judged = places.iter().filter(|place| document.device_mismatch(place.setup).is_none());
    let mut verdicts: Vec<Verdict> = judged.filter_map(|place| judge(place).verdict()).collect();
    if let Some(parts) = document.recording.as_ref().and_then(|recording| recording.parts.as_ref()) {
        parts.correct_first(&mut verdicts);
    }
    verdicts
}

/// What a document recommends in its first place, by its label: what to change to, or to keep. None if there is nothing to choose.
pub fn recommended(document: &ResultsDocument) -> Option<&str> {
    let verdict = document.verdicts.first()?;
    match verdict.decision {
        Decision::Change | Decision::OneRun => Some(&verdict.recommended),
        Decision::Keep => Some(&verdict.reference),
        Decision::Alone => None,
    }
}

impl Verdict {
    /// A figure that was judged, under the variant with this label: of jobs that are alike their median, as it was judged. None if the
    /// variant has nothing of it.
    pub fn estimate(&self, analysis: &Analysis<'_>, figure: &FigureName, label: &str) -> Option<Estimate> {
        let (job, operation) = analysis.find(figure).ok()?;
        let variant = analysis.variants.iter().position(|variant| variant.label == label)?;
        if self.alike.len() < 2 {
            return Some(operation.row(variant)?.estimate(figure.figure));
        }
        let party = Party::all(analysis).into_iter().find(|party| party.jobs.iter().any(|one| one.job == job.job))?;
        let repeats = analysis.variants[variant].runs.iter().map(|run| run.repeat);
        let value = |repeat| party.value(Some(figure.operation), Aspect::Figure(figure.figure), variant, repeat);
        let values: Vec<f64> = repeats.filter_map(value).collect();
        (!values.is_empty()).then(|| Estimate::of(figure.figure, &values))
    }
}

/// Judges the variants of a place.
struct Judge<'a> {
    analysis: &'a Analysis<'a>,
    focus: &'a Focus<'a>,
    stakes: &'a [WeightedParty<'a>],
    place: &'a Place<'a>,
    smallest_effect: f64,
}

impl Judge<'_> {
    fn verdict(&self) -> Option<Verdict> {
        let [first, ..] = &self.focus.parts[..] else { return None };
        let mut candidates: Vec<(usize, Candidate)> =
            self.place.others().map(|variant| (variant, self.candidate(variant))).collect();
        candidates.sort_by(|a, b| self.compare_by_balance(a, b));
        let is_single = self.place.variants.iter().all(|index| self.analysis.variants[*index].runs.len() < 2);
        let best = self.best(&candidates);
        let decision = match best {
            _ if candidates.is_empty() => Decision::Alone,
            _ if is_single => Decision::OneRun,
            Some(_) => Decision::Change,
            None => Decision::Keep,
        };
        let is_decided = matches!(decision, Decision::Change | Decision::Keep);
        let outcomes: Vec<(usize, Outcome)> =
            candidates.iter().map(|(variant, candidate)| (*variant, candidate.outcome)).collect();
        let certainty = if is_decided { self.certainty(best, &outcomes) } else { None };
        let mut named = vec![self.place.reference];
        named.extend(best);
        let spreads = self.spreads(&named);
        let alike = if first.party.jobs.len() > 1 {
            first.party.jobs.iter().map(|job| job.name.to_owned()).collect()
        } else {
            Vec::new()
        };
        Some(Verdict {
            setup: self.place.setup,
            focus: self.focus.parts.iter().map(focus::Part::name).collect(),
            alike,
            focus_from: self.focus.from,
            smallest_effect: self.smallest_effect,
            reference: self.label(self.place.reference),
            reference_is_default: self.place.is_default(&self.analysis.variants[self.place.reference]),
            decision,
            recommended: self.label(best.unwrap_or(self.place.reference)),
            had_a_choice: self.had_a_choice(),
            certainty,
            spreads,
            unavailable: self.unavailable(best, is_single),
            candidates: candidates.into_iter().map(|(_, candidate)| candidate).collect(),
        })
    }

    fn label(&self, variant: usize) -> String {
        self.analysis.variants[variant].label.clone()
    }

    /// How much better a variant is than the reference by the focus: the mean of the figures' logarithms by their weights.
    fn focus_gain(&self, to: usize, repeat: u32) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for part in &self.focus.parts {
            let value = |variant| part.party.value(Some(part.operation), Aspect::Figure(part.figure), variant, repeat);
            let higher_is_better = part.figure.higher_is_better();
            sum += part.weight * logarithm(value(self.place.reference)?, value(to)?, higher_is_better)?;
            weights += part.weight;
        }
        Some(sum / weights)
    }

    /// The number by which a variant is judged, in a repeat.
    fn balance(&self, to: usize, repeat: u32) -> Option<f64> {
        let of_parties = self.place.gain_of(self.stakes, to, repeat, |_| true)?;
        if self.focus.from == FocusFrom::Figures {
            return Some(of_parties);
        }
        let votes = (self.stakes.len() as f64).max(NAMED_VOTES_MIN);
        Some((votes * self.focus_gain(to, repeat)? + of_parties) / (votes + 1.0))
    }

    fn ratio(&self, of_repeat: impl Fn(u32) -> Option<f64>) -> Option<Ratio> {
        Ratio::of(&self.place.repeats().filter_map(of_repeat).collect::<Vec<_>>())
    }

    fn candidate(&self, variant: usize) -> Candidate {
        let gain = self.ratio(|repeat| self.focus_gain(variant, repeat));
        let balance = self.ratio(|repeat| self.balance(variant, repeat)).filter(|_| gain.is_some());
        let is_single = balance.is_some_and(|balance| balance.is_significant().is_none());
        let smallest = self.smallest_effect.ln_1p();
        let is_better = |of: &Ratio| of.mean >= smallest && (is_single || of.is_better());
        let gained = gain.filter(is_better);
        let may_be_outvoted = self.waiting(variant).is_some_and(|waiting| -waiting.mean >= smallest);
        let outcome = match balance {
            None => Outcome::Incomparable,
            Some(balance) if is_better(&balance) && !self.is_rejected_by_waiting_parties(variant) => {
                if gained.is_some() { Outcome::Better } else { Outcome::BetterElsewhere }
            }
            // What it gains is more than what it loses, as far as the runs can tell, which are too few or differ too much.
            Some(balance) if balance.mean >= smallest && !is_better(&balance) && !may_be_outvoted => {
                Outcome::WithinNoise
            }
            Some(balance) if balance.mean >= smallest || gained.is_some() => Outcome::Outweighed,
            Some(balance) if -balance.mean >= smallest && (is_single || balance.is_worse()) => Outcome::Worse,
            Some(balance) if balance.mean.abs() < smallest => Outcome::NoDifference,
            Some(_) => Outcome::WithinNoise,
        };
        let places = [self.place.reference, variant];
        let gained = gained.map(|gain| gain.mean.exp());
        let moved = shifts(self.analysis, (self.focus, self.stakes), places, self.smallest_effect, gained);
        // What is better on balance alone needs a reason, even if it is several gains of which each by itself may be chance.
        let is_unexplained = outcome == Outcome::BetterElsewhere && !moved.gains.iter().any(|gain| gain.weighs);
        let mut gains = moved.gains;
        if is_unexplained {
            gains.extend(moved.uncertain_gains);
        }
        Candidate {
            scheduler: self.label(variant),
            gain: gain.map(Ratio::as_change),
            balance: balance.map(Ratio::as_change),
            outcome,
            losses: moved.losses,
            gains,
        }
    }

    /// How much better off the parties that wait are together; None where a figure was asked for, which counts more.
    fn waiting(&self, variant: usize) -> Option<Ratio> {
        if self.focus.from == FocusFrom::Asked {
            return None;
        }
        self.ratio(|repeat| self.place.gain_of(self.stakes, variant, repeat, |role| role != Role::Bulk))
    }

    /// Whether they lose, beyond the noise or by much.
    fn is_rejected_by_waiting_parties(&self, variant: usize) -> bool {
        self.waiting(variant).is_some_and(|waiting| {
            let is_certain = waiting.is_significant() != Some(false) || -waiting.mean >= UNCERTAIN_FACTOR.ln();
            -waiting.mean >= self.smallest_effect.ln_1p() && is_certain
        })
    }

    /// What to change to, if to anything. The candidates stand in the order of their balances.
    fn best(&self, candidates: &[(usize, Candidate)]) -> Option<usize> {
        let is_worth_it = |(variant, candidate): &&(usize, Candidate)| {
            let is_better = matches!(candidate.outcome, Outcome::Better | Outcome::BetterElsewhere);
            is_better && !self.place.variants.iter().any(|other| self.beats(*other, *variant))
        };
        let mut worth_it: Vec<_> = candidates.iter().filter(is_worth_it).collect();
        worth_it.sort_by_key(|(_, candidate)| !self.precedes_better_elsewhere(candidate.outcome));
        worth_it.first().map(|(variant, _)| *variant)
    }

    /// Whether a candidate with this outcome precedes those that are better elsewhere alone: if it is better in a named figure.
    fn precedes_better_elsewhere(&self, outcome: Outcome) -> bool {
        self.focus.from != FocusFrom::Figures && outcome == Outcome::Better
    }

    /// The best of those that no kernel has, if it would be better than the reference and than what is recommended.
    fn unavailable(&self, recommended: Option<usize>, is_single: bool) -> Option<Candidate> {
        let is_better_on_balance = |variant: usize, of: usize| {
            let ahead = |repeat| Some(self.balance(variant, repeat)? - self.balance(of, repeat)?);
            self.ratio(ahead).is_some_and(|ratio| if is_single { ratio.mean > 0.0 } else { ratio.is_better() })
        };
        let candidates = self.place.unavailable.iter().map(|&variant| (variant, self.candidate(variant)));
        let is_better = |(variant, candidate): &(usize, Candidate)| {
            matches!(candidate.outcome, Outcome::Better | Outcome::BetterElsewhere)
                && recommended.is_none_or(|recommended| is_better_on_balance(*variant, recommended))
        };
        candidates.filter(is_better).min_by(|a, b| self.compare_by_balance(a, b)).map(|(_, candidate)| candidate)
    }

    /// The best balance first; among equals the kernel's default, then the one with the fewest settings, then by name.
    fn compare_by_balance(&self, (a, of_a): &(usize, Candidate), (b, of_b): &(usize, Candidate)) -> Ordering {
        let balance = |candidate: &Candidate| candidate.balance.map_or(i64::MIN, |gain| rounded(gain.factor.ln()));
        let variant = |index: usize| &self.analysis.variants[index];
        let rank =
            |index: usize| (!self.place.is_default(variant(index)), variant(index).first().variant.knobs().len());
        let by_rank = || rank(*a).cmp(&rank(*b)).then_with(|| of_a.scheduler.cmp(&of_b.scheduler));
        balance(of_b).cmp(&balance(of_a)).then_with(by_rank)
    }

    /// Whether one variant is better than another at everything, on balance too, beyond the noise.
    fn beats(&self, one: usize, other: usize) -> bool {
        let ahead = |repeat| Some(self.balance(one, repeat)? - self.balance(other, repeat)?);
        if !self.ratio(ahead).is_some_and(Ratio::is_better) {
            return false;
        }
        let mut figures = 0;
        for job in &self.analysis.jobs {
            for operation in &job.operations {
                for figure in Figure::ALL.into_iter().filter(|figure| figure.is_of(operation.operation)) {
                    let (Some(one), Some(other)) = (operation.row(one), operation.row(other)) else { return false };
                    let repeats = self.analysis.variants[other.variant].runs.iter().map(|run| run.repeat);
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

    /// Whether requests waited for a scheduler to choose among them, or joined others.
    fn had_a_choice(&self) -> Option<bool> {
        let of_setup = self.place.variants.iter().flat_map(|variant| &self.analysis.variants[*variant].runs);
        let (mut choices, mut ios) = (0, 0);
        for run in of_setup.filter(|run| run.scheduler != "none") {
            for disk in &run.disks {
                choices += disk.choices? + disk.read_merges + disk.write_merges;
            }
            ios += run.simulated_ios;
        }
        (ios > 0 && !self.analysis.document.runs.iter().all(|run| run.disks.is_empty()))
            .then_some(choices * IOS_PER_CHOICE >= ios)
    }
}
