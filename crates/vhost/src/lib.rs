//! vhost-user-blk, the server's side: how a guest's driver shares its memory and its rings with the server, and its requests
//! there. No I/O, no threads, no clock: the server carries requests out and calls again.
//!
//! ```text
//! messages -> Device: Features, Memory, Ring, Record
//! ring -> Chain -> Request -> server -> Device::finish -> ring
//! ```
//!
//! # Trust
//! Shared memory may hold anything, and may change while it is read: it is copied once, and the copy is checked. A driver that
//! breaks its ring has that ring [stopped](Broken). No allocation has a size that a guest chose. One thing cannot be prevented: a
//! front end that shrinks the file behind its memory or behind the in-flight record, or a full file system under it, kills the
//! server when that reads there (SIGBUS).
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

pub use chain::{Chain, Malformed, Piece};
pub use config_space::{CONFIG_BYTES, DISCARD_SECTORS_MAX, Disk, ID_BYTES, SEGMENTS_MAX, ZERO_SECTORS_MAX};
pub use device::{Device, Head, Problem, Taken};
pub use features::{Features, offered_protocol};
pub use memory::{Memory, MemoryError, RegionSpec, Space};
pub use record::{QUEUE_SIZE_MAX, QUEUES_MAX, Record, RecordError, Recovered};
pub use request::{Limits, Range, Request, Status, Verdict, parse};
pub use ring::{Addresses, Broken, Ring};
