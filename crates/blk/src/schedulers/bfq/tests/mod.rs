//! The specification's worked examples and checklist, and rules that no recording exercises.
//!
//! `machine` is a device and its processes in virtual time; the other files are the subjects.

mod budgets;
mod lifecycle;
mod limits;
mod machine;
mod measures;
mod raising;
mod requests;
mod shares;
mod tunables;
