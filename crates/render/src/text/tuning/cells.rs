//! The tables of a search as cells, for other formats such as HTML.

use hoistway_answer::FigureName;
use hoistway_answer::tuning::{Budget, Round, SettingEffect, SettingResult, Tuning};

use crate::text::columns::value;
use crate::text::conclusion::figure_in_words;
use crate::text::words::device_name;
use hoistway_measure::units;

/// Tunables that explain a smaller share of the variance are left out.
const SHARE_MIN: f64 = 0.01;
/// Maximum number of listed tunables.
const EFFECTS_MAX: usize = 12;

/// A table.
#[derive(Clone, Debug)]
pub struct TuningTable {
    /// The table's title.
    pub title: String,
    /// Headers of the columns.
    pub headers: Vec<String>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// The content of the text of a search.
#[derive(Clone, Debug)]
pub struct TuningCells {
    /// The setup of the search.
    pub set_up: String,
    /// The last round, best first.
    pub finalists: Option<TuningTable>,
    /// The settings of the first round that no other dominates, if there are several.
    pub front: Option<TuningTable>,
    /// The tunables that mattered, largest effect first.
    pub effects: Option<TuningTable>,
    /// The share of the variance that the tunable in each row of `effects` explains, 0 to 1.
    pub shares: Vec<f64>,
}

/// The tables of a search.
#[must_use]
pub fn tuning_cells(tuning: &Tuning) -> TuningCells {
    let finalists = tuning.rounds.last().map(|last| {
        let title = format!("the last round, {}, the best first", tuning_round(last));
        table(tuning, title, &last.settings, true)
    });
    let first = tuning.rounds.first().filter(|_| tuning.front.len() > 1);
    let front = first.map(|first| {
        let title = format!("settings that no other beats in every figure, of {}", tuning_round(first));
        table(tuning, title, &tuning.front, false)
    });
    let shown_effects: Vec<&SettingEffect> =
        tuning.effects.iter().filter(|effect| effect.share >= SHARE_MIN).take(EFFECTS_MAX).collect();
    let effects = (!shown_effects.is_empty()).then(|| effects(tuning, &shown_effects));
    TuningCells {
        set_up: setup_line(tuning),
        finalists,
        front,
        effects,
        shares: shown_effects.iter().map(|effect| effect.share).collect(),
    }
}

fn effects(tuning: &Tuning, shown_effects: &[&SettingEffect]) -> TuningTable {
    let row = |effect: &&SettingEffect| {
        let prefix = effect.scheduler.as_ref().map(|name| format!("{name}.")).unwrap_or_default();
        vec![
            format!("{prefix}{}", effect.tunable),
            format!("{:.0} %", effect.share * 100.0),
            effect.best.clone(),
            effect.worst.clone(),
            format!("{} times", units::times(effect.factor)),
            effect.settings.to_string(),
        ]
    };
    TuningTable {
        title: format!(
            "tunables by their effect on the {}, each over the settings that have it",
            figure_in_words(&tuning.objective.figure)
        ),
        headers: ["tunable", "of the variance", "best", "worst", "between them", "settings"]
            .map(str::to_owned)
            .to_vec(),
        rows: shown_effects.iter().map(row).collect(),
    }
}

fn setup_line(tuning: &Tuning) -> String {
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

/// A round: `9 settings in runs of 0.50 s with 2 seeds`.
#[must_use]
pub fn tuning_round(round: &Round) -> String {
    let seeds = round.settings.iter().map(|result| result.seeds).max().unwrap_or(0);
    let runs = match round.runtime_ns {
        Some(ns) => format!("runs of {}", units::seconds(ns as f64 / 1e9)),
        None => "whole runs".to_owned(),
    };
    format!("{} settings in {runs} with {seeds} seeds", round.settings.len())
}

/// A table of settings, with or without their differences from the best.
fn table(tuning: &Tuning, title: String, results: &[SettingResult], with_differences: bool) -> TuningTable {
    let figures = tuning.objective.figures();
    let mut headers = vec!["setting".to_owned()];
    headers.extend(figures.iter().map(ToString::to_string));
    if with_differences {
        headers.push("vs best".to_owned());
    }
    let has_conditions = !tuning.objective.conditions.is_empty();
    if has_conditions {
        headers.push("conditions".to_owned());
    }
    let row = |result: &SettingResult| {
        let mut row = vec![result.setting.to_string()];
        row.extend(figures.iter().map(|name| shown(result, name)));
        if with_differences {
            row.push(difference_from_best(result));
        }
        if has_conditions {
            row.push(if result.holds { "kept" } else { "missed" }.to_owned());
        }
        row
    };
    TuningTable { title, headers, rows: results.iter().map(row).collect() }
}

/// A setting with its figures, and whether it meets the conditions: `none: p99 read latency of a 1.20 ms ±1.0%; conditions kept`.
#[must_use]
pub fn standing_in_words(tuning: &Tuning, result: &SettingResult) -> String {
    let figures = tuning.objective.figures().into_iter();
    let figures = figures.map(|name| format!("{} {}", figure_in_words(name), shown(result, name)));
    let conditions = match (tuning.objective.conditions.is_empty(), result.holds) {
        (true, _) => "",
        (false, true) => "; conditions kept",
        (false, false) => "; conditions missed",
    };
    format!("{}: {}{conditions}", result.setting, figures.collect::<Vec<_>>().join(", "))
}

/// The factor of the objective relative to the best setting; in brackets if it is within the noise.
fn difference_from_best(result: &SettingResult) -> String {
    let Some(change) = result.beside_best.filter(|change| change.factor != 1.0) else { return "-".to_owned() };
    let text = format!("{} times", units::times(change.factor));
    if change.is_better() || change.is_worse() { text } else { format!("({text})") }
}

/// A figure with its interval.
pub(super) fn shown(result: &SettingResult, name: &FigureName) -> String {
    let Some(spread) = result.figures.get(name) else { return "-".to_owned() };
    let text = value(name.figure, spread.mean, false);
    match spread.half_width {
        Some(half) if spread.mean > 0.0 => format!("{text} {}", units::spread(half / spread.mean, false)),
        _ => text,
    }
}
