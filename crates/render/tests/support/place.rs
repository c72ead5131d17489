//! Setups of runs.

use hoistway_answer::document::SetupSummary;
use serde_json::json;

/// A device under a kernel.
pub fn place(device: &str, kernel: &str, default_scheduler: Option<&str>) -> SetupSummary {
    SetupSummary {
        device: json!({"name": device}),
        kernel: kernel.to_owned(),
        cpus: 8,
        hw_queues: 1,
        nr_requests: 256,
        host: json!("ideal"),
        default_scheduler: default_scheduler.map(str::to_owned),
    }
}
