//! Exports: their text form, who may use them, what their clients share, and their statistics.
//!
//! Used by: `server`, `operation`, `guest`, `ublk`, `nbd`; the program `hoistway-serve`.
//! Tests: `crates/serve/src/export/` (in its files), `crates/serve/tests/bounded.rs`, `crates/serve/tests/guest/panics.rs`.

pub(crate) mod access;
pub(crate) mod clients;
pub(crate) mod counts;
pub(crate) mod disk;
pub(crate) mod export_throttle;
pub(crate) mod exports;
pub(crate) mod failures;
pub(crate) mod files;
pub(crate) mod latency;
pub(crate) mod read_time;
pub(crate) mod shares;
pub(crate) mod spec;
