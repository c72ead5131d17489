//! Verdicts: which variant a comparison recommends, decided from its document alone.
//!
//! Used by: `tuning`; crates `render`, `experiment`.
//! Tests: `crates/answer/src/verdict/` (in its files), `crates/answer/tests/verdict.rs`, `crates/answer/tests/judgement.rs`.
//!
//! Equivalent jobs form a *party*. Some parties wait for their I/O, the others are bulk work. Every variant is compared with a
//! reference (the kernel's default if it ran) by one number, the *balance*: the mean over all parties, weighted by their votes, of the
//! logarithm of each party's improvement, repeat by repeat. A party that waits has one vote, half of it for its progress and half for its
//! wait, in which long latencies count more than in proportion to their number. Bulk work has half a vote for its progress; weights of cgroups
//! multiply votes. What asked for the rest that others leave (the idle class, discards) has no vote beside others. Figures named by the
//! user have several votes (`NAMED_VOTES`); a figure that the load's author named only comes first in the text. A change is worth it if
//!
//! * the balance is better beyond the noise, and by more than the smallest effect that matters, in nearly all resamplings of the runs;
//! * some figure is better beyond the noise;
//! * the parties that wait do not lose as a group, unless the user named a figure: no amount of bulk work outvotes them;
//! * no other candidate is better at everything.
//!
//! Of several such variants the one with the best balance is recommended; of those that differ by less than the smallest effect the one
//! that costs others least. Those come first that are better in a figure that the user named, or else those that make no party, for
//! which somebody may wait, twice as badly off. Without such a variant the reference stays.

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
use self::roles::{Role, may_be_waited_for, votes};
use self::score::JudgedParty;
use self::setup_variants::SetupVariants;
use self::shifts::{UNCERTAIN_FACTOR, shifts};
pub(crate) use self::shifts::{can_outweigh, is_reported_though_uncertain, shown};
use crate::analysis::{Analysis, Estimate};
pub use crate::document::SMALLEST_EFFECT;
use crate::document::{
    Aspect, Candidate, Change, Decision, DiskGroup, FocusFrom, Outcome, RecordingSummary, ResultsDocument, Statistics,
    Verdict,
};
use crate::figure::Figure;
use crate::figure_name::FigureName;

/// For schedulers to make a difference, at least one I/O in this many must have waited with others in the scheduler, or been merged.
const IOS_PER_CHOICE: u64 = 1000;
/// Votes of the figures that a user named; a party that waits has one.
const NAMED_VOTES: f64 = 3.0;
/// What one party gains does not make another one, that somebody may wait for, worse off by this factor, if a variant without that is worth a change.
const HARM_FACTOR: f64 = 2.0;
/// A change is recommended only if at least this share of the resamplings finds it better than the reference.
const SURE_OF_CHANGE: f64 = 0.9;

/// The statistics of a document, and its verdicts. All facts must be in the document, because nothing changes a verdict afterwards.
pub fn judge(document: &ResultsDocument) -> (Statistics, Vec<Verdict>) {
    let analysis = Analysis::of(document);
    (Statistics::of(&analysis), verdicts(&analysis))
}

/// The verdict on each setup: none on a setup whose device is not the observed one, and none at all if settings changed during runs, as a
/// row then mixes several settings, or if the recording that was the load lacks too much or its replay is not what was recorded.
pub fn verdicts(analysis: &Analysis<'_>) -> Vec<Verdict> {
    let document = analysis.document;
    let recording = document.recording.as_deref();
    let says_nothing = |recording: &RecordingSummary| recording.is_too_lossy || recording.mismatches().next().is_some();
    if !document.writes.is_empty() || recording.is_some_and(says_nothing) {
        return Vec::new();
    }
    let mut verdicts = match &document.disk_groups[..] {
        [] | [_] => verdicts_on(analysis, None),
        groups => groups.iter().flat_map(|group| verdicts_on(&analysis.of_jobs(&group.jobs), Some(group))).collect(),
    };
    if recording.is_some() && !verdicts.is_empty() {
        let first = verdicts.remove(0);
        verdicts.insert(0, first.checked_on_parts(analysis));
    }
    verdicts
}

/// The verdicts on a group of disks, or on all. The analysis has only the jobs of the group.
fn verdicts_on(analysis: &Analysis<'_>, group: Option<&DiskGroup>) -> Vec<Verdict> {
    let document = analysis.document;
    let judged_parties = JudgedParty::all(analysis);
    let mut setup_indexes: Vec<u32> = analysis.variants.iter().map(|variant| variant.first().setup).collect();
    setup_indexes.sort_unstable();
    setup_indexes.dedup();
    let variants_of = |setup| SetupVariants::of(analysis, setup, group);
    let setups: Vec<SetupVariants<'_>> = setup_indexes.into_iter().filter_map(variants_of).collect();
    let Some(focus) = focus::chosen(analysis, &judged_parties, &setups) else { return Vec::new() };
    let smallest_effect = document.smallest_effect();
    let judge = |setup| Judge { analysis, focus: &focus, judged_parties: &judged_parties, setup, smallest_effect };
    let judged_setups = setups.iter().filter(|variants| document.device_mismatch(variants.setup).is_none());
    judged_setups.filter_map(|variants| judge(variants).judge()).collect()
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
        // On other disks there may be further jobs like it.
        let party = party.of_jobs(|name| self.equivalent_jobs.iter().any(|known| known == name));
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
        let resampled = if all_have_one_run { None } else { self.resampled(&candidates) };
        if let Some(resampled) = &resampled {
            for (number, (_, candidate)) in candidates.iter_mut().enumerate() {
                let is_better = matches!(candidate.outcome, Outcome::Better | Outcome::BetterElsewhere);
                if is_better && resampled.share_better(number) < SURE_OF_CHANGE {
                    candidate.outcome = Outcome::WithinNoise;
                }
            }
        }
        let best = self.best(&candidates);
        if let Some(best) = best {
            self.explain_the_decision(best, &mut candidates);
        }
        let decision = match best {
            _ if candidates.is_empty() => Decision::Alone,
            _ if all_have_one_run => Decision::OneRun,
            Some(_) => Decision::Change,
            None => Decision::Keep,
        };
        let is_decided = matches!(decision, Decision::Change | Decision::Keep);
        let chosen = best.and_then(|best| candidates.iter().position(|(variant, _)| *variant == best));
        // If no figure shows the balance beyond the noise, the agreement of resamplings about it says nothing.
        let certainty = resampled
            .filter(|_| is_decided && !candidates.iter().any(|(_, candidate)| self.is_unexplained(candidate)))
            .map(|resampled| resampled.share_reaching(chosen));
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
            files: self.setup.group.map_or_else(Vec::new, |group| group.files.clone()),
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

    /// The balance of a variant in one repeat: the number that it is judged by. `None` if the load only discards: device models know too
    /// little about that for a recommendation.
    fn balance(&self, to: usize, repeat: u32) -> Option<f64> {
        if self.judged_parties.iter().all(|judged| judged.party.only_discards()) {
            return None;
        }
        let party_gain = self.setup.gain_of(self.judged_parties, to, repeat, |_| true)?;
        if self.focus.from != FocusFrom::Asked {
            return Some(party_gain);
        }
        let votes: f64 = self.judged_parties.iter().map(|judged| votes(&judged.party, judged.role)).sum();
        Some((NAMED_VOTES * self.focus_gain(to, repeat)? + votes * party_gain) / (NAMED_VOTES + votes))
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
        let has_gained = gained.is_some() && !self.is_contradicted(variant);
        let may_be_outvoted = self.waiting(variant).is_some_and(|waiting| -waiting.mean >= smallest);
        let compared = [self.setup.reference, variant];
        let gain_factor = gained.map(|gain| gain.mean.exp());
        let shifted =
            shifts(self.analysis, (self.focus, self.judged_parties), compared, self.smallest_effect, gain_factor);
        let is_explained = has_gained || shifted.gains.iter().any(|gain| gain.weighs);
        // In this order: what can be recommended, what more runs might show to be better, what is ahead in one way only, and the rest.
        let outcome = match balance {
            None => Outcome::Incomparable,
            Some(balance)
                if is_explained && is_better_enough(&balance) && !self.is_rejected_by_waiting_parties(variant) =>
            {
                if has_gained {
                    Outcome::Better
                } else {
                    Outcome::BetterElsewhere
                }
            }
            // It is better on balance, but the runs are too few or differ too much to be sure.
            Some(balance)
                if balance.mean >= smallest && (!is_explained || !is_better_enough(&balance)) && !may_be_outvoted =>
            {
                Outcome::WithinNoise
            }
            Some(balance) if balance.mean >= smallest || gained.is_some() => Outcome::Outweighed,
            Some(balance) if -balance.mean >= smallest && (has_one_run || balance.is_worse()) => Outcome::Worse,
            Some(balance) if balance.mean.abs() < smallest => Outcome::NoDifference,
            Some(_) => Outcome::WithinNoise,
        };
        Candidate {
            scheduler: self.label(variant),
            gain: gain.map(LogRatio::as_change),
            balance: balance.map(LogRatio::as_change),
            outcome,
            losses: shifted.losses,
            gains: shifted.gains,
            behind_recommended: Vec::new(),
        }
    }

    /// Whether a candidate is better on balance beyond the noise, although no figure is.
    fn is_unexplained(&self, candidate: &Candidate) -> bool {
        let is_better = |balance: Change| balance.is_better() && balance.factor >= 1.0 + self.smallest_effect;
        candidate.outcome == Outcome::WithinNoise
            && candidate.balance.is_some_and(is_better)
            && !candidate.gains.iter().any(|gain| gain.weighs)
    }

    /// Whether the wait in focus, weighted by time, gets longer by the smallest effect although the figure in focus may get better. A figure
    /// that the user named counts as it is.
    fn is_contradicted(&self, variant: usize) -> bool {
        let [part] = &self.focus.parts[..] else { return false };
        if self.focus.from == FocusFrom::Asked || !part.figure.is_latency() {
            return false;
        }
        let wait = |variant, repeat| part.party.value(Some(part.operation), Aspect::Wait, variant, repeat);
        let gain = |repeat| logarithm(wait(self.setup.reference, repeat)?, wait(variant, repeat)?, false);
        self.ratio(gain).is_some_and(|wait| -wait.mean >= self.smallest_effect.ln_1p())
    }

    /// Adds to the candidates that gain more in the focus than the recommended variant what they lose compared with it.
    fn explain_the_decision(&self, best: usize, candidates: &mut [(usize, Candidate)]) {
        let gain = |candidate: &Candidate| candidate.gain.map_or(1.0, |gain| gain.factor);
        let most = candidates.iter().find(|(variant, _)| *variant == best).map_or(f64::INFINITY, |(_, it)| gain(it));
        for (variant, candidate) in candidates.iter_mut().filter(|(variant, _)| *variant != best) {
            if gain(candidate) >= most * (1.0 + self.smallest_effect) {
                let compared = [best, *variant];
                let shifted =
                    shifts(self.analysis, (self.focus, self.judged_parties), compared, self.smallest_effect, None);
                candidate.behind_recommended = shifted.losses;
            }
        }
    }

    /// The combined improvement of the parties that wait; `None` if the user named a figure, which takes precedence.
    fn waiting(&self, variant: usize) -> Option<LogRatio> {
        if self.focus.from == FocusFrom::Asked {
            return None;
        }
        self.ratio(|repeat| self.setup.gain_of(self.judged_parties, variant, repeat, Role::is_waited_for))
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
        worth_it.sort_by_key(|(variant, candidate)| !self.comes_first(*variant, candidate));
        let first = worth_it.first().map(|(variant, candidate)| self.comes_first(*variant, candidate))?;
        worth_it.retain(|(variant, candidate)| self.comes_first(*variant, candidate) == first);
        let balance = |candidate: &Candidate| candidate.balance.map_or(f64::NEG_INFINITY, |gain| gain.factor.ln());
        let top = worth_it.first().map(|(_, candidate)| balance(candidate))?;
        let is_near = |(_, candidate): &&&(usize, Candidate)| balance(candidate) >= top - self.smallest_effect.ln_1p();
        // Of equals the first, which is the best.
        let near = worth_it.iter().take_while(is_near);
        near.min_by_key(|(variant, _)| rounded(self.cost(*variant))).map(|(variant, _)| *variant)
    }

    /// Whether a candidate ranks before the others that are worth a change: if it is better in a figure that the user named, or else if it
    /// harms nobody.
    fn comes_first(&self, variant: usize, candidate: &Candidate) -> bool {
        match self.focus.from {
            FocusFrom::Asked => candidate.outcome == Outcome::Better,
            FocusFrom::Load | FocusFrom::Figures => !self.harms(variant),
        }
    }

    /// Whether a variant makes any party that waits, or may be waited for, worse off by [`HARM_FACTOR`].
    fn harms(&self, variant: usize) -> bool {
        let is_exposed = |judged: &&JudgedParty<'_>| judged.role.is_waited_for() || may_be_waited_for(&judged.party);
        let mut losses = self.judged_parties.iter().filter(is_exposed).map(|judged| {
            let gain = |repeat| Some(judged.score(variant, repeat)? - judged.score(self.setup.reference, repeat)?);
            self.ratio(gain).map_or(0.0, |gain| -gain.mean)
        });
        losses.any(|loss| loss >= HARM_FACTOR.ln())
    }

    /// What a variant costs those that lose by it: the sum of the logarithms, weighted by their votes.
    fn cost(&self, variant: usize) -> f64 {
        let loss = |judged: &JudgedParty<'_>| {
            let gain = |repeat| Some(judged.score(variant, repeat)? - judged.score(self.setup.reference, repeat)?);
            let gain = self.ratio(gain).map_or(0.0, |gain| gain.mean);
            // Less than the smallest effect is no loss.
            if -gain >= self.smallest_effect.ln_1p() { -gain * votes(&judged.party, judged.role) } else { 0.0 }
        };
        self.judged_parties.iter().map(loss).sum()
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
        let rank = |index: usize| {
            (!self.setup.is_default(variant(index)), variant(index).first().variant.own_settings().len())
        };
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
            let is_judged = |file: &String| self.setup.group.is_none_or(|group| group.files.contains(file));
            for disk in run.disks.iter().filter(|disk| is_judged(&disk.file)) {
                choices += disk.choices? + disk.read_merges + disk.write_merges;
            }
            ios += run.simulated_ios;
        }
        (ios > 0 && !self.analysis.document.runs.iter().all(|run| run.disks.is_empty()))
            .then_some(choices * IOS_PER_CHOICE >= ios)
    }
}
