//! Reads, changes and records the block layer of a Linux system. Every path is below a [`Root`]: `/`, or a folder with a copy
//! of parts of a system.
//!
//! Used by: crates `hoistway`, `experiment`.
//! Tests: `crates/linux/src/` (in its files), `crates/linux/tests/`, `crates/hoistway/tests/record/`.

pub mod apply;
pub mod below;
pub mod dump;
pub mod host;
pub mod record;
mod root;
mod secrets;

pub use root::{Found, Root};
