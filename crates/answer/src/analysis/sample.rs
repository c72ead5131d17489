//! What one run measured of one operation of a job.

use crate::document::{DirectionSummary, JobSummary, LatencySummary, SyncSummary};
use crate::figure::Figure;
use hoistway_measure::Operation;
use hoistway_measure::settling::Settling;

/// An operation of a job in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// How many have ended.
    pub ios: u64,
    /// Bytes moved; 0 of syncs.
    pub bytes: u64,
    /// How many a second.
    pub iops: f64,
    /// Bytes a second; 0 of syncs.
    pub bytes_per_second: f64,
    /// Their latency.
    pub lat_ns: LatencySummary,
    /// Whether the run had settled.
    pub settling: Settling,
}

impl Sample {
    /// What a run has of an operation; None if there was none.
    pub(crate) fn of(job: &JobSummary, operation: Operation) -> Option<Self> {
        let sample = match operation {
            Operation::Sync => Self::from(job.sync.as_ref()?),
            _ => job.directions.iter().find(|summary| Operation::from(summary.direction) == operation)?.into(),
        };
        (sample.ios > 0).then_some(sample)
    }

    /// One of its figures.
    pub fn figure(&self, figure: Figure) -> f64 {
        let latency = &self.lat_ns;
        match figure {
            Figure::Iops => self.iops,
            Figure::Bandwidth => self.bytes_per_second,
            Figure::Mean => latency.mean,
            Figure::P50 => latency.p50 as f64,
            Figure::P99 => latency.p99 as f64,
            Figure::P99_9 => latency.p99_9 as f64,
            Figure::Max => latency.max as f64,
        }
    }
}

impl From<&DirectionSummary> for Sample {
    fn from(summary: &DirectionSummary) -> Self {
        Self {
            ios: summary.ios,
            bytes: summary.bytes,
            iops: summary.iops,
            bytes_per_second: summary.bytes_per_second,
            lat_ns: summary.lat_ns,
            settling: summary.settling,
        }
    }
}

impl From<&SyncSummary> for Sample {
    fn from(summary: &SyncSummary) -> Self {
        Self {
            ios: summary.syncs,
            bytes: 0,
            iops: summary.syncs_per_second,
            bytes_per_second: 0.0,
            lat_ns: summary.lat_ns,
            settling: Settling::Unknown,
        }
    }
}
