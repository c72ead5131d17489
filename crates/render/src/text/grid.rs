//! The cells of one job's table, independent of the output format.

use hoistway_answer::analysis::{Analysis, JobAnalysis, OperationAnalysis};
use hoistway_measure::Operation;

use crate::text::colour::{Mark, marks};
use crate::text::columns::Column;

/// The spacing of a table: each one is narrower than the previous one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Spacing {
    /// Two blanks between columns.
    Wide,
    /// One blank.
    Close,
    /// One blank; headers do not name a baseline whose name is longer than figures are.
    Narrow,
    /// In addition, guest and host schedulers, and figures and their spreads, are on separate lines.
    Stacked,
}

impl Spacing {
    /// The name of the baseline in headers.
    pub(crate) fn baseline(self, name: &str) -> &str {
        let characters_max = if self >= Self::Narrow { FIGURE_CHARACTERS } else { HEADER_CHARACTERS };
        if name.chars().count() > characters_max { SHORT_BASELINE_NAME } else { name }
    }

    /// The label of a row.
    fn label(self, name: &str) -> String {
        match name.split_once(GUEST_HOST_SEPARATOR) {
            Some((guest, host)) if self == Self::Stacked => format!("{guest}\nover {}", host.replace(' ', "\n  ")),
            None if self == Self::Stacked => name.replace(' ', "\n  "),
            _ => name.to_owned(),
        }
    }

    /// A figure with its spread or range.
    fn cell(self, text: String) -> String {
        // There is also a blank before the unit.
        let spread = text
            .match_indices(' ')
            .map(|(position, _)| position)
            .find(|position| text[position + 1..].starts_with(['±', '+', '(']));
        let spread = spread.filter(|_| self == Self::Stacked);
        spread.map_or_else(|| text.clone(), |position| format!("{}\n{}", &text[..position], &text[position + 1..]))
    }
}

/// Separates guest and host schedulers in the name of a row.
const GUEST_HOST_SEPARATOR: &str = "-over-";
/// The baseline with a long name, in the header of a narrow table.
pub(crate) const SHORT_BASELINE_NAME: &str = "base";
/// In headers, stands for the baselines of several setups if they have different schedulers.
const BASELINE_OF_SETUP: &str = "its place";
/// Maximum length of a header if there is room.
const HEADER_CHARACTERS: usize = 20;
/// Length of most differences.
const FIGURE_CHARACTERS: usize = 8;

/// The cells of a table.
pub(crate) struct Grid {
    /// Headers of the columns of figures.
    pub(crate) headers: Vec<String>,
    pub(crate) lines: Vec<GridLine>,
}

/// A line of a table: one operation under one variant.
pub(crate) struct GridLine {
    pub(crate) label: String,
    pub(crate) operation: Operation,
    /// The cells of figures, and whether each is best or worst.
    pub(crate) cells: Vec<(String, Option<Mark>)>,
}

impl GridLine {
    /// Height in lines of text.
    pub(crate) fn height(&self) -> usize {
        let texts = self.cells.iter().map(|(text, _)| text).chain([&self.label]);
        texts.map(|text| text.lines().count()).max().unwrap_or(1)
    }
}

impl Grid {
    pub(crate) fn new(
        analysis: &Analysis<'_>,
        job: &JobAnalysis<'_>,
        columns: &[Column],
        spacing: Spacing,
        ascii: bool,
    ) -> Self {
        let baseline = spacing.baseline(baseline(analysis, job));
        let lines = |operation| lines(analysis, operation, columns, spacing, ascii);
        Self {
            headers: columns.iter().map(|column| column.header(baseline)).collect(),
            lines: job.operations.iter().flat_map(lines).collect(),
        }
    }
}

/// The name of the baseline in headers; with several setups, each has its own baseline.
pub(crate) fn baseline<'a>(analysis: &Analysis<'a>, job: &JobAnalysis<'_>) -> &'a str {
    let baselines = job.baselines();
    let [first, others @ ..] = &baselines[..] else { return "" };
    let first = &analysis.variants[*first];
    match others {
        [] => first.name(),
        _ if others.iter().all(|index| analysis.variants[*index].scheduler() == first.scheduler()) => first.scheduler(),
        _ => BASELINE_OF_SETUP,
    }
}

fn lines(
    analysis: &Analysis<'_>,
    operation: &OperationAnalysis<'_>,
    columns: &[Column],
    spacing: Spacing,
    ascii: bool,
) -> Vec<GridLine> {
    let line = |variant: usize| GridLine {
        label: spacing.label(&analysis.variants[variant].label),
        operation: operation.operation,
        cells: Vec::with_capacity(columns.len()),
    };
    let mut lines: Vec<GridLine> = operation.rows.iter().map(|row| line(row.variant)).collect();
    for column in columns {
        let cell = |row| column.cell(operation.operation, row, operation.baseline_of(row), ascii);
        let texts: Vec<String> = operation.rows.iter().map(cell).collect();
        let marks = column_marks(operation, *column, &texts);
        for ((line, text), mark) in lines.iter_mut().zip(texts).zip(marks) {
            line.cells.push((spacing.cell(text), mark));
        }
    }
    lines
}

/// The marks of a column. With repeats only differences beyond the noise count.
fn column_marks(operation: &OperationAnalysis<'_>, column: Column, texts: &[String]) -> Vec<Option<Mark>> {
    let rows = &operation.rows;
    let Some(figure) = column.judged().filter(|figure| figure.is_of(operation.operation)) else {
        return vec![None; rows.len()];
    };
    if rows.iter().all(|row| row.samples().len() == 1) {
        let values: Vec<f64> = rows.iter().map(|row| row.estimate(figure).mean).collect();
        return marks(&values, texts, figure.higher_is_better());
    }
    let ranking = operation.ranking(figure);
    let mark = |index: usize| match index {
        index if ranking.is_best(index) => Some(Mark::Best),
        index if ranking.is_worst(index) => Some(Mark::Worst),
        _ => None,
    };
    (0..rows.len()).map(mark).collect()
}
