//! Block devices over block devices: the layers of a run.
//!
//! Used by: `simulation`.
//! Tests: `crates/sim/src/stacks/` (in its files), `crates/sim/tests/stacks.rs`.
//!
//! A stacked device has no queue, no tags and no scheduler: it splits, copies or defers each bio, and what results goes to
//! the queues of the disks at the bottom. The submitting process does that itself within its call, so its plug holds the
//! bios for the disks; what a layer does later, its thread submits. `geometry` has the places, `joins` what is
//! outstanding, `layers` the path of a bio down, `mirror`, `parity` and `crypt` what is special to a kind, and `thread` the threads.

mod geometry;
mod joins;
mod layers;
mod mirror;
mod thread;

pub(crate) use layers::{Layers, WorkStep};
