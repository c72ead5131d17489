//! The columns of figures in a comparison table.

use crate::comparison::Row;
use crate::units;

/// A column of figures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Iops,
    Spread,
    IopsToNone,
    Bandwidth,
    Mean,
    MeanToNone,
    P50,
    P99,
    P99_9,
    Max,
}

impl Column {
    pub(crate) const ALL: [Self; 10] = [
        Self::Iops,
        Self::Spread,
        Self::IopsToNone,
        Self::Bandwidth,
        Self::Mean,
        Self::MeanToNone,
        Self::P50,
        Self::P99,
        Self::P99_9,
        Self::Max,
    ];

    /// What is left out of a table that is too wide, first things first.
    pub(crate) const DISPENSABLE: [Self; 6] =
        [Self::P50, Self::Bandwidth, Self::P99_9, Self::MeanToNone, Self::Max, Self::Spread];

    /// Two lines, so that all stand on the separator.
    pub(crate) fn header(self, ascii: bool) -> &'static str {
        match self {
            Self::Iops => "\nIOPS",
            Self::Spread if ascii => "\n+-",
            Self::Spread => "\n±",
            Self::IopsToNone | Self::MeanToNone => "vs\nnone",
            Self::Bandwidth => "\nbandwidth",
            Self::Mean => "mean\nlatency",
            Self::P50 => "\np50",
            Self::P99 => "\np99",
            Self::P99_9 => "\np99.9",
            Self::Max => "\nmax",
        }
    }

    /// For speaking of the column outside of its table.
    pub(crate) fn name(self, ascii: bool) -> &'static str {
        match self {
            Self::MeanToNone => "latency vs none",
            column => column.header(ascii).trim_start(),
        }
    }

    /// What the column shows of a row.
    pub(crate) fn cell(self, row: &Row, ascii: bool) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        match self {
            Self::Iops => units::rate(row.iops),
            Self::Spread => or_dash(row.iops_spread.map(|spread| units::spread(spread, ascii))),
            Self::IopsToNone => or_dash(row.iops_to_none.map(units::difference)),
            Self::Bandwidth => units::bandwidth(row.bytes_per_second),
            Self::Mean => units::latency(row.mean_ns, ascii),
            Self::MeanToNone => or_dash(row.mean_to_none.map(units::difference)),
            Self::P50 => units::latency(row.p50_ns, ascii),
            Self::P99 => units::latency(row.p99_ns, ascii),
            Self::P99_9 => units::latency(row.p99_9_ns, ascii),
            Self::Max => units::latency(row.max_ns, ascii),
        }
    }

    /// The figure to be judged and whether more of it is better; None for a column without colours.
    pub(crate) fn judged(self, row: &Row) -> Option<(f64, bool)> {
        match self {
            Self::Iops => Some((row.iops, true)),
            Self::Bandwidth => Some((row.bytes_per_second, true)),
            Self::Mean => Some((row.mean_ns, false)),
            Self::P50 => Some((row.p50_ns, false)),
            Self::P99 => Some((row.p99_ns, false)),
            Self::P99_9 => Some((row.p99_9_ns, false)),
            Self::Max => Some((row.max_ns, false)),
            Self::Spread | Self::IopsToNone | Self::MeanToNone => None,
        }
    }
}
