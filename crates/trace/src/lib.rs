//! Readers and writers for recordings of block I/O.
//!
//! Used by: crates `evidence`, `program`, `experiment`, `hoistway`, `linux`.
//! Tests: `crates/trace/src/` (in its files), `crates/trace/tests/`.
//!
//! Each group of formats is an independent module:
//!
//! * [`iosched`]: recordings of a running kernel that include the scheduler's decisions, for conformance tests.
//! * [`block`]: recordings of block I/O on real machines, in the formats of blktrace and others.
//! * [`summary`]: output of tools such as iostat, without individual I/Os.
//! * [`events`]: events of a simulated run, with the reasons for scheduling decisions.

pub mod block;
pub mod events;
pub mod iosched;
pub mod summary;
