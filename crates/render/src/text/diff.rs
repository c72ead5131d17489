//! A diff of two result documents: tables for terminals and for Markdown, and a conclusion.

use hoistway_answer::analysis::Estimate;
use hoistway_answer::diff::{Diff, FigureChange, Outcome};
use serde_json::Value;

use crate::text::columns::value;
use crate::text::lines::lines;
use crate::text::markdown::escaped;
use crate::text::words::list;
use crate::text::wrap::wrap_hanging;
use hoistway_measure::units;

/// Maximum inputs listed individually.
const INPUTS_MAX: usize = 20;
/// Maximum characters of an input's value.
const VALUE_MAX: usize = 60;

const HEADER: [&str; 6] = ["row", "figure", "before", "after", "change", ""];

/// The diff as text of at most this many columns. With `all`, unchanged figures are included.
#[must_use]
pub fn diff(diff: &Diff, all: bool, width: usize) -> String {
    let mut text = String::new();
    for line in inputs(diff) {
        text += &wrap_hanging(&line, width, 0, 2);
    }
    let rows = rows(diff, all);
    if !rows.is_empty() {
        text.push('\n');
        text += &lines(HEADER.map(str::to_owned).to_vec(), rows);
    }
    text.push('\n');
    for sentence in diff_conclusion(diff) {
        text += &wrap_hanging(&sentence, width, 0, 2);
    }
    text
}

/// The diff in Markdown.
#[must_use]
pub fn diff_markdown(diff: &Diff, all: bool) -> String {
    let mut text: String = inputs(diff).iter().map(|line| format!("- {}\n", escaped(line))).collect();
    let rows = rows(diff, all);
    if !rows.is_empty() {
        text += &format!("\n| {} |\n| --- | --- | ---: | ---: | ---: | --- |\n", HEADER.join(" | "));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        }
    }
    text + &format!("\n{}\n", escaped(&diff_conclusion(diff).join(" ")))
}

fn inputs(diff: &Diff) -> Vec<String> {
    let mut lines: Vec<String> = diff
        .inputs
        .iter()
        .take(INPUTS_MAX)
        .map(|change| format!("{}: {} -> {}", change.input, value_text(&change.before), value_text(&change.after)))
        .collect();
    if diff.inputs.len() > INPUTS_MAX {
        lines.push(format!("... and {} more inputs", diff.inputs.len() - INPUTS_MAX));
    }
    if lines.is_empty() {
        lines.push("The inputs are the same.".to_owned());
    }
    for (labels, which) in [(&diff.only_before, "first"), (&diff.only_after, "second")] {
        if !labels.is_empty() {
            lines.push(format!("Only the {which} document has {}.", list(labels)));
        }
    }
    lines
}

fn value_text(value: &Value) -> String {
    let text = match value {
        Value::Null => "(nothing)".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= VALUE_MAX { text } else { text.chars().take(VALUE_MAX).chain("...".chars()).collect() }
}

fn is_listed(change: &FigureChange) -> bool {
    matches!(change.outcome, Outcome::Better | Outcome::Worse | Outcome::NoInterval)
}

fn rows(diff: &Diff, all: bool) -> Vec<Vec<String>> {
    diff.figures.iter().filter(|change| all || is_listed(change)).map(row).collect()
}

fn row(change: &FigureChange) -> Vec<String> {
    let figure = change.figure.figure;
    let spread = |spread: Estimate| {
        let text = value(figure, spread.mean, false);
        match spread.half_width {
            Some(half) if spread.mean > 0.0 => format!("{text} {}", units::spread(half / spread.mean, false)),
            _ => text,
        }
    };
    let outcome = match change.outcome {
        Outcome::Same => "same",
        Outcome::Better => "better",
        Outcome::Worse => "WORSE",
        Outcome::Small => "small",
        Outcome::WithinNoise => "within the noise",
        Outcome::NoInterval => "no interval",
    };
    vec![
        change.label.clone(),
        change.figure.to_string(),
        spread(change.before),
        spread(change.after),
        change.change.map_or_else(|| "-".to_owned(), |change| crate::text::conclusion::change(change, figure)),
        outcome.to_owned(),
    ]
}

/// The conclusion in sentences.
#[must_use]
pub fn diff_conclusion(diff: &Diff) -> Vec<String> {
    let count = |outcome| diff.figures.iter().filter(|change| change.outcome == outcome).count();
    let total = diff.figures.len();
    if total == 0 {
        return vec!["The documents have no figure in common.".to_owned()];
    }
    if count(Outcome::Same) == total {
        return vec![format!("All {total} figures are bit-identical.")];
    }
    let percent = diff.smallest_effect * 100.0;
    let (better, worse) = (count(Outcome::Better), count(Outcome::Worse));
    let mut sentences = vec![match (better, worse) {
        (0, 0) => format!("Of {total} figures none has changed by {percent} % or more beyond the noise."),
        _ => format!(
            "Of {total} figures {better} got better and {worse} got worse, by {percent} % or more and beyond the noise."
        ),
    }];
    let without_interval = count(Outcome::NoInterval);
    if without_interval > 0 {
        sentences.push(format!(
            "{without_interval} differ by as much but have no confidence interval, as for largest latencies and single runs (use --repeat 3): \
             they may be noise."
        ));
    }
    if diff.figures.iter().any(|change| !change.paired) {
        sentences.push("The seeds differ, so the documents were compared as independent samples.".to_owned());
    }
    sentences
}
