//! The columns of figures in a comparison table.

use hoistway_results::Figure;
use hoistway_results::comparison::{JobComparison, Row};

use crate::units;

/// A column of figures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Of(Figure),
    /// The difference from the baseline.
    Versus(Figure),
    /// CPU time for each I/O of the job.
    Cpu,
}

impl Column {
    const ALL: [Self; 10] = [
        Self::Of(Figure::Iops),
        Self::Versus(Figure::Iops),
        Self::Of(Figure::Bandwidth),
        Self::Of(Figure::Mean),
        Self::Versus(Figure::Mean),
        Self::Of(Figure::P50),
        Self::Of(Figure::P99),
        Self::Of(Figure::P99_9),
        Self::Of(Figure::Max),
        Self::Cpu,
    ];

    /// The columns of a job's table: all for which there is something to show.
    pub(crate) fn of(job: &JobComparison) -> Vec<Self> {
        let mut rows = job.directions.iter().flat_map(|direction| &direction.rows);
        let has_cpu = rows.any(|row| row.cpu_us_per_io.is_some());
        Self::ALL.into_iter().filter(|&column| column != Self::Cpu || has_cpu).collect()
    }

    /// What is left out of a table that is too wide, first things first.
    pub(crate) const DISPENSABLE: [Self; 7] = [
        Self::Cpu,
        Self::Of(Figure::P50),
        Self::Of(Figure::Bandwidth),
        Self::Of(Figure::P99_9),
        Self::Versus(Figure::Mean),
        Self::Of(Figure::Max),
        Self::Versus(Figure::Iops),
    ];

    /// How many of these are left out before a table is stacked.
    pub(crate) const BEFORE_STACKING: usize = 6;

    /// Two lines, so that all stand on the separator.
    pub(crate) fn header(self, baseline: &str) -> String {
        let name = match self {
            Self::Of(Figure::Iops) => "\nIOPS",
            Self::Of(Figure::Bandwidth) => "\nbandwidth",
            Self::Of(Figure::Mean) => "mean\nlatency",
            Self::Of(Figure::P50) => "\np50",
            Self::Of(Figure::P99) => "\np99",
            Self::Of(Figure::P99_9) => "\np99.9",
            Self::Of(Figure::Max) => "\nmax",
            Self::Cpu => "CPU\nper I/O",
            Self::Versus(_) => return format!("vs\n{baseline}"),
        };
        name.to_owned()
    }

    /// For speaking of the column outside of its table.
    pub(crate) fn name(self, baseline: &str) -> String {
        match self {
            Self::Versus(Figure::Mean) => format!("latency vs {baseline}"),
            Self::Versus(Figure::Iops) => format!("IOPS vs {baseline}"),
            column => column.header(baseline).replace('\n', " ").trim().to_owned(),
        }
    }

    /// What the column shows of a row.
    pub(crate) fn cell(self, row: &Row, baseline: Option<&Row>, ascii: bool) -> String {
        match self {
            Self::Of(figure) => {
                let estimate = row.estimate(figure);
                let value = value(figure, estimate.mean, ascii);
                // That of the bandwidth is that of the IOPS.
                match estimate.half_width.filter(|_| figure != Figure::Bandwidth && estimate.mean > 0.0) {
                    Some(half_width) => format!("{value} {}", units::spread(half_width / estimate.mean, ascii)),
                    None => value,
                }
            }
            Self::Versus(figure) => {
                let baseline = baseline.filter(|baseline| baseline.variant != row.variant);
                let difference = baseline.and_then(|baseline| row.difference(baseline, figure));
                let is_repeated = [Some(row), baseline].into_iter().flatten().any(|row| row.samples().len() > 1);
                let shown = difference.and_then(|difference| {
                    let text = units::difference(difference.relative?);
                    let is_certain = !is_repeated || difference.is_significant() == Some(true);
                    Some(if is_certain { text } else { format!("({text})") })
                });
                shown.unwrap_or_else(|| "-".to_owned())
            }
            Self::Cpu => row.cpu_us_per_io.map_or_else(|| "-".to_owned(), |us| units::latency(us * 1e3, ascii)),
        }
    }

    /// The figure that is judged; None for a column without marks.
    pub(crate) fn judged(self) -> Option<Figure> {
        match self {
            Self::Of(figure) => Some(figure),
            Self::Versus(_) | Self::Cpu => None,
        }
    }
}

/// A figure with its unit.
pub(crate) fn value(figure: Figure, value: f64, ascii: bool) -> String {
    match figure {
        Figure::Iops => units::rate(value),
        Figure::Bandwidth => units::bandwidth(value),
        _ => units::latency(value, ascii),
    }
}
