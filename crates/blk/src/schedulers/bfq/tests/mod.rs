//! The specification's worked examples and checklist, and the rules that no recording exercises.
//!
//! `machine` is a device and its processes in virtual time; the other files are the subjects.

mod budgets;
mod classes;
mod engine;
mod idling;
mod lifecycle;
mod limits;
mod machine;
mod merging;
mod raising;
mod rate;
mod requests;
mod shares;
mod statistics;
mod tunables;
