//! Lays out a table as lines: aligned cells, a line under the header, no frame.

use std::ops::Range;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::text::colour::{Mark, paint};
use crate::text::grid::{Grid, GridLine, Spacing};

/// Columns before the figures: the scheduler and the operation.
const NAME_COLUMNS: usize = 2;

/// A table laid out.
pub(crate) struct Layout {
    /// Header, separator and rows, without blanks at the end.
    lines: Vec<String>,
    /// For each line of the rows, the ranges of characters to colour, and their marks.
    marks: Vec<Vec<(Range<usize>, Mark)>>,
}

impl Layout {
    /// Lays out the cells of a grid made for this spacing.
    pub(crate) fn new(grid: &Grid, spacing: Spacing, ascii: bool) -> Self {
        let gap = if spacing == Spacing::Wide { 2 } else { 1 };
        let mut table = Table::new();
        let dash = if ascii { '-' } else { '─' };
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill(dash)));
        table.set_header(["\nscheduler", ""].into_iter().chain(grid.headers.iter().map(String::as_str)));
        for line in &grid.lines {
            let names = [line.label.as_str(), line.operation.name()];
            table.add_row(names.into_iter().chain(line.cells.iter().map(|(text, _)| text.as_str())));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let is_last = index == NAME_COLUMNS + grid.headers.len() - 1;
            column.set_padding((0, if is_last { 0 } else { gap }));
            if index >= NAME_COLUMNS {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let spans = spans(&table, gap);
        let marks_of_lines = |line: &GridLine| {
            let marks = line.cells.iter().zip(&spans).filter_map(|((_, mark), span)| Some((span.clone(), (*mark)?)));
            let mut line_marks = vec![marks.collect()];
            line_marks.resize(line.height(), Vec::new());
            line_marks
        };
        Self { lines, marks: grid.lines.iter().flat_map(marks_of_lines).collect() }
    }

    /// Width of the longest line in characters.
    pub(crate) fn width(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The table as text.
    pub(crate) fn text(&self, colour: bool) -> String {
        let first_row = self.lines.len() - self.marks.len();
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            match index.checked_sub(first_row) {
                Some(row) if colour => text += &paint(line, &self.marks[row]),
                _ => text += line,
            }
            text.push('\n');
        }
        text
    }
}

/// The characters of a line that each column of figures occupies.
fn spans(table: &Table, gap: u16) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut spans = Vec::new();
    for width in table.column_max_content_widths() {
        let end = start + usize::from(width);
        spans.push(start..end);
        start = end + usize::from(gap);
    }
    spans.split_off(NAME_COLUMNS)
}
