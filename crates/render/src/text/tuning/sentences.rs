//! The conclusion of a search in sentences.

use hoistway_answer::document::Change;
use hoistway_answer::tuning::{SearchOutcome, Setting, SettingResult, Tuning};
use hoistway_answer::verdict::SMALLEST_EFFECT;

use super::cells::shown;
use crate::text::conclusion::window;
use crate::text::conclusion::{change, change_between, figure_in_words, may_lose_more, shift_in_words};
use crate::text::words::{device_name, list};
use hoistway_measure::units;

/// Maximum number of named settings.
const NAMES_MAX: usize = 4;
/// Maximum number of named losses.
const LOSSES_MAX: usize = 6;

/// The conclusion of a search, one sentence each; empty if it has no result yet.
#[must_use]
pub fn tuning_conclusion(tuning: &Tuning) -> Vec<String> {
    let Some(found) = &tuning.found else { return Vec::new() };
    let mut sentences = vec![first(tuning, found)];
    sentences.extend(missing_scheduler_notice(tuning, &found.best.setting));
    sentences.extend(tuning.window.as_ref().map(window::sentence));
    sentences.extend(tuning.window.as_ref().and_then(window::doubt).map(|doubt| format!("Uncertain: {doubt}.")));
    if !found.holds {
        return sentences;
    }
    let conditions = &tuning.objective.conditions;
    for (condition, margin) in conditions.iter().zip(&found.best.margins) {
        let Some(margin) = margin else { continue };
        let sure = match margin.low {
            Some(low) if low >= 1.0 => "beyond the noise",
            _ => "on average, but not beyond the noise",
        };
        sentences.push(format!("It meets \"{condition}\" {sure}, by a factor of {}.", units::times(margin.factor)));
    }
    let undecided: Vec<String> = found.undecided.iter().take(NAMES_MAX).map(setting_text).collect();
    if !undecided.is_empty() {
        let more = found.undecided.len() - undecided.len();
        let more = if more > 0 { format!("{more} more") } else { String::new() };
        let names: Vec<String> = undecided.into_iter().chain(Some(more).filter(|more| !more.is_empty())).collect();
        let seeds = found.best.seeds;
        sentences.push(format!("After {seeds} seeds it does not differ beyond the noise from {}.", list(&names)));
    }
    if advises_change(found) {
        sentences.extend(costs(found));
    }
    let tried = tuning.rounds.first().map_or(0, |first| first.settings.len()) as u64;
    if tried < tuning.settings_possible {
        sentences.push(format!(
            "{tried} of {} settings were tried; an untried one may be better (a larger --budget tries more, --vary narrows the search).",
            tuning.settings_possible
        ));
    }
    sentences
}

/// A notice that the kernel lacks the scheduler found.
fn missing_scheduler_notice(tuning: &Tuning, setting: &Setting) -> Option<String> {
    let source = tuning.outside_linux.get(&setting.scheduler)?;
    let name = &setting.scheduler;
    Some(format!(
        "No Linux kernel has {name} ({source}): this holds only where hoistway itself schedules (run, serve); search without it (--over) \
         for a setting of a kernel."
    ))
}

fn first(tuning: &Tuning, found: &SearchOutcome) -> String {
    let objective = &tuning.objective;
    let (figure, device) = (&objective.figure, device_name(&tuning.device));
    let noun = figure_in_words(figure);
    let best = setting_text(&found.best.setting);
    if !found.holds {
        let missed = objective.conditions.iter().zip(&found.best.margins).filter_map(|(condition, margin)| {
            let factor = margin.map_or(0.0, |margin| margin.factor);
            let misses = margin.is_none() || !condition.is_met(factor.ln());
            let by = if margin.is_none() {
                "for lack of such I/O".to_owned()
            } else {
                format!("by a factor of {}: {}", units::times(1.0 / factor), shown(&found.best, &condition.figure))
            };
            misses.then(|| format!("\"{condition}\" ({by})"))
        });
        let missed: Vec<String> = missed.collect();
        return format!(
            "For this load on {device}, no setting that was tried meets the conditions. The closest is {best}, which misses {}.",
            list(&missed)
        );
    }
    let reference = setting_text(&found.reference.setting);
    let now = shown(&found.best, figure);
    if found.best.setting == found.reference.setting {
        return format!(
            "For this load on {device}: keep {reference}: nothing that was tried is better in {noun} ({now})."
        );
    }
    if !found.reference.holds {
        let change_text = found.gain.map(|gain| format!(", {}", change(gain, figure.figure))).unwrap_or_default();
        return format!(
            "For this load on {device}: change to {best}: {noun} {now}{change_text} from {reference}, which does not meet the conditions."
        );
    }
    match found.gain.filter(is_worth_it) {
        Some(gain) => {
            let before = shown(&found.reference, figure);
            let mean = |result: &SettingResult| result.figures.get(figure).map(|estimate| estimate.mean);
            let means = mean(&found.reference).zip(mean(&found.best));
            let change_text = change_between(gain, figure.figure, means);
            let alone = if is_outweighed(found) { "by this objective alone " } else { "" };
            format!(
                "For this load on {device}: {alone}change from {reference} to {best}: {noun} {before} -> {now}, {change_text}."
            )
        }
        None => format!(
            "For this load on {device}: keep {reference}: the best that was found, {best}, is not better in {noun} by 2 % beyond \
             the noise ({now})."
        ),
    }
}

/// Whether a gain is a reason to change.
fn is_worth_it(gain: &Change) -> bool {
    gain.is_better() && gain.factor >= 1.0 + SMALLEST_EFFECT
}

/// Whether the advised setting differs from the current one.
pub(super) fn advises_change(found: &SearchOutcome) -> bool {
    let is_other = found.best.setting != found.reference.setting;
    is_other && (!found.reference.holds || found.gain.as_ref().is_some_and(is_worth_it))
}

/// Whether the best setting loses more elsewhere than it gains: the objective may not be everything that matters.
fn is_outweighed(found: &SearchOutcome) -> bool {
    let gain = found.gain.map_or(1.0, |gain| gain.factor);
    found.losses.iter().flatten().any(|loss| loss.weighs && loss.factor > gain)
}

/// The losses of the best setting other than the objective, if they were measured.
fn costs(found: &SearchOutcome) -> Option<String> {
    let losses = found.losses.as_ref()?;
    if losses.is_empty() {
        return Some("Nothing else gets worse by 2 % or more beyond the noise.".to_owned());
    }
    let mut descriptions: Vec<String> = losses.iter().take(LOSSES_MAX).map(shift_in_words).collect();
    if losses.len() > LOSSES_MAX {
        descriptions.push(format!("{} more", losses.len() - LOSSES_MAX));
    }
    let descriptions = descriptions.join("; ");
    Some(if is_outweighed(found) {
        format!(
            "It loses more than it gains, worst first: {descriptions}. Add a condition (subject to) for what must not get worse."
        )
    } else {
        let gain = found.gain.filter(is_worth_it);
        let doubt = gain.and_then(|gain| may_lose_more(losses, gain.factor));
        let doubt = doubt.map_or_else(String::new, |what| {
            format!(" It may lose more in the {what} than it gains; more runs are needed to tell.")
        });
        format!("It costs, worst first: {descriptions}.{doubt}")
    })
}

/// `mq-deadline with fifo_batch=4 and nr_requests=64`.
fn setting_text(setting: &Setting) -> String {
    let tunables: Vec<String> = setting.values().map(|(name, text)| format!("{name}={text}")).collect();
    if tunables.is_empty() {
        setting.scheduler.clone()
    } else {
        format!("{} with {}", setting.scheduler, list(&tunables))
    }
}
