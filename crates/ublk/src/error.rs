//! Why there is no device.
//!
//! Used by: `device`; crate `serve`.
//! Tests: `crates/ublk/src/device.rs`.

use std::io;

use crate::layout::CONTROL_PATH;

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The kernel has no driver.
    #[error(
        "there is no {CONTROL_PATH}: this kernel has no ublk driver, or it is not loaded (expected Linux 6.5 or newer with CONFIG_BLK_DEV_UBLK, and \
         `modprobe ublk_drv`)"
    )]
    NoDriver,
    /// The process has no right to create devices.
    #[error(
        "this process may not create devices (expected root, or the capability CAP_SYS_ADMIN and access to {CONTROL_PATH})"
    )]
    NotPermitted,
    /// The driver lacks something.
    #[error("the ublk driver of this kernel is too old (expected Linux 6.5 or newer)")]
    OldDriver,
    /// The number is taken by a device that is served.
    #[error(
        "/dev/ublkb{number} exists and is served by {server} (expected another number, or none to let the kernel choose)"
    )]
    InUse {
        /// The number.
        number: u32,
        /// Who serves it.
        server: String,
    },
    /// The number is taken by a device whose server has ended, but which is still in use.
    #[error(
        "/dev/ublkb{number} of a server that has ended is still mounted or open (expected that it is unmounted and closed, or another number)"
    )]
    StillOpen {
        /// The number.
        number: u32,
    },
    /// The device waits for its server to recover it.
    #[error(
        "/dev/ublkb{number} belongs to another server, which may recover it (expected another number, or `ublk del -n {number}`)"
    )]
    Recoverable {
        /// The number.
        number: u32,
    },
    /// A system call or a command failed.
    #[error("{what}: {why}")]
    System {
        /// What failed.
        what: String,
        /// The system's error.
        why: io::Error,
    },
}

impl UblkError {
    /// An error of the system while doing something.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> UblkError {
        move |why| UblkError::System { what: what.into(), why }
    }
}
