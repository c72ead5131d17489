//! ublk, the server's side: a block device of this machine (`/dev/ublkbN`) whose requests a process serves.
//!
//! Used by: crate `serve`.
//! Tests: `crates/ublk/src/` (in its files), `crates/serve/tests/refusals.rs`.
//!
//! ```text
//! Device::add -> UblkQueue::fetch_all, by the thread that serves -> Device::start -> /dev/ublkbN
//! UblkQueue::take -> request -> read_data -> server -> write_data -> commit -> UblkQueue::submit
//! Device::stop, while the thread serves -> UblkQueue::is_gone -> dropped -> Device::delete
//! ```
//!
//! A command in an io_uring fetches each request; the command that returns its result fetches the next one. The kernel describes
//! requests in memory that the server can only read, and their data is read and written at positions of `/dev/ublkcN`
//! (`UBLK_F_USER_COPY`), so the kernel needs no address of the server and the data stays in the kernel until the server has memory for it.
//! The layouts are those of `linux/ublk_cmd.h`.
//!
//! # Why not `libublk`
//! Its build needs libclang, it adds 34 crates, and its rings belong to executors of its own, one a thread: a worker of the server
//! waits for its sockets, its target and this device in one place.
//!
//! # Limits
//! One queue, served by one thread. No zones, no zero copy, no recovery (`UBLK_F_USER_RECOVERY`), no change of the size.

mod device;
mod disk;
mod error;
mod kernel;
mod layout;
mod leftovers;
mod queue;
mod request;

pub use device::{DEVICE_NUMBER_MAX, Device, DeviceNumber};
pub use disk::{DISCARD_BYTES_MAX, DISK_BLOCK_BYTES_MIN, Disk, QUEUE_DEPTH_MAX, TRANSFER_BYTES_MAX, ZERO_BYTES_MAX};
pub use error::UblkError;
pub use queue::UblkQueue;
pub use request::{BadDescriptor, Request};
