//! The sentences about one setup: what to do, what it costs, the other schedulers, and the ranking criterion.

use hoistway_answer::analysis::{Analysis, Estimate};
use hoistway_answer::document::{Candidate, Change, Decision, FocusFrom, Outcome, SetupSummary, Shift, Verdict};
use hoistway_answer::{FigureName, WeightedFigure};

use super::phrases::{change_between, figure_in_words, may_lose_more, noun, relative, shift};
use crate::text::columns::value;
use crate::text::words::{device_name, list};
use hoistway_measure::units;

/// Maximum losses listed individually.
const LOSSES_MAX: usize = 6;
/// Maximum gains of the recommended scheduler listed individually.
const GAINS_MAX: usize = 3;
/// Minimum factor of a significant gain.
const CLEAR_GAIN: f64 = 1.1;
/// Maximum losses listed for schedulers that were not chosen.
const LOSSES_OF_OTHERS_MAX: usize = 2;

/// A verdict in words.
pub(super) struct Sentences<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) verdict: &'a Verdict,
}

impl Sentences<'_> {
    /// The sentences about this setup only.
    pub(super) fn of_place(&self) -> Vec<String> {
        let verdict = self.verdict;
        let mut sentences = vec![self.first()];
        let are_alike =
            !verdict.candidates.is_empty() && verdict.candidates.iter().all(|one| self.is_equivalent_to_reference(one));
        if verdict.had_a_choice == Some(false) && are_alike {
            sentences.push(
                "The queue was almost never deep enough to reorder anything; differences here are CPU overhead and timing \
                 noise."
                    .to_owned(),
            );
        }
        if let Some(recommended) = self.recommended() {
            sentences.extend(self.gains(recommended));
            sentences.push(self.costs(recommended));
        }
        sentences.extend(self.spreads());
        sentences.extend(self.others());
        sentences.extend(self.certainty());
        sentences.extend(self.unavailable());
        sentences
    }

    fn first(&self) -> String {
        let (verdict, place) = (self.verdict, self.place());
        let nouns = self.nouns();
        match (verdict.decision, self.recommended()) {
            (Decision::Change, Some(candidate)) if candidate.outcome == Outcome::BetterElsewhere => {
                let (from, to) = (self.reference(), self.words(&candidate.scheduler));
                format!("{place}: change from {from} to {to}, {}.", self.better_elsewhere(candidate))
            }
            (Decision::OneRun, Some(candidate)) if candidate.outcome == Outcome::BetterElsewhere => format!(
                "{place}: in this one run {} was ahead of {}, {}. One run cannot show what is noise; use --repeat 3.",
                self.words(&candidate.scheduler),
                self.reference(),
                self.better_elsewhere(candidate)
            ),
            (Decision::Change, Some(candidate)) => {
                let (from, to) = (self.reference(), self.words(&candidate.scheduler));
                format!("{place}: change from {from} to {to}: {}.", self.gained(candidate))
            }
            (Decision::OneRun, Some(candidate)) => format!(
                "{place}: in this one run {} was ahead of {}: {}. One run cannot show what is noise; use --repeat 3.",
                self.words(&candidate.scheduler),
                self.reference(),
                self.gained(candidate)
            ),
            (Decision::OneRun, None) => format!(
                "{place}: in this one run nothing was worth a change from {} in {nouns} ({}). One run cannot show what is noise; \
                 use --repeat 3.",
                self.reference(),
                self.shown(&verdict.reference)
            ),
            (Decision::Alone, _) => {
                format!(
                    "{place}: {nouns} under {} is {}.",
                    self.words(&verdict.reference),
                    self.shown(&verdict.reference)
                )
            }
            (Decision::Keep | Decision::Change, _) => {
                let is_better_somewhere = |one: &Candidate| one.outcome == Outcome::Outweighed || has_clear_gain(one);
                let (reference, shown) = (self.reference(), self.shown(&verdict.reference));
                let maybe: Vec<String> = verdict
                    .candidates
                    .iter()
                    .filter(|one| self.may_be_better(one))
                    .map(|one| self.words(&one.scheduler))
                    .collect();
                if !maybe.is_empty() {
                    let (ahead, are) = (list(&maybe), if maybe.len() == 1 { "is" } else { "are" });
                    format!(
                        "{place}: keep {reference}: {ahead} {are} ahead on balance, but not beyond the noise ({nouns} is {shown})."
                    )
                } else if verdict.candidates.iter().any(is_better_somewhere) {
                    format!("{place}: keep {reference}: what others gain costs as much or more ({nouns} is {shown}).")
                } else {
                    format!("{place}: keep {reference}: nothing here is worth a change in {nouns} ({shown}).")
                }
            }
        }
    }

    /// The advantages of a scheduler that is better on balance, other than the figure in focus.
    fn better_elsewhere(&self, candidate: &Candidate) -> String {
        let nouns = self.nouns();
        let focus = match candidate.gain {
            Some(gain) if gain.factor < 1.0 && 1.0 / gain.factor >= 1.0 + self.verdict.smallest_effect => {
                format!("which is no better in {nouns}")
            }
            _ => format!("which is no different in {nouns}"),
        };
        match listed(&decisive_shifts_first(&candidate.gains), LOSSES_OF_OTHERS_MAX) {
            gains if gains.is_empty() => format!("{focus} and better on balance"),
            gains => format!("{focus} and better at {gains}"),
        }
    }

    /// Whether a candidate differs from the reference by less than the smallest effect.
    fn is_equivalent_to_reference(&self, candidate: &Candidate) -> bool {
        let smallest = 1.0 + self.verdict.smallest_effect;
        let balance = candidate.balance.or(candidate.gain);
        balance.is_some_and(|change| (1.0 / smallest..smallest).contains(&change.factor))
    }

    /// The gains of the recommended scheduler other than the figure in focus.
    fn gains(&self, recommended: &Candidate) -> Option<String> {
        if recommended.outcome == Outcome::BetterElsewhere || self.verdict.decision == Decision::OneRun {
            return None;
        }
        let gains: Vec<Shift> = recommended.gains.iter().filter(|gain| is_clear(gain)).cloned().collect();
        (!gains.is_empty()).then(|| format!("It also gains, largest first: {}.", listed(&gains, GAINS_MAX)))
    }

    /// Ranking figures that differ widely between repeats.
    fn spreads(&self) -> impl Iterator<Item = String> + '_ {
        let why = if self.analysis.document.is_real {
            "it differs that much from run to run"
        } else {
            "depending on timing that a simulation cannot know"
        };
        self.verdict.spreads.iter().map(move |spread| {
            let shown = |of| value(spread.figure.figure, of, false);
            format!(
                "The {} under {} is between {} and {}, {why}.",
                self.named(&spread.figure),
                self.words(&spread.scheduler),
                shown(spread.least),
                shown(spread.most)
            )
        })
    }

    /// A better scheduler that no kernel has.
    fn unavailable(&self) -> Option<String> {
        let candidate = self.verdict.unavailable.as_ref()?;
        let variant = self.analysis.variants.iter().find(|variant| variant.label == candidate.scheduler)?;
        let (name, published) = (variant.in_words(), variant.first().research.as_deref()?);
        let how = match candidate.outcome {
            Outcome::BetterElsewhere => format!("a change worth making, {}", self.better_elsewhere(candidate)),
            _ => format!("better: {}", self.gained(candidate)),
        };
        Some(format!("If the kernel had it, {name} ({published}) would be {how}."))
    }

    /// A sentence on the certainty of the decision: the share of resamplings that reach it.
    fn certainty(&self) -> Option<String> {
        let certainty = self.verdict.certainty?;
        let percent = (certainty * 100.0).floor();
        let runs = self.analysis.variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(0);
        Some(if self.verdict.is_sure() {
            format!("The decision is the same in {percent} % of resamplings of the {runs} runs.")
        } else {
            let close =
                format!("This is close: the decision is the same in {percent} % of resamplings of the {runs} runs");
            // What is recommended has an interval above zero, and may still be behind one that has not.
            let balance = |candidate: &Candidate| candidate.balance.map_or(1.0, |balance| balance.factor);
            let kept = self.recommended().map_or(1.0, balance);
            let is_ahead = |one: &&Candidate| self.may_be_better(one) && balance(one) > kept;
            let ahead = || self.verdict.candidates.iter().find(is_ahead);
            match self.verdict.decision {
                Decision::Keep | Decision::Change if certainty < 0.5 => match ahead() {
                    Some(ahead) => format!(
                        "{close}, as {} is ahead on balance, but not beyond the noise; a larger --repeat tells more.",
                        self.words(&ahead.scheduler)
                    ),
                    None => format!("{close}; a larger --repeat tells more."),
                },
                _ => format!("{close}; a larger --repeat tells more."),
            }
        })
    }

    /// Whether a candidate is better on balance by the smallest effect, even if within the noise.
    fn is_better_on_balance(&self, candidate: &Candidate) -> bool {
        candidate.balance.is_some_and(|balance| balance.factor >= 1.0 + self.verdict.smallest_effect)
    }

    /// Whether a candidate gains more in the focus than the recommended one, but has losses.
    fn is_further_ahead(&self, candidate: &Candidate) -> bool {
        let gain = |one: &Candidate| one.gain.map_or(1.0, |gain| gain.factor);
        let best = self.recommended().map_or(f64::INFINITY, gain);
        gain(candidate) >= best * (1.0 + self.verdict.smallest_effect) && !candidate.losses.is_empty()
    }

    /// Whether a candidate is ahead on balance, but within the noise.
    fn may_be_better(&self, candidate: &Candidate) -> bool {
        candidate.outcome == Outcome::WithinNoise && self.is_better_on_balance(candidate)
    }

    fn place(&self) -> String {
        match self.analysis.document.setups.get(self.verdict.setup as usize) {
            Some(setup) if self.analysis.document.setups.len() > 1 => {
                format!("On {}", place(&self.analysis.document.setups, setup))
            }
            _ => {
                let runs = self.analysis.document.runs.iter().find(|run| run.setup == self.verdict.setup);
                let device = runs.map_or(&self.analysis.document.device, |run| self.analysis.document.place_of(run).0);
                format!("For this load on {}", device_name(device))
            }
        }
    }

    /// A variant's label, in a sentence that names the setup.
    fn words(&self, label: &str) -> String {
        let variant = self.analysis.variants.iter().find(|variant| variant.label == label);
        variant.map_or_else(|| label.to_owned(), |variant| variant.in_words())
    }

    /// The recommended scheduler here, and the figure in focus under it.
    pub(super) fn in_short(&self) -> Option<InShort> {
        let setup = self.analysis.document.setups.get(self.verdict.setup as usize)?;
        let recommended = &self.verdict.recommended;
        let mean = match &self.verdict.focus[..] {
            [one] => self.estimate(&one.figure, recommended).map(|estimate| estimate.mean),
            _ => None,
        };
        let place = place_parts(&self.analysis.document.setups, setup);
        let (shown, words) = (self.shown(recommended), self.words(recommended));
        Some(InShort { shown, label: recommended.clone(), words, place, mean })
    }

    /// The scheduler that a change starts from: `the default (mq-deadline)`.
    fn reference(&self) -> String {
        let name = self.words(&self.verdict.reference);
        if self.verdict.reference_is_default { format!("the default ({name})") } else { name }
    }

    fn recommended(&self) -> Option<&Candidate> {
        let verdict = self.verdict;
        verdict.candidates.iter().find(|candidate| candidate.scheduler == verdict.recommended)
    }

    pub(super) fn nouns(&self) -> String {
        let figures = &self.verdict.focus;
        let with_weight = |WeightedFigure { figure, weight }: &WeightedFigure| match figures.len() {
            1 => self.named(figure),
            _ => format!("{} (weight {weight})", self.named(figure)),
        };
        list(&figures.iter().map(with_weight).collect::<Vec<_>>())
    }

    /// A figure with the number of jobs that it represents.
    fn named(&self, figure: &FigureName) -> String {
        match self.verdict.alike.len() {
            0 | 1 => figure_in_words(figure),
            2 => format!("{} and the job like it (median)", figure_in_words(figure)),
            jobs => format!("{} and the {} jobs like it (median)", figure_in_words(figure), jobs - 1),
        }
    }

    fn estimate(&self, figure: &FigureName, label: &str) -> Option<Estimate> {
        self.verdict.estimate(self.analysis, figure, label)
    }

    /// The figures under a variant, with their intervals.
    fn shown(&self, label: &str) -> String {
        let one = |WeightedFigure { figure, .. }: &WeightedFigure| {
            let Some(estimate) = self.estimate(figure, label) else { return "nothing".to_owned() };
            let text = value(figure.figure, estimate.mean, false);
            match estimate.half_width {
                Some(half) if estimate.mean > 0.0 => format!("{text} {}", units::spread(half / estimate.mean, false)),
                _ => text,
            }
        };
        self.verdict.focus.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The gain of a candidate: `p99 read latency of a 3.26 ms -> 1.27 ms, -61.0% (95 %: -64.2% to -58.1%)`.
    fn gained(&self, candidate: &Candidate) -> String {
        let moved = |WeightedFigure { figure, .. }: &WeightedFigure| {
            let of = |label| self.estimate(figure, label).map(|estimate| value(figure.figure, estimate.mean, false));
            let (from, to) = (of(&self.verdict.reference), of(&candidate.scheduler));
            let arrow = from.zip(to).map(|(from, to)| format!(" {from} -> {to}")).unwrap_or_default();
            format!("{}{arrow}", self.named(figure))
        };
        let figures = &self.verdict.focus;
        let mean = |one: &WeightedFigure, label: &str| self.estimate(&one.figure, label).map(|estimate| estimate.mean);
        let moved = figures.iter().map(moved).collect::<Vec<_>>().join(", ");
        let Some(gain) = candidate.gain else { return moved };
        match &figures[..] {
            [one] => {
                let means = mean(one, &self.verdict.reference).zip(mean(one, &candidate.scheduler));
                format!("{moved}, {}", change_between(gain, one.figure.figure, means))
            }
            _ => format!("{moved}; together {} times as good", units::times(gain.factor)),
        }
    }

    /// The losses of the recommended scheduler.
    fn costs(&self, recommended: &Candidate) -> String {
        let smallest = units::difference(self.verdict.smallest_effect).trim_start_matches('+').replace(".0%", " %");
        if recommended.losses.is_empty() {
            let noise = if self.verdict.decision == Decision::OneRun { "" } else { " beyond the noise" };
            return format!("Nothing else gets worse by {smallest} or more{noise}.");
        }
        let doubt = recommended.gain.and_then(|gain| may_lose_more(&recommended.losses, gain.factor));
        let doubt = doubt.map_or_else(String::new, |what| {
            format!(" It may lose more in the {what} than it gains: a larger --repeat tells.")
        });
        format!("It costs, worst first: {}.{doubt}", listed(&recommended.losses, LOSSES_MAX))
    }

    /// The results of schedulers that were not chosen.
    fn others(&self) -> Vec<String> {
        let verdict = self.verdict;
        if verdict.decision == Decision::Alone {
            return Vec::new();
        }
        let mut sentences = Vec::new();
        let others = || verdict.candidates.iter().filter(|candidate| candidate.scheduler != verdict.recommended);
        let of = |outcome| others().filter(move |candidate| candidate.outcome == outcome);
        let first = verdict.focus.first().map(|focus| focus.figure.figure);
        let with_gain = |candidate: &Candidate| match (candidate.gain, first) {
            (Some(gain), Some(figure)) if verdict.focus.len() == 1 => {
                format!("{} ({})", self.words(&candidate.scheduler), relative(gain.factor, figure))
            }
            _ => self.words(&candidate.scheduler),
        };
        let judged = if verdict.focus.len() == 1 { "the judged figure" } else { "the judged figures" };
        let (further, better): (Vec<_>, Vec<_>) = of(Outcome::Better).partition(|one| self.is_further_ahead(one));
        let better: Vec<String> = better.into_iter().map(with_gain).collect();
        if !better.is_empty() && verdict.decision != Decision::OneRun {
            let reference = self.words(&verdict.reference);
            sentences.push(format!("Also better than {reference}: {}.", list(&better)));
        }
        sentences.extend(further.into_iter().map(|one| {
            let losses = listed(&decisive_shifts_first(&one.losses), LOSSES_OF_OTHERS_MAX);
            format!("{} is further ahead in {judged}, but not on balance: it loses {losses}.", with_gain(one))
        }));
        // The judged figure is in neither list.
        let with_change = |candidate: &Candidate| {
            let is_changed = |gain: Change| {
                let is_large = gain.factor.max(gain.factor.recip()) >= 1.0 + verdict.smallest_effect;
                is_large && (gain.is_better() || gain.is_worse())
            };
            match candidate.gain {
                Some(gain) if is_changed(gain) => with_gain(candidate),
                _ => self.words(&candidate.scheduler),
            }
        };
        let on_balance = |candidate: &Candidate, how: &str| {
            let name = with_change(candidate);
            let gains: Vec<Shift> = candidate.gains.iter().filter(|gain| is_clear(gain)).cloned().collect();
            let gains = listed(&gains, LOSSES_OF_OTHERS_MAX);
            match listed(&decisive_shifts_first(&candidate.losses), LOSSES_OF_OTHERS_MAX) {
                losses if losses.is_empty() => format!("{name} is {how}; it gains {gains}."),
                losses => format!("{name} is {how}; it gains {gains}, and loses {losses}."),
            }
        };
        let (with_reason, elsewhere): (Vec<_>, Vec<_>) =
            of(Outcome::BetterElsewhere).partition(|one| has_clear_gain(one) && !one.losses.is_empty());
        let elsewhere: Vec<String> = elsewhere.into_iter().map(|one| self.words(&one.scheduler)).collect();
        if !elsewhere.is_empty() {
            let reference = self.words(&verdict.reference);
            sentences.push(format!("Better than {reference} on balance, but not in {judged}: {}.", list(&elsewhere)));
        }
        let how = format!("better on balance, but not in {judged}");
        sentences.extend(with_reason.into_iter().map(|one| on_balance(one, &how)));
        sentences.extend(
            of(Outcome::Worse).filter(|one| has_clear_gain(one)).map(|one| on_balance(one, "worse on balance")),
        );
        sentences.extend(of(Outcome::Outweighed).map(|candidate| {
            match listed(&decisive_shifts_first(&candidate.losses), LOSSES_OF_OTHERS_MAX) {
                losses if losses.is_empty() => format!("Not {}, which is not better on balance.", with_gain(candidate)),
                losses => format!("Not {}, which loses more than it gains: {losses}.", with_gain(candidate)),
            }
        }));
        let alike = || of(Outcome::NoDifference).chain(of(Outcome::WithinNoise));
        sentences.extend(alike().filter(|one| has_clear_gain(one)).map(|one| {
            let how = if self.may_be_better(one) {
                "ahead on balance, but not beyond the noise"
            } else {
                "no better on balance"
            };
            on_balance(one, how)
        }));
        let alike: Vec<String> = alike()
            .filter(|candidate| !has_clear_gain(candidate))
            .map(|candidate| self.words(&candidate.scheduler))
            .collect();
        if !alike.is_empty() && verdict.decision != Decision::OneRun {
            let smallest = verdict.smallest_effect * 100.0;
            let on_balance =
                if verdict.candidates.iter().any(|one| one.balance.is_some()) { " on balance" } else { "" };
            sentences.push(format!("No different by {smallest} % beyond the noise{on_balance}: {}.", list(&alike)));
        }
        sentences
    }

    /// The ranking criterion, and how to change it.
    pub(super) fn ranking_criterion_text(&self) -> Option<String> {
        let focus = self.verdict.focus.first()?;
        let noun = noun(focus.figure.figure, focus.figure.operation);
        match self.verdict.focus_from {
            FocusFrom::Asked => None,
            FocusFrom::Load => {
                Some(format!("Judged by {noun}, the focus of this load; --focus {} chooses it.", focus.figure))
            }
            FocusFrom::Figures => Some(format!(
                "Judged by {noun} of {}, the figure most likely to be waited on; --focus JOB:OPERATION:FIGURE, such as {}, \
                 chooses another figure.",
                focus.figure.job, focus.figure
            )),
        }
    }
}

/// `hdd, Linux 6.18`, with the host if there are several.
pub(super) fn place(setups: &[SetupSummary], setup: &SetupSummary) -> String {
    place_parts(setups, setup).join(", ")
}

fn place_parts(setups: &[SetupSummary], setup: &SetupSummary) -> Vec<String> {
    let host = |setup: &SetupSummary| device_name(&setup.host);
    let mut parts = vec![device_name(&setup.device), format!("Linux {}", setup.kernel)];
    if setups.iter().any(|other| host(other) != host(setup)) {
        parts.push(format!("host {}", host(setup)));
    }
    parts
}

/// The result on one setup in short: `1.42 ms` under `mq-deadline` on `hdd`, `Linux 6.18`.
pub(super) struct InShort {
    /// The focus figures under the recommended variant, as text.
    pub(super) shown: String,
    /// The label of the recommended variant.
    pub(super) label: String,
    /// The recommended variant in words.
    pub(super) words: String,
    /// The properties of the setup.
    pub(super) place: Vec<String>,
    /// The mean of the focus figure; `None` if the focus has several figures.
    pub(super) mean: Option<f64>,
}

/// Whether a gain counts, is beyond the noise, and is at least [`CLEAR_GAIN`].
fn is_clear(gain: &Shift) -> bool {
    gain.weighs && gain.significant != Some(false) && gain.factor >= CLEAR_GAIN
}

fn has_clear_gain(candidate: &Candidate) -> bool {
    candidate.gains.iter().any(is_clear)
}

/// Puts the shifts that a verdict is based on first.
fn decisive_shifts_first(shifts: &[Shift]) -> Vec<Shift> {
    let (mut first, others): (Vec<Shift>, Vec<Shift>) = shifts.iter().cloned().partition(|shift| shift.weighs);
    first.extend(others);
    first
}

/// Shifts in words, and the number of the others.
fn listed(shifts: &[Shift], max: usize) -> String {
    let mut words: Vec<String> = shifts.iter().take(max).map(shift).collect();
    if shifts.len() > max {
        words.push(format!("{} more", shifts.len() - max));
    }
    words.join("; ")
}
