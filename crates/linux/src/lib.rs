//! Reads, changes and records the block layer of a Linux system. Every path is below a [`Root`]: `/`, or a folder with a copy
//! of parts of a system.
//!
//! Used by: crates `hoistway`, `experiment`.
//! Tests: `crates/linux/src/` (in its files), `crates/linux/tests/`, `crates/hoistway/tests/record/`.
//!
//! ```
//! use std::fs;
//!
//! use hoistway_linux::Root;
//! use hoistway_linux::host::Host;
//!
//! // A system with a kernel and no disk.
//! let folder = tempfile::tempdir().unwrap();
//! fs::create_dir_all(folder.path().join("proc/sys/kernel")).unwrap();
//! fs::create_dir_all(folder.path().join("sys/block")).unwrap();
//! fs::write(folder.path().join("proc/sys/kernel/osrelease"), "6.18.1\n").unwrap();
//!
//! let root = Root::open(folder.path()).unwrap();
//! let host = Host::read(&root, "example", Some(Vec::new())).unwrap();
//! assert!(host.devices.is_empty() && host.device_called("sda").is_err());
//! ```

pub mod apply;
pub mod below;
pub mod dump;
pub mod fleet;
pub mod host;
pub mod record;
mod root;
mod secrets;

pub use root::{Found, Root};
