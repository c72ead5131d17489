//! Evidence of faithfulness: [`conform`] replays recordings of real kernels and compares every decision;
//! [`reproduction`] simulates published tables and compares the figures; [`replay_pairs`] predicts recordings of a
//! program from its other recordings.
//!
//! Used by: its program `hoistway-evidence`.
//! Tests: `crates/evidence/src/` (in its files), `crates/evidence/tests/`.

pub mod conform;
pub mod halves;
pub mod replay_pairs;
pub mod reproduction;
