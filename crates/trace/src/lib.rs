//! Trace formats in and out: recordings of what a block layer did, read into typed events.
//!
//! Every format is a module of its own and knows nothing of the others:
//!
//! * [`iosched`]: recordings of a running kernel with the scheduler's decisions in them, for conformance tests.

pub mod iosched;
