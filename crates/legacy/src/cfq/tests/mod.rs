//! Tests of the policy as a whole: worked examples, and each rule by itself.
//!
//! [`Bench`] is the smallest world that cfq can live in: processes, the legacy queue in short (the driver looks at one
//! request ahead and keeps that while the device is full) and a device of constant service time.

mod bench;
mod cooperation;
mod decision;
mod examples;
mod gate;
mod group_tree;
mod groups;
mod hooks;
mod idling;
mod invariants;
mod keys;
mod preemption;
mod slices;
mod ticks;

use bench::{Bench, Job, MS, US, one};
