//! The comparison table as cells, for other formats such as HTML and Markdown.

use hoistway_answer::analysis::Analysis;
use hoistway_measure::Operation;

use crate::text::colour::Mark;
use crate::text::columns::Column;
use crate::text::grid::{Grid, Spacing};
use crate::text::recording::recording_lines;
use crate::text::table::{remarks, setup_line, title};

/// The table of one job, with all columns.
#[derive(Clone, Debug)]
pub struct JobCells {
    /// The job's name and number of processes.
    pub title: String,
    /// Headers of the columns of figures.
    pub headers: Vec<String>,
    /// A line for each operation and variant.
    pub lines: Vec<LineCells>,
}

/// A line of a table.
#[derive(Clone, Debug)]
pub struct LineCells {
    /// The variant.
    pub label: String,
    /// The operation.
    pub operation: Operation,
    /// The cells of figures, and whether each is among the best or the worst.
    pub cells: Vec<(String, Option<Mark>)>,
}

/// The content of a [`table`](crate::text::table()): a line about the setup, the tables, and the notices.
pub fn cells(analysis: &Analysis<'_>) -> (String, Vec<JobCells>, Vec<String>) {
    let document = analysis.document;
    let jobs = analysis.jobs.iter().filter(|job| !job.operations.is_empty()).map(|job| {
        let grid = Grid::new(analysis, job, &Column::ALL, Spacing::Wide, false);
        let lines = grid.lines.into_iter();
        JobCells {
            title: title(job),
            headers: grid.headers.iter().map(|header| header.trim_start().replace('\n', " ")).collect(),
            lines: lines
                .map(|line| LineCells { label: line.label, operation: line.operation, cells: line.cells })
                .collect(),
        }
    });
    let recording = recording_lines(document).into_iter().map(|line| line.trim_start().to_owned());
    let remarks = recording.chain(remarks(analysis, false)).collect();
    (setup_line(document), jobs.collect(), remarks)
}
