//! Setups in the result document, if a comparison covers several devices, kernels or hosts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A device, a kernel and a host. The fields have the same meaning as in the [document](super::ResultsDocument).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetupSummary {
    /// The device model, or an array with the models of several files.
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
    /// The kernel's default scheduler for the devices; `None` if they have none in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_scheduler: Option<String>,
}
