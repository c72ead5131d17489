//! The transport between a host and a device, such as NVMe over TCP. It runs on the host's CPUs, so that the simulator executes it; here
//! are its costs.
//!
//! Used by: `preset`; crate `sim`.
//! Tests: `crates/device/tests/presets.rs`.

use hoistway_blk::ground::Nanos;
use hoistway_blk::request::Transport;
use serde::{Deserialize, Serialize};

/// What a worker on each CPU does between the block layer and the device: the `[transport]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportParameters {
    /// CPU time of a request, ns.
    pub request_ns: u64,
    /// CPU time of each KiB of its data, ns.
    pub kib_ns: u64,
    /// Requests of a CPU's second queue that a worker sends together.
    pub batch: u16,
    /// How long the first request of a batch waits for the others, us.
    pub doorbell_us: f64,
}

impl TransportParameters {
    /// What the block layer needs to know.
    #[must_use]
    pub fn capability(&self) -> Transport {
        Transport { batch: self.batch }
    }

    /// CPU time of a request with this many sectors.
    #[inline]
    #[must_use]
    pub fn time_of(&self, sectors: u32) -> Nanos {
        // Two sectors a KiB.
        Nanos(self.request_ns + self.kib_ns * u64::from(sectors) / 2)
    }

    /// How long the first request of a batch waits for the others.
    #[inline]
    #[must_use]
    pub fn doorbell(&self) -> Nanos {
        Nanos((self.doorbell_us * 1e3).round() as u64)
    }
}
