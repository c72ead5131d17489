//! Trace formats in and out: records of what a block layer did.
//!
//! Every format is a module of its own and knows nothing of the others:
//!
//! * [`iosched`]: recordings of a running kernel with the scheduler's decisions in them, for conformance tests.
//! * [`block`]: recordings of block I/O on real machines, in the formats of blktrace and others.
//! * [`summary`]: what tools print about disks without their I/Os.
//! * [`events`]: what happened in a simulated run, and why.

pub mod block;
pub mod events;
pub mod iosched;
pub mod summary;
