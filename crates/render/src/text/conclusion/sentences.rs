//! The sentences about one setup: what to do, what it costs, the other schedulers, and the ranking criterion.

use hoistway_answer::analysis::{Analysis, Estimate};
use hoistway_answer::document::{
    Aspect, Candidate, Change, Decision, FocusFrom, Outcome, SetupSummary, Shift, Verdict,
};
use hoistway_answer::{FigureName, WeightedFigure};

use super::phrases::{change_between, figure_in_words, may_lose_more, noun, relative_or_times, shift};
use crate::text::columns::value;
use crate::text::words::{device_name, list};
use hoistway_measure::{Operation, units};

/// Maximum losses listed individually.
const LOSSES_MAX: usize = 6;
/// Maximum gains of the recommended scheduler listed individually.
const GAINS_MAX: usize = 3;
/// Minimum factor of a gain that is worth a sentence.
const CLEAR_GAIN: f64 = 1.1;
/// Minimum factor of a wait, weighted by time, that a sentence explains.
const HIDDEN_WAIT: f64 = 2.0;
/// Maximum losses listed for schedulers that were not chosen.
const LOSSES_OF_OTHERS_MAX: usize = 2;

/// A verdict in words.
pub(super) struct Sentences<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    pub(super) verdict: &'a Verdict,
}

impl Sentences<'_> {
    /// The sentences about this setup only.
    pub(super) fn setup_sentences(&self) -> Vec<String> {
        let verdict = self.verdict;
        let mut sentences = vec![self.first()];
        let all_equivalent = !verdict.candidates.is_empty()
            && verdict.candidates.iter().all(|candidate| self.is_equivalent_to_reference(candidate));
        if verdict.had_a_choice == Some(false) && all_equivalent {
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
        sentences.extend(self.hidden_waits());
        sentences.extend(self.spreads());
        sentences.extend(self.others());
        sentences.extend(self.certainty());
        sentences.extend(self.unavailable());
        sentences
    }

    fn first(&self) -> String {
        let (verdict, setup_phrase) = (self.verdict, self.setup_phrase());
        let nouns = self.nouns();
        match (verdict.decision, self.recommended()) {
            (Decision::Change, Some(candidate)) if candidate.outcome == Outcome::BetterElsewhere => {
                let (from, to) = (self.reference(), self.words(&candidate.scheduler));
                format!("{setup_phrase}: change from {from} to {to}, {}.", self.better_elsewhere(candidate))
            }
            (Decision::OneRun, Some(candidate)) if candidate.outcome == Outcome::BetterElsewhere => format!(
                "{setup_phrase}: in this one run {} was ahead of {}, {}. One run cannot show what is noise; use --repeat 3.",
                self.words(&candidate.scheduler),
                self.reference(),
                self.better_elsewhere(candidate)
            ),
            (Decision::Change, Some(candidate)) => {
                let (from, to) = (self.reference(), self.words(&candidate.scheduler));
                format!("{setup_phrase}: change from {from} to {to}: {}.", self.gained(candidate))
            }
            (Decision::OneRun, Some(candidate)) => format!(
                "{setup_phrase}: in this one run {} was ahead of {}: {}. One run cannot show what is noise; use --repeat 3.",
                self.words(&candidate.scheduler),
                self.reference(),
                self.gained(candidate)
            ),
            (Decision::OneRun, None) => format!(
                "{setup_phrase}: in this one run nothing was worth a change from {} in {nouns} ({}). One run cannot show what is noise; \
                 use --repeat 3.",
                self.reference(),
                self.shown(&verdict.reference)
            ),
            (Decision::Alone, _) => {
                format!(
                    "{setup_phrase}: {nouns} under {} is {}.",
                    self.words(&verdict.reference),
                    self.shown(&verdict.reference)
                )
            }
            (Decision::Keep, _) if !verdict.candidates.is_empty() && self.only_incomparable() => format!(
                "{setup_phrase}: keep {}: nothing else can be compared with it by {nouns}, which the device model knows too little about.",
                self.reference()
            ),
            (Decision::Keep | Decision::Change, _) => {
                let is_better_somewhere =
                    |candidate: &Candidate| candidate.outcome == Outcome::Outweighed || has_clear_gain(candidate);
                let (reference, shown) = (self.reference(), self.shown(&verdict.reference));
                let maybe_better: Vec<String> = verdict
                    .candidates
                    .iter()
                    .filter(|candidate| self.may_be_better(candidate))
                    .map(|candidate| self.words(&candidate.scheduler))
                    .collect();
                if !maybe_better.is_empty() {
                    let ahead = list(&maybe_better);
                    format!(
                        "{setup_phrase}: keep {reference}: {ahead} may be ahead on balance, but not beyond the noise ({nouns} is {shown})."
                    )
                } else if let outvoted @ [_, ..] = &self.outvoted()[..] {
                    format!(
                        "{setup_phrase}: keep {reference}: {} would do better on balance, but not for those that wait ({nouns} is {shown}).",
                        list(outvoted)
                    )
                } else if verdict.candidates.iter().any(is_better_somewhere) {
                    format!(
                        "{setup_phrase}: keep {reference}: what others gain costs as much or more ({nouns} is {shown})."
                    )
                } else {
                    format!("{setup_phrase}: keep {reference}: nothing here is worth a change in {nouns} ({shown}).")
                }
            }
        }
    }

    /// The schedulers that are better on balance, but make those that wait worse off together.
    fn outvoted(&self) -> Vec<String> {
        let outvoted = self.verdict.candidates.iter().filter(|candidate| self.is_outvoted(candidate));
        outvoted.map(|candidate| self.words(&candidate.scheduler)).collect()
    }

    fn is_outvoted(&self, candidate: &Candidate) -> bool {
        let is_ahead = |balance: Change| balance.factor >= 1.0 + self.verdict.smallest_effect;
        candidate.outcome == Outcome::Outweighed && candidate.balance.is_some_and(is_ahead)
    }

    /// Whether no candidate can be compared, although the judged figure is known: the load only discards.
    fn only_incomparable(&self) -> bool {
        let is_discard = |weighted: &WeightedFigure| weighted.figure.operation == Operation::Trim;
        self.verdict.focus.iter().all(is_discard)
            && self.verdict.candidates.iter().all(|candidate| candidate.outcome == Outcome::Incomparable)
    }

    /// The advantages of a scheduler that is better on balance, other than the figure in focus.
    fn better_elsewhere(&self, candidate: &Candidate) -> String {
        let nouns = self.nouns();
        let (focus, and) = match candidate.gain {
            Some(gain) if gain.factor < 1.0 && 1.0 / gain.factor >= 1.0 + self.verdict.smallest_effect => {
                let change = format!(
                    "{nouns} ({} -> {})",
                    self.shown(&self.verdict.reference),
                    self.shown(&candidate.scheduler)
                );
                if is_worse_in_focus(candidate) {
                    (format!("which is worse in {change}"), "but")
                } else {
                    (format!("which is no better in {change}"), "and")
                }
            }
            _ => (format!("which is no different in {nouns}"), "and"),
        };
        match list_shifts(&decisive_shifts_first(&candidate.gains), LOSSES_OF_OTHERS_MAX) {
            gains if gains.is_empty() => format!("{focus} {and} better on balance"),
            gains => format!("{focus} {and} better at {gains}"),
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
        (!gains.is_empty()).then(|| format!("It also gains, largest first: {}.", list_shifts(&gains, GAINS_MAX)))
    }

    /// Waits that the mean and the percentiles of a variant hide, in terms of its time-weighted latencies.
    fn hidden_waits(&self) -> Vec<String> {
        let hidden = |candidate: &Candidate| {
            let losses =
                candidate.losses.iter().filter(|loss| loss.aspect == Aspect::Wait && loss.factor >= HIDDEN_WAIT);
            losses.filter_map(|loss| self.hidden_wait(&candidate.scheduler, loss)).next()
        };
        self.verdict.candidates.iter().filter_map(hidden).collect()
    }

    fn hidden_wait(&self, label: &str, loss: &Shift) -> Option<String> {
        let variant = self.analysis.variants.iter().find(|variant| variant.label == label)?;
        let job = variant.first().jobs.iter().find(|job| job.name == loss.job)?;
        let by_time = job.operation(loss.operation?)?.lat_ns.by_time?;
        Some(format!(
            "{} of the {}s of {} take {} or longer under {}, and {} of the time that it waits.",
            percent(by_time.longer_ios),
            loss.operation?.name(),
            loss.job,
            units::latency(by_time.mean_ns, false),
            self.words(label),
            percent(by_time.longer_time)
        ))
    }

    /// Ranking figures that differ widely between repeats.
    fn spreads(&self) -> impl Iterator<Item = String> + '_ {
        let why = if self.analysis.document.is_real {
            "it differs that much from run to run"
        } else {
            "depending on timing that a simulation cannot know"
        };
        self.verdict.spreads.iter().map(move |spread| {
            let shown = |number| value(spread.figure.figure, number, false);
            format!(
                "The {} under {} is between {} and {}, {why}.",
                self.figure_name(&spread.figure),
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
        let published = variant.first().research.as_deref()?;
        let name = variant.in_words().replacen("(unverified)", &format!("(unverified, {published})"), 1);
        let how = match candidate.outcome {
            Outcome::BetterElsewhere => format!("a change worth making, {}", self.better_elsewhere(candidate)),
            _ => format!("better: {}", self.gained(candidate)),
        };
        Some(format!("If the kernel had it, {name} would be {how}."))
    }

    /// A sentence on the certainty of the decision: the share of resamplings that reach it.
    fn certainty(&self) -> Option<String> {
        let certainty = self.verdict.certainty?;
        // Between equals there is no choice that could be close.
        let is_no_choice = |candidate: &Candidate| self.is_equivalent_to_reference(candidate);
        if self.verdict.decision == Decision::Keep
            && !self.verdict.is_sure()
            && self.verdict.candidates.iter().all(is_no_choice)
        {
            return None;
        }
        let percent = (certainty * 100.0).floor();
        let runs = self.analysis.variants.iter().map(|variant| variant.runs.len()).max().unwrap_or(0);
        Some(if self.verdict.is_sure() {
            format!("The decision is the same in {percent} % of resamplings of the {runs} runs.")
        } else {
            let close =
                format!("This is close: the decision is the same in {percent} % of resamplings of the {runs} runs");
            // What is recommended has an interval above zero, and may still be behind one that has not.
            let balance = |candidate: &Candidate| candidate.balance.map_or(1.0, |balance| balance.factor);
            let recommended_balance = self.recommended().map_or(1.0, balance);
            let is_ahead =
                |candidate: &&Candidate| self.may_be_better(candidate) && balance(candidate) > recommended_balance;
            let ahead = || self.verdict.candidates.iter().find(is_ahead);
            match self.verdict.decision {
                Decision::Keep if certainty < 0.5 && ahead().is_some() => format!(
                    "In {} % of resamplings of the {runs} runs something else is worth a change; a larger --repeat tells more.",
                    100.0 - percent
                ),
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

    /// Whether a candidate is ahead on balance, but within the noise.
    fn may_be_better(&self, candidate: &Candidate) -> bool {
        candidate.outcome == Outcome::WithinNoise && self.is_better_on_balance(candidate)
    }

    /// `On hdd, Linux 6.18` with several setups, or else `For this load on hdd`.
    fn setup_phrase(&self) -> String {
        match self.analysis.document.setups.get(self.verdict.setup as usize) {
            Some(setup) if self.analysis.document.setups.len() > 1 => {
                format!("On {}", setup_name(&self.analysis.document.setups, setup))
            }
            _ => {
                let runs = self.analysis.document.runs.iter().find(|run| run.setup == self.verdict.setup);
                let device = runs.map_or(&self.analysis.document.device, |run| self.analysis.document.setup_of(run).0);
                match self.analysis.document.disk_group(&self.verdict.files) {
                    Some(group) => format!("On {} ({})", list(&group.files), group.model),
                    None => format!("For this load on {}", device_name(device)),
                }
            }
        }
    }

    /// A variant's label, in a sentence that names the setup.
    fn words(&self, label: &str) -> String {
        let variant = self.analysis.variants.iter().find(|variant| variant.label == label);
        variant.map_or_else(|| label.to_owned(), |variant| variant.in_words())
    }

    /// The recommended scheduler here, and the figure in focus under it.
    pub(super) fn setup_result(&self) -> Option<SetupResult> {
        let setup = self.analysis.document.setups.get(self.verdict.setup as usize)?;
        let recommended = &self.verdict.recommended;
        let mean = match &self.verdict.focus[..] {
            [weighted] => self.estimate(&weighted.figure, recommended).map(|estimate| estimate.mean),
            _ => None,
        };
        let properties = setup_properties(&self.analysis.document.setups, setup);
        let (figures, variant_text) = (self.shown(recommended), self.words(recommended));
        Some(SetupResult { figures, label: recommended.clone(), variant_text, properties, mean })
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
            1 => self.figure_name(figure),
            _ => format!("{} (weight {weight})", self.figure_name(figure)),
        };
        list(&figures.iter().map(with_weight).collect::<Vec<_>>())
    }

    /// A figure with the number of jobs that it represents.
    fn figure_name(&self, figure: &FigureName) -> String {
        match self.verdict.equivalent_jobs.len() {
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
        let figure_text = |WeightedFigure { figure, .. }: &WeightedFigure| {
            let Some(estimate) = self.estimate(figure, label) else { return "nothing".to_owned() };
            let text = value(figure.figure, estimate.mean, false);
            match estimate.half_width {
                Some(half) if estimate.mean > 0.0 => format!("{text} {}", units::spread(half / estimate.mean, false)),
                _ => text,
            }
        };
        self.verdict.focus.iter().map(figure_text).collect::<Vec<_>>().join(", ")
    }

    /// The gain of a candidate: `p99 read latency of a 3.26 ms -> 1.27 ms, -61.0% (95 %: -64.2% to -58.1%)`.
    fn gained(&self, candidate: &Candidate) -> String {
        let figure_change = |WeightedFigure { figure, .. }: &WeightedFigure| {
            let mean_text =
                |label| self.estimate(figure, label).map(|estimate| value(figure.figure, estimate.mean, false));
            let (from, to) = (mean_text(&self.verdict.reference), mean_text(&candidate.scheduler));
            let arrow = from.zip(to).map(|(from, to)| format!(" {from} -> {to}")).unwrap_or_default();
            format!("{}{arrow}", self.figure_name(figure))
        };
        let figures = &self.verdict.focus;
        let mean = |weighted: &WeightedFigure, label: &str| {
            self.estimate(&weighted.figure, label).map(|estimate| estimate.mean)
        };
        let changes = figures.iter().map(figure_change).collect::<Vec<_>>().join(", ");
        let Some(gain) = candidate.gain else { return changes };
        match &figures[..] {
            [weighted] => {
                let means = mean(weighted, &self.verdict.reference).zip(mean(weighted, &candidate.scheduler));
                format!("{changes}, {}", change_between(gain, weighted.figure.figure, means))
            }
            _ => format!("{changes}; together {} times as good", units::times(gain.factor)),
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
        format!("It costs, worst first: {}.{doubt}", list_shifts(&recommended.losses, LOSSES_MAX))
    }

    /// The results of schedulers that were not chosen.
    fn others(&self) -> Vec<String> {
        let verdict = self.verdict;
        if verdict.decision == Decision::Alone {
            return Vec::new();
        }
        let mut sentences = Vec::new();
        let others = || verdict.candidates.iter().filter(|candidate| candidate.scheduler != verdict.recommended);
        let with_outcome = |outcome| others().filter(move |candidate| candidate.outcome == outcome);
        let first = verdict.focus.first().map(|focus| &focus.figure);
        let with_gain = |candidate: &Candidate| match (candidate.gain, first) {
            (Some(gain), Some(name)) if verdict.focus.len() == 1 => {
                let noun = noun(name.figure, name.operation);
                format!("{} ({noun} {})", self.words(&candidate.scheduler), relative_or_times(gain.factor, name.figure))
            }
            _ => self.words(&candidate.scheduler),
        };
        let judged = if verdict.focus.len() == 1 { "the judged figure" } else { "the judged figures" };
        let (further_ahead, better): (Vec<_>, Vec<_>) =
            with_outcome(Outcome::Better).partition(|candidate| !candidate.behind_recommended.is_empty());
        let better: Vec<String> = better.into_iter().map(with_gain).collect();
        if !better.is_empty() && verdict.decision != Decision::OneRun {
            let reference = self.words(&verdict.reference);
            sentences.push(format!("Also better than {reference}: {}.", list(&better)));
        }
        sentences.extend(further_ahead.into_iter().map(|candidate| {
            let losses = list_shifts(&decisive_shifts_first(&candidate.behind_recommended), LOSSES_OF_OTHERS_MAX);
            let recommended = self.words(&verdict.recommended);
            format!(
                "{} is further ahead in {judged}, but not on balance: against {recommended} it loses {losses}.",
                with_gain(candidate)
            )
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
            let gains = list_shifts(&gains, LOSSES_OF_OTHERS_MAX);
            match list_shifts(&decisive_shifts_first(&candidate.losses), LOSSES_OF_OTHERS_MAX) {
                losses if losses.is_empty() => format!("{name} is {how}; it gains {gains}."),
                losses => format!("{name} is {how}; it gains {gains}, and loses {losses}."),
            }
        };
        let (with_reason, without_reason): (Vec<_>, Vec<_>) = with_outcome(Outcome::BetterElsewhere)
            .partition(|candidate| has_clear_gain(candidate) && !candidate.losses.is_empty());
        let without_reason: Vec<String> =
            without_reason.into_iter().map(|candidate| self.words(&candidate.scheduler)).collect();
        if !without_reason.is_empty() {
            let reference = self.words(&verdict.reference);
            sentences
                .push(format!("Better than {reference} on balance, but not in {judged}: {}.", list(&without_reason)));
        }
        sentences.extend(with_reason.into_iter().map(|candidate| {
            let than = if is_worse_in_focus(candidate) { "worse" } else { "not" };
            on_balance(candidate, &format!("better on balance, but {than} in {judged}"))
        }));
        sentences.extend(
            with_outcome(Outcome::Worse)
                .filter(|candidate| has_clear_gain(candidate))
                .map(|candidate| on_balance(candidate, "worse on balance")),
        );
        sentences.extend(with_outcome(Outcome::Outweighed).map(|candidate| {
            let loses_more = candidate.balance.is_some_and(|balance| balance.factor < 1.0);
            let name = with_gain(candidate);
            match list_shifts(&decisive_shifts_first(&candidate.losses), LOSSES_OF_OTHERS_MAX) {
                losses if losses.is_empty() => format!("Not {name}, which is not better on balance."),
                losses if self.is_outvoted(candidate) => {
                    format!("Not {name}, which is better on balance, but worse for those that wait: {losses}.")
                }
                losses if loses_more => format!("Not {name}, which loses more than it gains: {losses}."),
                losses => format!("Not {name}, which gains no more than it loses: {losses}."),
            }
        }));
        let equivalent = || with_outcome(Outcome::NoDifference).chain(with_outcome(Outcome::WithinNoise));
        sentences.extend(equivalent().filter(|candidate| has_clear_gain(candidate)).map(|candidate| {
            let how = if self.may_be_better(candidate) {
                "ahead on balance, but not beyond the noise"
            } else {
                "no better on balance"
            };
            on_balance(candidate, how)
        }));
        let equivalent: Vec<String> = equivalent()
            .filter(|candidate| !has_clear_gain(candidate))
            .map(|candidate| self.words(&candidate.scheduler))
            .collect();
        if !equivalent.is_empty() && verdict.decision != Decision::OneRun {
            let smallest = verdict.smallest_effect * 100.0;
            let on_balance =
                if verdict.candidates.iter().any(|candidate| candidate.balance.is_some()) { " on balance" } else { "" };
            sentences
                .push(format!("No different by {smallest} % beyond the noise{on_balance}: {}.", list(&equivalent)));
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
            FocusFrom::Figures if !self.verdict.files.is_empty() => {
                Some(format!("{}: judged by {noun} of {}.", list(&self.verdict.files), focus.figure.job))
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
pub(super) fn setup_name(setups: &[SetupSummary], setup: &SetupSummary) -> String {
    setup_properties(setups, setup).join(", ")
}

fn setup_properties(setups: &[SetupSummary], setup: &SetupSummary) -> Vec<String> {
    let host = |setup: &SetupSummary| device_name(&setup.host);
    let mut parts = vec![device_name(&setup.device), format!("Linux {}", setup.kernel)];
    if setups.iter().any(|other| host(other) != host(setup)) {
        parts.push(format!("host {}", host(setup)));
    }
    parts
}

/// The result on one setup in short: `1.42 ms` under `mq-deadline` on `hdd`, `Linux 6.18`.
pub(super) struct SetupResult {
    /// The focus figures under the recommended variant, as text.
    pub(super) figures: String,
    /// The label of the recommended variant.
    pub(super) label: String,
    /// The recommended variant in words.
    pub(super) variant_text: String,
    /// The properties of the setup.
    pub(super) properties: Vec<String>,
    /// The mean of the focus figure; `None` if the focus has several figures.
    pub(super) mean: Option<f64>,
}

/// A share, with the digits that a small one needs.
fn percent(share: f64) -> String {
    let digits = (-(share * 100.0).log10()).ceil().clamp(0.0, 4.0) as usize;
    format!("{:.digits$} %", share * 100.0)
}

/// Whether a gain counts, is beyond the noise, and is at least [`CLEAR_GAIN`].
fn is_clear(gain: &Shift) -> bool {
    gain.weighs && gain.significant != Some(false) && gain.factor >= CLEAR_GAIN
}

/// Whether a candidate is worse in the figure in focus beyond the noise.
fn is_worse_in_focus(candidate: &Candidate) -> bool {
    candidate.gain.and_then(|gain| gain.high).is_some_and(|high| high < 1.0)
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
fn list_shifts(shifts: &[Shift], max: usize) -> String {
    let mut texts: Vec<String> = shifts.iter().take(max).map(shift).collect();
    if shifts.len() > max {
        texts.push(format!("{} more", shifts.len() - max));
    }
    texts.join("; ")
}
