//! vhost-user-blk, as the server speaks it: how a guest's driver shares its memory and its rings with us, and what it asks
//! for there. No I/O, no threads, no clock: whoever serves the disk carries requests out and calls again.
//!
//! ```text
//! messages -> Device: Features, Memory, Ring, Record
//! ring -> Chain -> Request -> whoever carries it out -> Device::finish -> ring
//! ```
//!
//! # Whom it trusts
//! Nobody. All that lies in shared memory may be anything, and may change while it is read: what is looked at is copied
//! first, once, and the copy is checked. A driver that breaks its ring has that ring [stopped](Broken). Nothing is allocated
//! by a number that a guest chose. One thing nobody can be kept from: a front end that makes the file shorter behind its memory
//! or behind the record of what is in flight, or a full file system under it, ends whoever reads there, which is us (SIGBUS).
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
