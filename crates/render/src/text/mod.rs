//! Renders results as text: tables, conclusions, advice, CSV, Markdown and JSON.
//!
//! Used by: `html`; crates `hoistway`, `evidence`, `terminal`.
//! Tests: `crates/render/src/text/` (in its files), `crates/render/tests/table.rs`, `crates/render/tests/conclusion.rs`.

mod advice;
mod aligned;
mod cells;
mod colour;
mod columns;
mod conclusion;
mod csv;
mod diff;
mod failures;
mod grid;
mod layout;
mod line;
mod lines;
mod markdown;
mod recording;
mod table;
mod tuning;
mod verification;
mod words;
mod wrap;

use hoistway_answer::{Figure, ResultsDocument};

pub use self::csv::csv;
pub use aligned::aligned;
pub use cells::{JobCells, LineCells, cells};
pub use colour::Mark;
pub use conclusion::{DOUBT, conclusion, figure_in_words, shift_in_words};
pub use diff::{diff, diff_conclusion, diff_markdown};
pub use line::run_line;
pub use markdown::markdown;
pub use recording::recording_lines;
pub use table::{Style, table};
pub(crate) use tuning::cgroup_commands;
pub use tuning::{TuningCells, TuningTable, standing_in_words, tuning, tuning_cells, tuning_conclusion, tuning_round};
pub use verification::verification;
pub use wrap::{wrap_hanging, wrapped};

/// A value of a figure with its unit, in three digits.
pub fn figure_value(figure: Figure, value: f64) -> String {
    columns::value(figure, value, false)
}

/// The document as JSON for storage and other programs: indented, with a newline at the end.
///
/// [`ResultsDocument::from_json`] reads it back. Numbers that JSON does not support (NaN, infinity) become null.
pub fn json(document: &ResultsDocument) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a document's keys are all strings");
    text.push('\n');
    text
}
