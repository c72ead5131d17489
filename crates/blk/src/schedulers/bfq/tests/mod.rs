//! Worked examples, each rule by itself, and what no recording exercises.
//!
//! `machine` is a device and its processes in virtual time; the other files are the subjects.

mod actuators;
mod adopting;
mod budgets;
mod classes;
mod cooperation;
mod engine;
mod groups;
mod idle_window;
mod idling;
mod injection;
mod invariants;
mod lifecycle;
mod limits;
mod lines;
mod machine;
mod measures;
mod preemption;
mod raising;
mod recovery;
mod releases;
mod requests;
mod shares;
mod slot_ends;
mod slots;
mod soft_rt;
mod split;
mod tunables;
