//! Figures: the metrics by which schedulers are compared.
//!
//! Used by: `verdict`, `analysis`, `tuning`, `document`, `figure_name` and others; crates `render`, `experiment`.
//! Tests: `crates/answer/tests/figure_name.rs`, `crates/answer/tests/verdict.rs`.

use serde::{Deserialize, Serialize};

use hoistway_measure::Operation;

/// A figure of one operation of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// I/Os a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// Mean total latency, ns.
    Mean,
    /// Median latency, ns.
    P50,
    /// 95th percentile, ns.
    P95,
    /// 99th percentile, ns.
    P99,
    /// 99.9th percentile, ns.
    #[serde(rename = "p99.9")]
    P99_9,
    /// Largest latency, ns.
    Max,
}

impl Figure {
    /// The figures that statistics and documents give for every row.
    pub const ALL: [Self; 7] = [Self::Iops, Self::Bandwidth, Self::Mean, Self::P50, Self::P99, Self::P99_9, Self::Max];
    /// All figures that a [name](crate::FigureName) may contain.
    pub const NAMED: [Self; 8] =
        [Self::Iops, Self::Bandwidth, Self::Mean, Self::P50, Self::P95, Self::P99, Self::P99_9, Self::Max];

    /// The figure's part of a [figure name](crate::FigureName).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Bandwidth => "bandwidth",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
            Self::Max => "max",
        }
    }

    /// The figure's key in documents, with the unit.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Bandwidth => "bytes_per_second",
            Self::Mean => "lat_mean_ns",
            Self::P50 => "lat_p50_ns",
            Self::P95 => "lat_p95_ns",
            Self::P99 => "lat_p99_ns",
            Self::P99_9 => "lat_p99_9_ns",
            Self::Max => "lat_max_ns",
        }
    }

    /// The figure's unit: `1/s`, `B/s` or `ns`.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Iops => "1/s",
            Self::Bandwidth => "B/s",
            Self::Mean | Self::P50 | Self::P95 | Self::P99 | Self::P99_9 | Self::Max => "ns",
        }
    }

    /// Whether an operation has this figure: syncs have no bandwidth.
    pub fn is_of(self, operation: Operation) -> bool {
        self != Self::Bandwidth || operation != Operation::Sync
    }

    /// Whether the figure is a latency.
    pub const fn is_latency(self) -> bool {
        !matches!(self, Self::Iops | Self::Bandwidth)
    }

    /// Whether the figure is a percentile, which is the midpoint of a histogram's bin.
    pub const fn is_percentile(self) -> bool {
        matches!(self, Self::P50 | Self::P95 | Self::P99 | Self::P99_9)
    }

    /// Whether a higher value is better.
    pub const fn higher_is_better(self) -> bool {
        matches!(self, Self::Iops | Self::Bandwidth)
    }
}
