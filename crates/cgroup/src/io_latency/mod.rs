//! `io.latency`: a latency target for a cgroup, for which its siblings are throttled.
//!
//! Used by: crates `sim`, `experiment`.
//! Tests: `crates/cgroup/src/io_latency/` (in its files).
//!
//! A group that misses its target is a *victim*: siblings with a looser target, or none, may have fewer I/Os outstanding with its windows ([`IoLatency`]). Metadata and swap pass, and delay their group later. [`IoLatency`] holds a bio
//! before a queue sees it, as `io.max` does. Rules: IL-1 to IL-16.

mod controller;
mod depth;
mod group;
mod target;
#[cfg(test)]
mod tests;

pub use controller::IoLatency;
pub use group::GroupLatency;
pub use target::{IoLatencyError, IoLatencyTarget};
