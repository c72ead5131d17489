//! The page of a search.

use crate::text::{TuningTable, cgroup_commands, shift_in_words, tuning_cells, tuning_conclusion, tuning_round};
use hoistway_answer::tuning::{Candidates, Round, Tuning};
use serde_json::{Value, json};

use crate::html::front::Front;
use crate::html::template::{
    CHART_LIBRARY_LICENCE, CHARTS, STYLES, THEME, UNITS, UPLOT, embedded, pretty, render_page,
};

/// The page of a search's document: a single file without network access.
///
/// # Panics
/// Never: its template is built in, and a test renders it.
pub fn tuned_html(tuning: &Tuning) -> String {
    render_page("tuned.html", content(tuning))
}

fn content(tuning: &Tuning) -> Value {
    let cells = tuning_cells(tuning);
    let front = Front::of(tuning);
    let sentences = tuning_conclusion(tuning);
    let (lead, rest) = sentences.split_at(sentences.len().min(2));
    let found = tuning.found.as_ref();
    let name =
        |result: Option<&hoistway_answer::tuning::SettingResult>| result.map(|result| result.setting.to_string());
    let losses = found
        .and_then(|found| found.losses.as_ref())
        .filter(|_| found.is_some_and(|found| found.best.setting != found.reference.setting));
    json!({
        "version": tuning.version,
        "title": tuning.job_file,
        "set_up": cells.set_up,
        "lead": lead,
        "rest": rest,
        "commands": cgroup_commands(tuning).trim(),
        "first": tuning.rounds.first().map(tuning_round),
        "has_front": front.figures.len() > 1,
        "is_default_there": found.is_none() || front.points.iter().any(|point| point.is_default),
        "pointed": front.points.iter().find(|point| point.is_best).map_or("", |best| &*best.words),
        "front": cells.front.as_ref().map(|front| table(front, &[])),
        "finalists": cells.finalists.as_ref().map(|finalists| table(finalists, &[])),
        "effects": cells.effects.as_ref().map(|effects| table(effects, &cells.shares)),
        "sure": certainty_lines(tuning),
        "best": name(found.map(|found| &found.best)),
        "reference": name(found.map(|found| &found.reference)),
        "has_losses": losses.is_some(),
        "losses": losses.map(|losses| losses.iter().map(shift_in_words).collect::<Vec<_>>()),
        "command": tuning.command,
        "seed": tuning.seed,
        "kernel": tuning.kernel,
        "cpus": tuning.cpus,
        "objective": tuning.objective,
        "tunables": tuning.tunables.iter().map(tunable).collect::<Vec<_>>(),
        "job_text": tuning.job_text,
        "device": pretty(&tuning.device),
        "host": pretty(&tuning.host),
        "search": Some(&tuning.search).filter(|search| !search.is_null()).map(pretty),
        "remarks": tuning.notices,
        "data": embedded(&front),
        "styles": STYLES,
        "scripts": [UPLOT, THEME, UNITS, CHARTS, include_str!("../../assets/front.js"), include_str!("../../assets/tuned.js")],
        "chart_library_licence": CHART_LIBRARY_LICENCE,
    })
}

/// A table; with these shares as bars in the second column of its rows.
fn table(table: &TuningTable, shares: &[f64]) -> Value {
    let row = |(number, row): (usize, &Vec<String>)| -> Vec<Value> {
        let cells = row.iter().enumerate().map(|(column, text)| {
            let share = shares.get(number).filter(|_| column == 1);
            json!({"text": text, "bar": share.map(|share| json!({"width": share * 100.0}))})
        });
        cells.collect()
    };
    let rows: Vec<Vec<Value>> = table.rows.iter().enumerate().map(row).collect();
    json!({"title": capitalised(&table.title), "headers": table.headers, "rows": rows})
}

/// A text as a sentence begins.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Lines about the certainty of the result.
fn certainty_lines(tuning: &Tuning) -> Vec<String> {
    let round = |(round, number): (&Round, usize)| format!("Round {number}: {}.", tuning_round(round));
    let mut lines: Vec<String> = tuning.rounds.iter().zip(1..).map(round).collect();
    lines.push(match tuning.found.as_ref().map(|found| (&found.undecided[..], found.best.seeds)) {
        None => "There was no last round.".to_owned(),
        Some(([], _)) => {
            "The best differs, beyond the noise, from every other finalist that meets the conditions and behaves differently."
                .to_owned()
        }
        Some((undecided, seeds)) => {
            let names: Vec<String> = undecided.iter().map(ToString::to_string).collect();
            format!("Not different from the best beyond the noise after {seeds} seeds: {}.", names.join("; "))
        }
    });
    let tried = tuning.rounds.first().map_or(0, |first| first.settings.len());
    lines.push(format!("{tried} of {} settings were tried, in {} runs.", tuning.settings_possible, tuning.runs.len()));
    lines
}

fn tunable(tunable: &Candidates) -> String {
    let name = if tunable.file() == tunable.name {
        format!("{} under {}", tunable.name, tunable.scheduler)
    } else {
        format!("{}.{}", tunable.scheduler, tunable.name)
    };
    format!("{name}: the default, {}", tunable.texts.join(", "))
}
