//! What the device of a recording was seen to serve: each request, when it was issued, and when it ended.
//!
//! Used by: `gather`; crate `experiment` for devices of recordings.
//! Tests: `crates/hoistway/tests/cli/seen_device.rs`.

use hoistway_trace::block::{Action, Device, Event, Flags};
use rustc_hash::FxHashMap;

/// Most requests that are kept, the first of a recording.
const REQUESTS_MAX: usize = 100_000;

/// A request that a device served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedRequest {
    /// Its device.
    pub device: Device,
    /// When it was issued, by the recording's clock.
    pub issued_ns: u64,
    /// When it ended; 0 until then.
    pub ended_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Length in bytes; 0 for a flush.
    pub bytes: u32,
    /// Direction and modifiers.
    pub flags: Flags,
}

/// Pairs the issue of each request with its end.
#[derive(Debug, Default)]
pub(crate) struct ServedRequests {
    requests: Vec<ServedRequest>,
    /// The number of the request in flight at a device and a sector; of a flush, which has none, at the end of the device.
    in_flight: FxHashMap<(u32, u64), usize>,
}

impl ServedRequests {
    pub(crate) fn take(&mut self, event: &Event) {
        let place = if event.bytes == 0 { u64::MAX } else { event.sector };
        let key = (event.device.number(), place);
        match event.action {
            Action::Issue if self.requests.len() < REQUESTS_MAX => {
                self.in_flight.insert(key, self.requests.len());
                self.requests.push(ServedRequest {
                    device: event.device,
                    issued_ns: event.time_ns,
                    ended_ns: 0,
                    sector: event.sector,
                    bytes: event.bytes,
                    flags: event.flags,
                });
            }
            Action::Complete => {
                if let Some(number) = self.in_flight.remove(&key)
                    && self.requests[number].bytes == event.bytes
                {
                    self.requests[number].ended_ns = event.time_ns;
                }
            }
            Action::Requeue => {
                self.in_flight.remove(&key);
            }
            _ => {}
        }
    }

    /// Those of a device that ended, in the order in which they were issued.
    pub(crate) fn of(&self, device: Device) -> Vec<ServedRequest> {
        let ended = |request: &&ServedRequest| request.device == device && request.ended_ns > 0;
        self.requests.iter().filter(ended).copied().collect()
    }
}
