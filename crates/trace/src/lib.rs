//! Trace formats in and out: records of what a block layer did.
//!
//! Every format is a module of its own and knows nothing of the others:
//!
//! * [`iosched`]: recordings of a running kernel with the scheduler's decisions in them, for conformance tests.
//! * [`events`]: what happened in a simulated run, and why.

pub mod events;
pub mod iosched;
