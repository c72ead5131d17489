//! How faithful is it? [`conform`] replays recordings of real kernels and compares every decision; [`reproduction`] simulates published
//! tables and prints both with the error.

pub mod conform;
pub mod reproduction;
