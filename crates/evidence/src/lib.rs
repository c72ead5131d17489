//! Evidence of faithfulness: [`conform`] replays recordings of real kernels and compares every decision;
//! [`reproduction`] simulates published tables and compares the figures; [`replay_pairs`] predicts recordings of a
//! program from its other recordings.

pub mod conform;
pub mod replay_pairs;
pub mod reproduction;
