//! The result of a search: tables and sentences.
//!
//! Used by: `html`, `text`; crate `hoistway`.
//! Tests: `crates/render/tests/tuning.rs`.

mod cells;
mod sentences;

use hoistway_answer::advice::CgroupWrites;
use hoistway_answer::tuning::Tuning;

use crate::text::lines::lines;
use crate::text::wrap::wrap_hanging;

pub use cells::{TuningCells, TuningTable, standing_in_words, tuning_cells, tuning_round};
use sentences::advises_change;
pub use sentences::tuning_conclusion;

/// Maximum rows of a table.
const ROWS_MAX: usize = 12;

/// The search as text: its setup, the last round, the front, the effects, the conclusion.
#[must_use]
pub fn tuning(tuning: &Tuning, width: usize) -> String {
    let cells = tuning_cells(tuning);
    // With a single round the front is part of the table above.
    let front = cells.front.filter(|_| tuning.rounds.len() > 1);
    let mut text = wrap_hanging(&cells.set_up, width, 0, 2);
    for mut table in [cells.finalists, front, cells.effects].into_iter().flatten() {
        let more = table.rows.len().saturating_sub(ROWS_MAX);
        table.rows.truncate(ROWS_MAX);
        text += &format!("\n{}\n{}", table.title, lines(table.headers, table.rows));
        if more > 0 {
            text += &format!("({more} more)\n");
        }
    }
    text.push('\n');
    for line in tuning.notices.iter().chain(&tuning.conclusion) {
        text += &wrap_hanging(line, width, 0, 2);
    }
    text + &cgroup_commands(tuning)
}

/// The commands for files of cgroups, device by device; empty if none are to be changed.
pub(crate) fn cgroup_commands(tuning: &Tuning) -> String {
    if !tuning.found.as_ref().is_some_and(advises_change) {
        return String::new();
    }
    tuning.cgroup_writes.iter().map(commands_for_device).collect()
}

fn commands_for_device(writes: &CgroupWrites) -> String {
    let indented = |lines: &[String]| lines.iter().map(|line| format!("    {line}\n")).collect::<String>();
    format!(
        "\nFiles of cgroups for {}, until the next boot, as root:\n{}To undo:\n{}",
        writes.device,
        indented(&writes.now),
        indented(&writes.back)
    )
}
