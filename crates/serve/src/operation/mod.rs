//! Operating a running server: the control socket, changes, and metrics.
//!
//! Used by: the program `hoistway-serve`.
//! Tests: `crates/serve/src/operation/control.rs`, `crates/serve/src/operation/metrics.rs`, `crates/serve/tests/control.rs`.

pub(crate) mod change;
pub(crate) mod control;
pub(crate) mod metrics;
pub(crate) mod request_threads;
