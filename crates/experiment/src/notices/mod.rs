//! Sentences about what makes the figures of a load uncertain, or an option without effect.
//!
//! Used by: `outcome`, `plan`.
//! Tests: `crates/experiment/src/notices/` (in its files), `crates/experiment/tests/comparison.rs`.

pub(crate) mod behind;
pub(crate) mod borders;
pub(crate) mod calibrated;
pub(crate) mod effects;
pub(crate) mod io_cost;
pub(crate) mod io_latency;
pub(crate) mod stable_merge;
pub(crate) mod stacked;
