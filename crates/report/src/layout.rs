//! Lines of a table: cells aligned, a line under the header, no frame.

use std::ops::Range;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::colour::{Mark, marks, paint};
use crate::columns::Column;
use crate::comparison::Row;

/// Columns before those of figures: the scheduler and the direction.
const NAME_COLUMNS: usize = 2;

/// A table laid out.
pub(crate) struct Layout {
    /// Header, separator and rows, without blanks at the end.
    lines: Vec<String>,
    /// Colours of every row, with the characters that the cells take.
    marks: Vec<Vec<(Range<usize>, Mark)>>,
}

impl Layout {
    /// Lays out the rows, with `gap` blanks between columns.
    pub(crate) fn new(rows: &[Row], columns: &[Column], gap: u16, ascii: bool) -> Self {
        let cells: Vec<Vec<String>> =
            columns.iter().map(|column| rows.iter().map(|row| column.cell(row, ascii)).collect()).collect();
        let mut table = Table::new();
        let dash = if ascii { '-' } else { '─' };
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill(dash)));
        let headers = columns.iter().map(|column| column.header(ascii));
        table.set_header(["\nscheduler", ""].into_iter().chain(headers));
        for (index, row) in rows.iter().enumerate() {
            let names = [row.label.as_str(), row.direction.name()];
            table.add_row(names.into_iter().chain(cells.iter().map(|column| column[index].as_str())));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let is_last = index == NAME_COLUMNS + columns.len() - 1;
            column.set_padding((0, if is_last { 0 } else { gap }));
            if index >= NAME_COLUMNS {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned()).collect();
        Self { lines, marks: row_marks(rows, columns, &cells, &spans(&table, gap)) }
    }

    /// Characters of the widest line.
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

/// The characters of a line that each column of figures takes.
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

/// Best and worst of each column, among the rows of one direction, sorted by row.
fn row_marks(
    rows: &[Row],
    columns: &[Column],
    cells: &[Vec<String>],
    spans: &[Range<usize>],
) -> Vec<Vec<(Range<usize>, Mark)>> {
    let mut by_row = vec![Vec::new(); rows.len()];
    for ((column, cells), span) in columns.iter().zip(cells).zip(spans) {
        let mut first = 0;
        for direction in rows.chunk_by(|a, b| a.direction == b.direction) {
            let judged: Option<Vec<(f64, bool)>> = direction.iter().map(|row| column.judged(row)).collect();
            let Some(judged) = judged else { break };
            let values: Vec<f64> = judged.iter().map(|(value, _)| *value).collect();
            let shown = &cells[first..first + direction.len()];
            for (index, mark) in marks(&values, shown, judged[0].1).into_iter().enumerate() {
                by_row[first + index].extend(mark.map(|mark| (span.clone(), mark)));
            }
            first += direction.len();
        }
    }
    by_row
}
