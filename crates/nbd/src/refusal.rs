//! The error codes of replies.
//!
//! Used by: `reply`, `request`; crate `serve`.
//! Tests: `crates/nbd/tests/requests.rs`.

use std::fmt;

/// Why a request failed, as error codes of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Refusal {
    /// A write to a read-only export.
    NotPermitted = 1,
    /// The device failed.
    Io = 5,
    /// Not enough memory.
    NoMemory = 12,
    /// The request is invalid.
    Invalid = 22,
    /// No space left, or beyond the end.
    NoSpace = 28,
    /// Too large for one reply.
    Overflow = 75,
    /// Not supported in the requested form.
    NotSupported = 95,
    /// The server is shutting down.
    ShuttingDown = 108,
}

impl Refusal {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// Converts an errno of Linux. Clients treat unknown numbers as EINVAL, which would blame them for an error of the
    /// device, so errnos without a number in the protocol become [`Refusal::Io`].
    #[must_use]
    pub const fn from_errno(errno: i32) -> Refusal {
        match errno {
            // EPERM, EACCES, EROFS
            1 | 13 | 30 => Refusal::NotPermitted,
            12 => Refusal::NoMemory,
            22 => Refusal::Invalid,
            // ENOSPC, EFBIG, EDQUOT
            28 | 27 | 122 => Refusal::NoSpace,
            75 => Refusal::Overflow,
            // EOPNOTSUPP
            95 => Refusal::NotSupported,
            108 => Refusal::ShuttingDown,
            _ => Refusal::Io,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotPermitted => "EPERM",
            Refusal::Io => "EIO",
            Refusal::NoMemory => "ENOMEM",
            Refusal::Invalid => "EINVAL",
            Refusal::NoSpace => "ENOSPC",
            Refusal::Overflow => "EOVERFLOW",
            Refusal::NotSupported => "ENOTSUP",
            Refusal::ShuttingDown => "ESHUTDOWN",
        })
    }
}
