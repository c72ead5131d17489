//! `io.cost`: shares of a device's time by cgroup weights, above the scheduler.
//!
//! Used by: crates `sim`, `experiment`.
//! Tests: `crates/cgroup/src/io_cost/` (in its files).
//!
//! A linear model gives each bio a cost in device time ([`CostModel`]). A group pays for its bios from its share of the
//! device's time, and waits while it is ahead. How fast device time passes follows from the latencies that the device
//! reaches ([`IoCostQos`]). [`IoCost`] holds a bio before a queue sees it, as `io.max` does. Rules: IC-1 to IC-23.

mod clock;
mod controller;
mod files;
mod model;
mod qos;
mod saturation;
mod shares;
#[cfg(test)]
mod tests;

pub use controller::{GroupCost, IoCost};
pub use files::{IoCostError, IoCostSettings};
pub use model::{CostModel, IoCostModel};
pub use qos::{IoCostQos, Percent};
