//! Evidence of faithfulness: [`conform`] replays recordings of real kernels and compares every decision; [`reproduction`] simulates
//! published tables and prints both with the error; [`replay_pairs`] predicts recordings of a program from other recordings of it.

pub mod conform;
pub mod replay_pairs;
pub mod reproduction;
