//! What a search found: tables for people, and sentences.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use hoistway_results::FigureName;
use hoistway_results::document::Change;
use hoistway_results::tuning::{Budget, Found, Round, Setting, Standing, Tuning};

use crate::columns::value;
use crate::conclusion::{change, figure_in_words};
use crate::units;
use crate::words::{device_name, list};
use crate::wrap::hanging;

/// What is less is no gain.
const SMALLEST_EFFECT: f64 = 0.02;
/// Knobs that explain less are not told.
const SHARE_MIN: f64 = 0.01;
/// Rows of a table at most.
const ROWS_MAX: usize = 12;
/// Settings that are told one by one.
const NAMES_MAX: usize = 4;

/// The search as text: what was searched, the last round, the front, what mattered, what it means.
#[must_use]
pub fn tuning(tuning: &Tuning, width: usize) -> String {
    let objective = &tuning.objective;
    let mut text = hanging(&set_up(tuning), width, 0, 2);
    if let Some(last) = tuning.rounds.last() {
        text += &format!("\nthe last round, {}, the best first\n", of_round(last));
        text += &table(tuning, &last.settings, true);
    }
    if let (true, Some(first)) = (tuning.front.len() > 1 && tuning.rounds.len() > 1, tuning.rounds.first()) {
        text += &format!("\nnobody beats these in everything: of {}\n", of_round(first));
        text += &table(tuning, &tuning.front, false);
    }
    let told: Vec<_> = tuning.effects.iter().filter(|effect| effect.share >= SHARE_MIN).take(ROWS_MAX).collect();
    if !told.is_empty() {
        text += &format!("\nwhat mattered to the {}\n", figure_in_words(&objective.figure));
        let rows = told.iter().map(|effect| {
            let of = effect.scheduler.as_ref().map(|name| format!("{name}.")).unwrap_or_default();
            vec![
                format!("{of}{}", effect.knob),
                format!("{:.0} %", effect.share * 100.0),
                effect.best.clone(),
                effect.worst.clone(),
                format!("{} times", units::times(effect.factor)),
                effect.settings.to_string(),
            ]
        });
        let header = ["knob", "of the variance", "best", "worst", "between them", "settings"].map(str::to_owned);
        text += &lines(header.to_vec(), rows.collect());
    }
    text.push('\n');
    for line in tuning.notices.iter().chain(&tuning.conclusion) {
        text += &hanging(line, width, 0, 2);
    }
    text
}

fn set_up(tuning: &Tuning) -> String {
    let budget = match tuning.budget {
        Budget::Runs(runs) => format!("{runs} runs"),
        Budget::VirtualNs(ns) => format!("{} of virtual time", units::seconds(ns as f64 / 1e9)),
    };
    format!(
        "{} on {}, Linux {}, {} CPUs, seed {}: {}; {} of {} settings tried in {} runs of {budget}",
        tuning.job_file,
        device_name(&tuning.device),
        tuning.kernel,
        tuning.cpus,
        tuning.seed,
        tuning.objective,
        tuning.rounds.first().map_or(0, |first| first.settings.len()),
        tuning.settings_possible,
        tuning.runs.len(),
    )
}

fn of_round(round: &Round) -> String {
    let seeds = round.settings.iter().map(|standing| standing.seeds).max().unwrap_or(0);
    let runs = match round.runtime_ns {
        Some(ns) => format!("runs of {}", units::seconds(ns as f64 / 1e9)),
        None => "whole runs".to_owned(),
    };
    format!("{} settings in {runs} with {seeds} seeds", round.settings.len())
}

/// Standings, with what they are beside the first or without.
fn table(tuning: &Tuning, standings: &[Standing], beside: bool) -> String {
    let figures = tuning.objective.figures();
    let mut header = vec!["setting".to_owned()];
    header.extend(figures.iter().map(ToString::to_string));
    if beside {
        header.push("beside the best".to_owned());
    }
    let mut notes = Vec::new();
    let has_conditions = !tuning.objective.conditions.is_empty();
    if has_conditions {
        header.push("conditions".to_owned());
    }
    let row = |standing: &Standing| {
        let mut row = vec![standing.setting.to_string()];
        row.extend(figures.iter().map(|name| shown(standing, name)));
        if beside {
            row.push(beside_best(standing));
        }
        if has_conditions {
            row.push(if standing.holds { "kept" } else { "missed" }.to_owned());
        }
        row
    };
    let rows = standings.iter().take(ROWS_MAX).map(row).collect();
    if standings.len() > ROWS_MAX {
        notes.push(format!("({} more)\n", standings.len() - ROWS_MAX));
    }
    lines(header, rows) + &notes.concat()
}

/// In brackets what is not beyond the noise.
fn beside_best(standing: &Standing) -> String {
    let Some(change) = standing.beside_best.filter(|change| change.factor != 1.0) else { return "-".to_owned() };
    let text = format!("{} times", units::times(change.factor));
    if change.is_better() || change.is_worse() { text } else { format!("({text})") }
}

fn shown(standing: &Standing, name: &FigureName) -> String {
    let Some(spread) = standing.figures.get(name) else { return "-".to_owned() };
    let text = value(name.figure, spread.mean, false);
    match spread.half_width {
        Some(half) if spread.mean > 0.0 => format!("{text} {}", units::spread(half / spread.mean, false)),
        _ => text,
    }
}

fn lines(header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
    table.set_header(header);
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// What a search means, a sentence each; none if it found nothing yet.
#[must_use]
pub fn tuning_conclusion(tuning: &Tuning) -> Vec<String> {
    let Some(found) = &tuning.found else { return Vec::new() };
    let mut sentences = vec![first(tuning, found)];
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
        sentences.push(format!("It keeps \"{condition}\" {sure}, by a factor of {}.", units::times(margin.factor)));
    }
    let open: Vec<String> = found.undecided.iter().take(NAMES_MAX).map(in_words).collect();
    if !open.is_empty() {
        let more = found.undecided.len() - open.len();
        let more = if more > 0 { format!("{more} more") } else { String::new() };
        let names: Vec<String> = open.into_iter().chain(Some(more).filter(|more| !more.is_empty())).collect();
        let seeds = found.best.seeds;
        sentences.push(format!("After {seeds} seeds it cannot be told apart from {}.", list(&names)));
    }
    let tried = tuning.rounds.first().map_or(0, |first| first.settings.len()) as u64;
    if tried < tuning.settings_possible {
        sentences.push(format!(
            "{tried} of {} settings were tried: another may be better (--budget tries more, --knob narrows what is searched).",
            tuning.settings_possible
        ));
    }
    sentences
}

fn first(tuning: &Tuning, found: &Found) -> String {
    let objective = &tuning.objective;
    let (figure, device) = (&objective.figure, device_name(&tuning.device));
    let noun = figure_in_words(figure);
    let best = in_words(&found.best.setting);
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
            "For this load on {device}, no setting that was tried keeps the conditions. The closest is {best}, which misses {}.",
            list(&missed)
        );
    }
    let reference = in_words(&found.reference.setting);
    let now = shown(&found.best, figure);
    let is_worth = |gain: &Change| gain.is_better() && gain.factor >= 1.0 + SMALLEST_EFFECT;
    if found.best.setting == found.reference.setting {
        return format!(
            "For this load on {device}: keep {reference}: nothing that was tried is better in {noun} ({now})."
        );
    }
    if !found.reference.holds {
        let than = found.gain.map(|gain| format!(", {}", change(gain, figure.figure))).unwrap_or_default();
        return format!(
            "For this load on {device}: {best}: {noun} {now}{than} from {reference}, which does not keep the conditions."
        );
    }
    match found.gain.filter(is_worth) {
        Some(gain) => {
            let before = shown(&found.reference, figure);
            let than = change(gain, figure.figure);
            format!("For this load on {device}: change from {reference} to {best}: {noun} {before} -> {now}, {than}.")
        }
        None => format!(
            "For this load on {device}: keep {reference}: the best that was found, {best}, is not better in {noun} by 2 % beyond \
             the noise ({now})."
        ),
    }
}

/// `mq-deadline with fifo_batch=4 and nr_requests=64`.
fn in_words(setting: &Setting) -> String {
    let knobs: Vec<String> = setting.knobs().map(|(name, text)| format!("{name}={text}")).collect();
    if knobs.is_empty() { setting.scheduler.clone() } else { format!("{} with {}", setting.scheduler, list(&knobs)) }
}
