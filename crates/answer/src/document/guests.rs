//! Guests in the result document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The virtual machines that a load ran in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuestsSummary {
    /// The profile of their virtual disks, with all its parameters.
    pub virtual_disk: Value,
    /// The schedulers of their disks.
    pub schedulers: Vec<String>,
    /// Weights of their cgroups on the host, by the files that back their disks.
    pub weights: BTreeMap<String, u32>,
}
