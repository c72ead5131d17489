//! The comparison table in Markdown.

use hoistway_answer::Analysis;

use crate::text::advice::advice;
use crate::text::cells::cells;
use crate::text::colour::Mark;
use crate::text::table::DEFAULT_WIDTH;

/// The comparison in Markdown (GitHub's tables): the content of [`table`](crate::text::table()), with the best figures of
/// each column in bold, and the worst in italics.
pub fn markdown(analysis: &Analysis<'_>) -> String {
    let document = analysis.document;
    let (set_up, jobs, remarks) = cells(analysis);
    let mut text = format!("{}\n", escaped(&set_up));
    for job in &jobs {
        text += &format!("\n**{}**\n\n", escaped(&job.title));
        text += &format!("| scheduler | | {} |\n", job.headers.join(" | "));
        text += &format!("| --- | --- |{}\n", " ---: |".repeat(job.headers.len()));
        for line in &job.lines {
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
    for line in &remarks {
        text += &format!("- {}\n", escaped(line));
    }
    if !document.conclusion.is_empty() {
        text += &format!("\n{}\n", escaped(&document.conclusion.join(" ")));
    }
    let advice = advice(analysis, DEFAULT_WIDTH);
    if !advice.is_empty() {
        // No line of it begins with backticks.
        text += &format!("\n```{advice}```\n");
    }
    text
}

/// Text with all Markdown characters escaped: names of jobs and files may contain anything.
pub(crate) fn escaped(text: &str) -> String {
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
