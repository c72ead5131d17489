//! Block devices of this machine (`/dev/ublkbN`), each of which is an export.
//!
//! Used by: `operation`; the program `hoistway-serve`.
//! Tests: `crates/serve/tests/refusals.rs`.
//!
//! A worker serves a device like any connection: it takes the requests of the kernel from a ring of commands, and its results go back
//! there. Starting and stopping a device blocks until the worker has served the requests that this causes, so another
//! thread does that.

mod connection;
mod device;
mod requests;

pub use device::UblkDevice;
