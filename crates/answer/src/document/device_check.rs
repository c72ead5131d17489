//! The disk that was observed beside its model: whether figures of the model say anything about the disk.

use serde::{Deserialize, Serialize};

use super::ResultsDocument;
use hoistway_measure::Operation;

/// If mean latencies differ by this factor, the devices are taken for different ones. An assumption: drives of one class are assumed to
/// stay below it, and to rank the schedulers in the same order.
const MISMATCH_FACTOR: f64 = 3.0;
/// A model that does less than this share of what the disk was seen to do is of another device.
const RATE_SHARE_MIN: f64 = 0.9;
/// An operation is compared if at least one in this many I/Os is of this operation.
const IOS_PER_COUNTED: f64 = 20.0;

/// A disk as a monitoring tool or fio observed it, and its model on one setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCheck {
    /// The setup: index into [`setups`](ResultsDocument::setups); 0 if there are none.
    pub setup: u32,
    /// The disk, such as `sda`.
    pub disk: String,
    /// The scheduler that the model ran under.
    pub under: String,
    /// The operations that were observed.
    pub rows: Vec<CheckedLatency>,
}

/// The mean latency of an operation on the observed disk and on its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedLatency {
    /// The job that stands for it.
    pub job: String,
    /// The operation.
    pub operation: Operation,
    /// I/Os of it a second that were observed.
    pub ios: f64,
    /// On the disk, ns.
    pub observed_ns: f64,
    /// On the model, ns.
    pub model_ns: f64,
    /// I/Os of it a second that the model did when asked for as many as were observed; `None` in documents that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_ios: Option<f64>,
}

impl CheckedLatency {
    /// Its I/Os in words, such as `reads` of a monitoring tool's load, `reads of db` of a job.
    #[must_use]
    pub fn subject(&self) -> String {
        let is_subject = |job: &str| ["reads", "writes", "discards"].contains(&job);
        if self.job.split(" and ").all(is_subject) {
            return self.job.clone();
        }
        format!("{}s of {}", self.operation.name(), self.job)
    }

    /// The factor between the latencies of the model and the disk, whichever is longer: 1 if they are equal.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let ratio = self.model_ns / self.observed_ns;
        ratio.max(ratio.recip())
    }

    /// Whether the model cannot do what the disk was seen to do, whatever its latencies.
    #[must_use]
    pub fn is_too_slow(&self) -> bool {
        self.model_ios.is_some_and(|ios| ios < RATE_SHARE_MIN * self.ios)
    }
}

/// A model that does not fit the observed disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceMismatch {
    /// The disk, such as `sda`.
    pub disk: String,
    /// The scheduler that the model ran under.
    pub under: String,
    /// The operations whose latencies differ too much, or of which it does too few.
    pub rows: Vec<CheckedLatency>,
}

impl ResultsDocument {
    /// The operations in which the model of a setup does not fit the observed disk; `None` if it fits.
    #[must_use]
    pub fn device_mismatch(&self, setup: u32) -> Option<DeviceMismatch> {
        let check = self.device_checks.iter().find(|check| check.setup == setup)?;
        let all: f64 = check.rows.iter().map(|row| row.ios).sum();
        let is_mismatch = |row: &&CheckedLatency| {
            row.ios * IOS_PER_COUNTED >= all && (row.factor() >= MISMATCH_FACTOR || row.is_too_slow())
        };
        let rows: Vec<CheckedLatency> = check.rows.iter().filter(is_mismatch).cloned().collect();
        (!rows.is_empty()).then(|| DeviceMismatch { disk: check.disk.clone(), under: check.under.clone(), rows })
    }
}
