//! Between block layer and device: drivers, effects of calls, the in-flight table and timeouts.
//!
//! Used by: `queue`, `caller`, `kit`; crates `legacy`, `experiment`, `sim`, `evidence`, `engine` and others.
//! Tests: `crates/blk/src/drive/effects.rs`, `checks/tests/shuttle/timeouts.rs`.

pub(crate) mod driver;
pub(crate) mod effects;
pub(crate) mod flights;
pub(crate) mod timeouts;

pub use driver::{Answer, Driver, Expired, Refusal};
pub use effects::{Effect, Effects, RESOURCE_DELAY};
