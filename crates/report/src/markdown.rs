//! The comparison table in Markdown.

use hoistway_results::ResultsDocument;
use hoistway_results::comparison::Comparison;

use crate::advice::advice;
use crate::colour::Mark;
use crate::columns::Column;
use crate::grid::{Grid, Spacing};
use crate::table::{USUAL_WIDTH, remarks, set_up, title};

/// The comparison in Markdown (GitHub's tables): what [`table`](crate::table()) shows, the best figures of each column
/// bold, the worst in italics.
pub fn markdown(document: &ResultsDocument) -> String {
    let comparison = Comparison::of(document);
    let mut text = format!("{}\n", escaped(&set_up(document)));
    for job in comparison.jobs.iter().filter(|job| !job.operations.is_empty()) {
        let grid = Grid::new(&comparison, job, &Column::ALL, Spacing::Wide, false);
        text += &format!("\n**{}**\n\n", escaped(&title(job)));
        let headers: Vec<_> = grid.headers.iter().map(|header| header.trim_start().replace('\n', " ")).collect();
        text += &format!("| scheduler | | {} |\n", headers.join(" | "));
        text += &format!("| --- | --- |{}\n", " ---: |".repeat(grid.headers.len()));
        for line in &grid.lines {
            text += &format!("| {} | {} |", escaped(&line.label), line.operation.name());
            for (cell, mark) in &line.cells {
                text += &match mark {
                    Some(Mark::Best) => format!(" **{cell}** |"),
                    Some(Mark::Worst) => format!(" *{cell}* |"),
                    None => format!(" {cell} |"),
                };
            }
            text.push('\n');
        }
    }
    text.push('\n');
    for line in remarks(document, &comparison, false) {
        text += &format!("- {}\n", escaped(&line));
    }
    if !document.conclusion.is_empty() {
        text += &format!("\n{}\n", escaped(&document.conclusion.join(" ")));
    }
    let advice = advice(document, USUAL_WIDTH);
    if !advice.is_empty() {
        // Nothing in it begins a line with backticks.
        text += &format!("\n```{advice}```\n");
    }
    text
}

/// Text of which no character means anything: names of jobs and files are whatever users wrote.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
            '\\' | '|' | '*' | '_' | '`' | '<' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
