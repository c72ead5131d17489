//! vhost-user-blk, the server's side: the memory and rings that a guest's driver shares with the server, and the requests in
//! them. No I/O, no threads, no clock: the server carries requests out and calls back.
//!
//! Used by: crate `serve`.
//! Tests: `crates/vhost/src/` (in its files), `crates/vhost/tests/`.
//!
//! ```text
//! messages -> Device: Features, Memory, Ring, Record
//! ring -> Chain -> Request -> server -> Device::finish -> ring
//! ```
//!
//! # Trust
//! Shared memory may contain anything, and may change while it is read: it is copied once, and the copy is checked. If a driver
//! breaks its ring, that ring is [stopped](Broken). No allocation has a size chosen by a guest. One thing cannot be prevented: if
//! a front end truncates the file behind its memory or behind the in-flight record, or the file system below is full, an access
//! kills the server (SIGBUS).
//!
//! # What it does not do
//! Packed rings, migration while running (no log of dirty pages), zones, secure erase, a capacity that changes.

mod chain;
mod config_space;
mod device;
mod features;
mod memory;
mod record;
mod request;
mod ring;

pub use chain::{Chain, DescriptorSegment, Malformed};
pub use config_space::{CONFIG_BYTES, DISCARD_SECTORS_MAX, Disk, ID_BYTES, SEGMENTS_MAX, ZERO_SECTORS_MAX};
pub use device::{Device, Head, Problem, Taken};
pub use features::{Features, offered_protocol};
pub use memory::{GuestAddressSpace, Memory, MemoryError, RegionSpec};
pub use record::{InflightRecordError, QUEUE_SIZE_MAX, QUEUES_MAX, Record, Recovered};
pub use request::{Limits, Range, Request, RequestRejection, Status, parse};
pub use ring::{Addresses, Broken, Ring};
