//! Where runs took place, if one document has several such places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A device, a kernel and a host. Fields are those of the [document](super::ResultsDocument)'s head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupSummary {
    /// The device model, or those of several files.
    pub device: Value,
    /// The kernel.
    pub kernel: String,
    /// CPUs of the host.
    pub cpus: u32,
    /// Hardware queues.
    pub hw_queues: u32,
    /// `nr_requests` of each queue.
    pub nr_requests: u32,
    /// The host profile.
    pub host: Value,
    /// The scheduler that the kernel gives the devices by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_scheduler: Option<String>,
}
