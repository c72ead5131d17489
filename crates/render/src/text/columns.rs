//! The columns of figures in a comparison table.

use hoistway_answer::Figure;
use hoistway_answer::analysis::{Range, Row};
use hoistway_answer::document::is_cut_off;
use hoistway_measure::Operation;

use hoistway_measure::units;

/// A column of figures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Of(Figure),
    /// The difference from the baseline.
    BaselineDifference(Figure),
    /// The duration of a recorded job's work.
    Done,
}

impl Column {
    /// All columns except [`Column::Done`].
    pub(crate) const ALL: [Self; 9] = [
        Self::Of(Figure::Iops),
        Self::BaselineDifference(Figure::Iops),
        Self::Of(Figure::Bandwidth),
        Self::Of(Figure::Mean),
        Self::BaselineDifference(Figure::Mean),
        Self::Of(Figure::P50),
        Self::Of(Figure::P99),
        Self::Of(Figure::P99_9),
        Self::Of(Figure::Max),
    ];

    /// Inserts [`Column::Done`] after the rates.
    pub(crate) fn with_done(columns: &[Self]) -> Vec<Self> {
        let (rates, others) = columns.split_at(2);
        [rates, &[Self::Done], others].concat()
    }

    /// The columns of the default table.
    pub(crate) const MAIN: [Self; 6] = [
        Self::Of(Figure::Iops),
        Self::BaselineDifference(Figure::Iops),
        Self::Of(Figure::Bandwidth),
        Self::Of(Figure::Mean),
        Self::Of(Figure::P99),
        Self::Of(Figure::Max),
    ];

    /// Columns that are dropped from a table that is too wide, in this order.
    pub(crate) const OPTIONAL_COLUMNS: [Self; 7] = [
        Self::Of(Figure::P50),
        Self::Of(Figure::Bandwidth),
        Self::Of(Figure::P99_9),
        Self::BaselineDifference(Figure::Mean),
        Self::Of(Figure::Max),
        Self::Done,
        Self::BaselineDifference(Figure::Iops),
    ];

    /// Number of [optional columns](Self::OPTIONAL_COLUMNS) that are dropped before a table is stacked.
    pub(crate) const BEFORE_STACKING: usize = 6;

    /// The header in two lines, so that all headers end at the separator.
    pub(crate) fn header(self, baseline: &str) -> String {
        let name = match self {
            Self::Of(Figure::Iops) => "\nIOPS",
            Self::Of(Figure::Bandwidth) => "\nbandwidth",
            Self::Of(Figure::Mean) => "mean\nlatency",
            Self::Of(Figure::P50) => "\np50",
            Self::Of(Figure::P95) => "\np95",
            Self::Of(Figure::P99) => "\np99",
            Self::Of(Figure::P99_9) => "\np99.9",
            Self::Of(Figure::Max) => "\nmax",
            Self::Done => "done\nin",
            Self::BaselineDifference(_) => return format!("vs\n{baseline}"),
        };
        name.to_owned()
    }

    /// The name of the column outside of its table.
    pub(crate) fn name(self, baseline: &str) -> String {
        match self {
            Self::BaselineDifference(Figure::Mean) => format!("latency vs {baseline}"),
            Self::BaselineDifference(Figure::Iops) => format!("IOPS vs {baseline}"),
            column => column.header(baseline).replace('\n', " ").trim().to_owned(),
        }
    }

    /// The cell of a row in this column.
    pub(crate) fn cell(self, operation: Operation, row: &Row<'_>, baseline: Option<&Row<'_>>, ascii: bool) -> String {
        match self {
            Self::Of(figure) if !figure.is_of(operation) => "-".to_owned(),
            Self::Of(figure) => {
                let estimate = row.estimate(figure);
                let is_bound = row.samples().any(|sample| sample.is_at_least(figure));
                let shown = value(figure, estimate.mean, ascii);
                let value =
                    if is_bound && !is_at_least(figure, estimate.mean) { at_least(shown, ascii) } else { shown };
                // The IOPS column already shows this interval.
                let has_interval = figure != Figure::Bandwidth && estimate.mean > 0.0;
                if let Some(range) = row.range(figure) {
                    return format!("{value} ({})", range_text_of_figure(figure, range, ascii));
                }
                match estimate.half_width.filter(|_| has_interval && !is_bound) {
                    Some(half_width) => format!("{value} {}", units::spread(half_width / estimate.mean, ascii)),
                    None => value,
                }
            }
            Self::Done => row.done_seconds.map_or_else(|| "-".to_owned(), units::seconds),
            Self::BaselineDifference(figure) => {
                let difference = baseline.and_then(|baseline| row.difference(baseline, figure));
                let is_repeated = [Some(row), baseline].into_iter().flatten().any(|row| row.samples().len() > 1);
                let shown = difference.and_then(|difference| {
                    let text = units::difference(difference.relative?);
                    let is_certain = !is_repeated || difference.is_significant() == Some(true);
                    Some(if is_certain { text } else { format!("({text})") })
                });
                shown.unwrap_or_else(|| "-".to_owned())
            }
        }
    }

    /// The figure that is marked; `None` for a column without marks.
    pub(crate) fn judged(self) -> Option<Figure> {
        match self {
            Self::Of(figure) => Some(figure),
            Self::BaselineDifference(_) | Self::Done => None,
        }
    }
}

/// Both ends of a range; the unit is written once if both ends share it.
fn range_text_of_figure(figure: Figure, range: Range, ascii: bool) -> String {
    let (from, to) = (value(figure, range.from, ascii), value(figure, range.to, ascii));
    match (from.rsplit_once(' '), to.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other_unit))) if unit == other_unit => format!("{number} to {to}"),
        _ => format!("{from} to {to}"),
    }
}

/// A figure with its unit.
pub(crate) fn value(figure: Figure, value: f64, ascii: bool) -> String {
    match figure {
        Figure::Iops => units::rate(value),
        Figure::Bandwidth => units::bandwidth(value),
        _ if is_at_least(figure, value) => at_least(units::latency(value, ascii), ascii),
        _ => units::latency(value, ascii),
    }
}

fn at_least(value: String, ascii: bool) -> String {
    format!("{}{value}", if ascii { ">= " } else { "≥ " })
}

/// Whether the histogram only gives a lower bound of a percentile.
fn is_at_least(figure: Figure, value: f64) -> bool {
    matches!(figure, Figure::P50 | Figure::P95 | Figure::P99 | Figure::P99_9) && is_cut_off(value as u64)
}
