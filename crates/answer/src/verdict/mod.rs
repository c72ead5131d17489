//! Verdicts: which variant a comparison recommends, decided from its document alone.
//!
//! Equivalent jobs form a *party*. Some parties wait for their I/O, the others are bulk work. Every variant is compared with a
//! reference (the kernel's default if it ran) by one number, the *balance*: the mean over all parties, weighted by their votes, of the
//! logarithm of each party's improvement, repeat by repeat. A party that waits has one vote, half of it for its progress and half for its
//! wait; bulk work has half a vote for its progress; weights of cgroups multiply votes. Figures named by the user or the load have all
//! votes but one. A change is worth it if
//!
//! * the balance is better beyond the noise, and by more than the smallest effect that matters;
//! * the parties that wait do not lose as a group, unless the user named a figure: no amount of bulk work outvotes them;
//! * no other candidate is better at everything.
//!
//! Of several such variants the one with the best balance is recommended; if a figure was named, variants that are better in it come first.
//! Without such a variant the reference stays.

mod certainty;
mod focus;
mod parts;
mod party;
mod ratio;
mod roles;
mod score;
mod setup_variants;
mod shifts;
mod spread;
mod turn;

use std::cmp::Ordering;

use self::focus::Focus;
use self::party::Party;
pub(crate) use self::ratio::logarithm;
use self::ratio::{LogRatio, rounded};
use self::roles::Role;
use self::score::JudgedParty;
use self::setup_variants::SetupVariants;
use self::shifts::{UNCERTAIN_FACTOR, shifts};
pub(crate) use self::shifts::{can_outweigh, is_reported_though_uncertain, shown};
use crate::analysis::{Analysis, Estimate};
pub use crate::document::SMALLEST_EFFECT;
use crate::document::{Aspect, Candidate, Decision, FocusFrom, Outcome, ResultsDocument, Statistics, Verdict};
use crate::figure::Figure;
use crate::figure_name::FigureName;

/// For schedulers to make a difference, at least one I/O in this many must have waited with others in the scheduler, or been merged.
const IOS_PER_CHOICE: u64 = 1000;
/// Minimum votes of named figures; all parties together have one.
const NAMED_VOTES_MIN: f64 = 3.0;

/// The statistics of a document, and its verdicts. All facts must be in the document, because nothing changes a verdict afterwards.
pub fn judge(document: &ResultsDocument) -> (Statistics, Vec<Verdict>) {
    let analysis = Analysis::of(document);
    (Statistics::of(&analysis), verdicts(&analysis))
}

/// The verdict on each setup: none on a setup whose device is not the observed one, and none at all if settings changed during runs, as a
/// row then mixes several settings, or if the recording that was the load lacks too much.
pub fn verdicts(analysis: &Analysis<'_>) -> Vec<Verdict> {
    let document = analysis.document;
    let recording = document.recording.as_deref();
    if !document.writes.is_empty() || recording.is_some_and(|recording| recording.is_too_lossy) {
        return Vec::new();
    }
    let judged_parties = JudgedParty::all(analysis);
    let mut setup_indexes: Vec<u32> = analysis.variants.iter().map(|variant| variant.first().setup).collect();
    setup_indexes.sort_unstable();
    setup_indexes.dedup();
    let setups: Vec<SetupVariants<'_>> =
        setup_indexes.into_iter().filter_map(|setup| SetupVariants::of(analysis, setup)).collect();
    let Some(focus) = focus::chosen(analysis, &judged_parties, &setups) else { return Vec::new() };
    let smallest_effect = document.smallest_effect();
    let judge = |setup| Judge { analysis, focus: &focus, judged_parties: &judged_parties, setup, smallest_effect };
    let judged_setups = setups.iter().filter(|variants| document.device_mismatch(variants.setup).is_none());
    let mut verdicts: Vec<Verdict> = judged_setups.filter_map(|variants| judge(variants).judge()).collect();
    if recording.is_some() && !verdicts.is_empty() {
        let first = verdicts.remove(0);
        verdicts.insert(0, first.checked_on_parts(analysis));
    }
    verdicts
}

impl ResultsDocument {
    /// The document with its [judgement](judge).
    #[must_use]
    pub fn judged(mut self) -> Self {
        let (statistics, verdicts) = judge(&self);
        (self.statistics, self.verdicts) = (Some(statistics), verdicts);
        self
    }
}

/// The label of the variant that the first of these verdicts recommends, to change to or to keep. `None` if there is only one.
pub fn recommended(verdicts: &[Verdict]) -> Option<&str> {
    let verdict = verdicts.first()?;
    match verdict.decision {
        Decision::Change | Decision::OneRun => Some(&verdict.recommended),
        Decision::Keep => Some(&verdict.reference),
        Decision::Alone => None,
    }
}

impl Verdict {
    /// A judged figure under the variant with this label: for equivalent jobs their median, as in the judgement. `None` if the variant
    /// has no such I/O.
    pub fn estimate(&self, analysis: &Analysis<'_>, figure: &FigureName, label: &str) -> Option<Estimate> {
        let (job, operation) = analysis.find(figure).ok()?;
        let variant = analysis.variants.iter().position(|variant| variant.label == label)?;
        if self.equivalent_jobs.len() < 2 {
            return Some(operation.row(variant)?.estimate(figure.figure));
        }
        let party =
            Party::all(analysis).into_iter().find(|party| party.jobs.iter().any(|known| known.job == job.job))?;
        let repeats = analysis.variants[variant].runs.iter().map(|run| run.repeat);
        let value = |repeat| party.value(Some(figure.operation), Aspect::Figure(figure.figure), variant, repeat);
        let values: Vec<f64> = repeats.filter_map(value).collect();
        (!values.is_empty()).then(|| Estimate::of(figure.figure, &values))
    }
}

/// Judges the variants of one setup.
struct Judge<'a> {
    analysis: &'a Analysis<'a>,
    focus: &'a Focus<'a>,
    judged_parties: &'a [JudgedParty<'a>],
    setup: &'a SetupVariants<'a>,
    smallest_effect: f64,
}

impl Judge<'_> {
    fn judge(&self) -> Option<Verdict> {
        let [first, ..] = &self.focus.parts[..] else { return None };
        let mut candidates: Vec<(usize, Candidate)> =
            self.setup.others().map(|variant| (variant, self.judge_variant(variant))).collect();
        candidates.sort_by(|a, b| self.compare_by_balance(a, b));
        let all_have_one_run = self.setup.variants.iter().all(|index| self.analysis.variants[*index].runs.len() < 2);
        let best = self.best(&candidates);
        let decision = match best {
            _ if candidates.is_empty() => Decision::Alone,
            _ if all_have_one_run => Decision::OneRun,
            Some(_) => Decision::Change,
            None => Decision::Keep,
        };
        let is_decided = matches!(decision, Decision::Change | Decision::Keep);
        let outcomes: Vec<(usize, Outcome)> =
            candidates.iter().map(|(variant, candidate)| (*variant, candidate.outcome)).collect();
        let certainty = if is_decided { self.certainty(best, &outcomes) } else { None };
        let mut shown_variants = vec![self.setup.reference];
        shown_variants.extend(best);
        let spreads = self.spreads(&shown_variants);
        let equivalent_jobs = if first.party.jobs.len() > 1 {
            first.party.jobs.iter().map(|job| job.name.to_owned()).collect()
        } else {
            Vec::new()
        };
        Some(Verdict {
            setup: self.setup.setup,
            focus: self.focus.parts.iter().map(focus::Part::name).collect(),
            equivalent_jobs,
            focus_from: self.focus.from,
            smallest_effect: self.smallest_effect,
            reference: self.label(self.setup.reference),
            reference_is_default: self.setup.is_default(&self.analysis.variants[self.setup.reference]),
            decision,
            recommended: self.label(best.unwrap_or(self.setup.reference)),
            had_a_choice: self.had_a_choice(),
            certainty,
            spreads,
            unavailable: self.unavailable(best, all_have_one_run),
            parts: None,
            candidates: candidates.into_iter().map(|(_, candidate)| candidate).collect(),
        })
    }

    fn label(&self, variant: usize) -> String {
        self.analysis.variants[variant].label.clone()
    }

    /// The improvement of a variant over the reference in the focus: the weighted mean of the figures' logarithms.
    fn focus_gain(&self, to: usize, repeat: u32) -> Option<f64> {
        let (mut sum, mut weights) = (0.0, 0.0);
        for part in &self.focus.parts {
            let value = |variant| part.party.value(Some(part.operation), Aspect::Figure(part.figure), variant, repeat);
            let higher_is_better = part.figure.higher_is_better();
            sum += part.weight * logarithm(value(self.setup.reference)?, value(to)?, higher_is_better)?;
            weights += part.weight;
        }
        Some(sum / weights)
    }

    /// The balance of a variant in one repeat: the number that it is judged by.
    fn balance(&self, to: usize, repeat: u32) -> Option<f64> {
        let party_gain = self.setup.gain_of(self.judged_parties, to, repeat, |_| true)?;
        if self.focus.from == FocusFrom::Figures {
            return Some(party_gain);
        }
        let votes = (self.judged_parties.len() as f64).max(NAMED_VOTES_MIN);
        Some((votes * self.focus_gain(to, repeat)? + party_gain) / (votes + 1.0))
    }

    fn ratio(&self, logarithm_of: impl Fn(u32) -> Option<f64>) -> Option<LogRatio> {
        LogRatio::of(&self.setup.repeats().filter_map(logarithm_of).collect::<Vec<_>>())
    }

    fn judge_variant(&self, variant: usize) -> Candidate {
        let gain = self.ratio(|repeat| self.focus_gain(variant, repeat));
        let balance = self.ratio(|repeat| self.balance(variant, repeat)).filter(|_| gain.is_some());
        let has_one_run = balance.is_some_and(|balance| balance.is_significant().is_none());
        let smallest = self.smallest_effect.ln_1p();
        let is_better_enough = |ratio: &LogRatio| ratio.mean >= smallest && (has_one_run || ratio.is_better());
        let gained = gain.filter(is_better_enough);
        let may_be_outvoted = self.waiting(variant).is_some_and(|waiting| -waiting.mean >= smallest);
        // In this order: what can be recommended, what more runs might show to be better, what is ahead in one way only, and the rest.
        let outcome = match balance {
            None => Outcome::Incomparable,
            Some(balance) if is_better_enough(&balance) && !self.is_rejected_by_waiting_parties(variant) => {
                if gained.is_some() { Outcome::Better } else { Outcome::BetterElsewhere }
            }
            // It is better on balance, but the runs are too few or differ too much to be sure.
            Some(balance) if balance.mean >= smallest && !is_better_enough(&balance) && !may_be_outvoted => {
                Outcome::WithinNoise
            }
            Some(balance) if balance.mean >= smallest || gained.is_some() => Outcome::Outweighed,
            Some(balance) if -balance.mean >= smallest && (has_one_run || balance.is_worse()) => Outcome::Worse,
            Some(balance) if balance.mean.abs() < smallest => Outcome::NoDifference,
            Some(_) => Outcome::WithinNoise,
        };
        let compared = [self.setup.reference, variant];
        let gained = gained.map(|gain| gain.mean.exp());
        let shifted = shifts(self.analysis, (self.focus, self.judged_parties), compared, self.smallest_effect, gained);
        // A variant that is better only on balance needs a reason to show, even gains that may each be chance.
        let is_unexplained = outcome == Outcome::BetterElsewhere && !shifted.gains.iter().any(|gain| gain.weighs);
        let mut gains = shifted.gains;
        if is_unexplained {
            gains.extend(shifted.uncertain_gains);
        }
        Candidate {
            scheduler: self.label(variant),
            gain: gain.map(LogRatio::as_change),
            balance: balance.map(LogRatio::as_change),
            outcome,
            losses: shifted.losses,
            gains,
        }
    }

    /// The combined improvement of the parties that wait; `None` if the user named a figure, which takes precedence.
    fn waiting(&self, variant: usize) -> Option<LogRatio> {
        if self.focus.from == FocusFrom::Asked {
            return None;
        }
        self.ratio(|repeat| self.setup.gain_of(self.judged_parties, variant, repeat, |role| role != Role::Bulk))
    }

    /// Whether the parties that wait lose beyond the noise or by [`UNCERTAIN_FACTOR`].
    fn is_rejected_by_waiting_parties(&self, variant: usize) -> bool {
        self.waiting(variant).is_some_and(|waiting| {
            let is_certain = waiting.is_significant() != Some(false) || -waiting.mean >= UNCERTAIN_FACTOR.ln();
            -waiting.mean >= self.smallest_effect.ln_1p() && is_certain
        })
    }

    /// The variant to change to, if any. The candidates are in the order of their balances.
    fn best(&self, candidates: &[(usize, Candidate)]) -> Option<usize> {
        let is_worth_it = |(variant, candidate): &&(usize, Candidate)| {
            let is_better = matches!(candidate.outcome, Outcome::Better | Outcome::BetterElsewhere);
            is_better && !self.setup.variants.iter().any(|other| self.beats(*other, *variant))
        };
        let mut worth_it: Vec<_> = candidates.iter().filter(is_worth_it).collect();
        worth_it.sort_by_key(|(_, candidate)| !self.precedes_better_elsewhere(candidate.outcome));
        worth_it.first().map(|(variant, _)| *variant)
    }

    /// Whether a candidate with this outcome ranks before those that are only better elsewhere: if it is better in a named figure.
    fn precedes_better_elsewhere(&self, outcome: Outcome) -> bool {
        self.focus.from != FocusFrom::Figures && outcome == Outcome::Better
    }

    /// The best scheduler that no kernel has, if it would be better than the reference and the recommended variant.
    fn unavailable(&self, recommended: Option<usize>, all_have_one_run: bool) -> Option<Candidate> {
        let is_better_on_balance = |variant: usize, other: usize| {
            let lead = |repeat| Some(self.balance(variant, repeat)? - self.balance(other, repeat)?);
            self.ratio(lead).is_some_and(|ratio| if all_have_one_run { ratio.mean > 0.0 } else { ratio.is_better() })
        };
        let candidates = self.setup.unavailable.iter().map(|&variant| (variant, self.judge_variant(variant)));
        let is_better = |(variant, candidate): &(usize, Candidate)| {
            matches!(candidate.outcome, Outcome::Better | Outcome::BetterElsewhere)
                && recommended.is_none_or(|recommended| is_better_on_balance(*variant, recommended))
        };
        candidates.filter(is_better).min_by(|a, b| self.compare_by_balance(a, b)).map(|(_, candidate)| candidate)
    }

    /// Orders candidates by balance, best first; equal ones with the kernel's default first, then by the number of settings, then by name.
    fn compare_by_balance(
        &self,
        (a, candidate_a): &(usize, Candidate),
        (b, candidate_b): &(usize, Candidate),
    ) -> Ordering {
        let balance = |candidate: &Candidate| candidate.balance.map_or(i64::MIN, |gain| rounded(gain.factor.ln()));
        let variant = |index: usize| &self.analysis.variants[index];
        let rank =
            |index: usize| (!self.setup.is_default(variant(index)), variant(index).first().variant.knobs().len());
        let by_rank = || rank(*a).cmp(&rank(*b)).then_with(|| candidate_a.scheduler.cmp(&candidate_b.scheduler));
        balance(candidate_b).cmp(&balance(candidate_a)).then_with(by_rank)
    }

    /// Whether one variant is better than another beyond the noise in every figure and on balance.
    fn beats(&self, one: usize, other: usize) -> bool {
        let lead = |repeat| Some(self.balance(one, repeat)? - self.balance(other, repeat)?);
        if !self.ratio(lead).is_some_and(LogRatio::is_better) {
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
                    if !LogRatio::of(&logarithms.collect::<Vec<_>>()).is_some_and(LogRatio::is_better) {
                        return false;
                    }
                    figures += 1;
                }
            }
        }
        figures > 0
    }

    /// Whether the schedulers had requests to choose among or to merge; `None` if the document lacks the counts.
    fn had_a_choice(&self) -> Option<bool> {
        let runs = self.setup.variants.iter().flat_map(|variant| &self.analysis.variants[*variant].runs);
        let (mut choices, mut ios) = (0, 0);
        for run in runs.filter(|run| run.scheduler != "none") {
            for disk in &run.disks {
                choices += disk.choices? + disk.read_merges + disk.write_merges;
            }
            ios += run.simulated_ios;
        }
        (ios > 0 && !self.analysis.document.runs.iter().all(|run| run.disks.is_empty()))
            .then_some(choices * IOS_PER_CHOICE >= ios)
    }
}
