//! What every part needs: log lines and stopping.
//!
//! Used by: `server`, `operation`, `ublk`, `nbd`, `stream` and others; the program `hoistway-serve`.
//! Tests: `crates/serve/src/ground/log.rs`, `crates/serve/tests/bounded.rs`, `crates/serve/tests/guest/panics.rs`.

pub(crate) mod log;
pub(crate) mod stop;
