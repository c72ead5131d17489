//! Requests of clients, and their completions.
//!
//! Used by: `worker`, `client`, `engine`, `resident`, `job` and others; crates `serve`, `calibrate`.
//! Tests: `crates/engine/tests/files.rs`, `crates/engine/tests/unaligned.rs`.

use std::fmt;
use std::io;

use hoistway_blk::bio::{IoPriority, Status};

use crate::memory::Buffer;

/// Maximum length of a read or write, in bytes.
pub const TRANSFER_BYTES_MAX: u64 = 32 << 20;

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Fills the buffer.
    Read,
    /// Writes the buffer.
    Write {
        /// Completes only when the data is on stable storage (FUA).
        durable: bool,
    },
    /// Makes all writes durable that completed before its submission.
    Flush,
    /// The content is no longer needed; afterwards it reads as zeroes or as before.
    Discard {
        /// Length, in bytes.
        bytes: u64,
    },
    /// The content reads as zeroes afterwards.
    WriteZeroes {
        /// Length, in bytes.
        bytes: u64,
        /// Whether the space may be deallocated.
        may_unmap: bool,
        /// Whether to fail with `EOPNOTSUPP` rather than take as long as writing zeroes.
        fast_only: bool,
    },
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// The operation.
    pub operation: Operation,
    /// Its offset in the volume, in bytes; 0 for a flush.
    pub offset: u64,
    /// The data of a read or write, whose length is that of the buffer; empty for other operations.
    pub buffer: Buffer,
    /// An arbitrary value by which the client recognises it.
    pub token: u64,
    /// Its own priority; [`IoPriority::UNSET`] for that of the client's [`Context`](crate::Context).
    pub ioprio: IoPriority,
}

impl Request {
    /// A request with the priority of its client.
    #[must_use]
    pub fn new(operation: Operation, offset: u64, buffer: Buffer, token: u64) -> Request {
        Request { operation, offset, buffer, token, ioprio: IoPriority::UNSET }
    }

    /// A read of the length of the buffer.
    #[must_use]
    pub fn read(offset: u64, buffer: Buffer, token: u64) -> Request {
        Request::new(Operation::Read, offset, buffer, token)
    }

    /// A write of the buffer.
    #[must_use]
    pub fn write(offset: u64, buffer: Buffer, token: u64) -> Request {
        Request::new(Operation::Write { durable: false }, offset, buffer, token)
    }

    /// A flush.
    #[must_use]
    pub fn flush(token: u64) -> Request {
        Request::new(Operation::Flush, 0, Buffer::EMPTY, token)
    }

    /// A discard.
    #[must_use]
    pub fn discard(offset: u64, bytes: u64, token: u64) -> Request {
        Request::new(Operation::Discard { bytes }, offset, Buffer::EMPTY, token)
    }

    /// A write-zeroes that may take any time and may leave holes.
    #[must_use]
    pub fn write_zeroes(offset: u64, bytes: u64, token: u64) -> Request {
        let operation = Operation::WriteZeroes { bytes, may_unmap: true, fast_only: false };
        Request::new(operation, offset, Buffer::EMPTY, token)
    }

    /// The length of its range on the volume, in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        Request::bytes_of(self.operation, &self.buffer)
    }

    #[inline]
    pub(crate) fn bytes_of(operation: Operation, buffer: &Buffer) -> u64 {
        match operation {
            Operation::Read | Operation::Write { .. } => buffer.len() as u64,
            Operation::Flush => 0,
            Operation::Discard { bytes } | Operation::WriteZeroes { bytes, .. } => bytes,
        }
    }
}

/// The completion of a request. Each request has exactly one, unless its client is dropped first; completions come in any order.
#[derive(Debug)]
pub struct Completion {
    /// The token of the request.
    pub token: u64,
    /// The result.
    pub result: Result<(), Errno>,
    /// The buffer of the request; for a successful read it contains the data.
    pub buffer: Buffer,
}

/// Why a request failed: a number as system calls return it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// The volume is read-only.
    pub const PERM: Errno = Errno(1);
    /// The device failed.
    pub const IO: Errno = Errno(5);
    /// The request is invalid: it is empty, its data is longer than [`TRANSFER_BYTES_MAX`], or it has more than 2^32 - 1 sectors.
    pub const INVAL: Errno = Errno(22);
    /// It reaches beyond the end of the volume, or the storage behind it is full.
    pub const NOSPC: Errno = Errno(28);
    /// The volume does not support the operation, or not a fast form of it.
    pub const OPNOTSUPP: Errno = Errno(95);
    /// The engine has stopped.
    pub const SHUTDOWN: Errno = Errno(108);
    /// The client canceled the request before the queue saw it.
    pub const CANCELED: Errno = Errno(125);

    /// The result of a bio with this status.
    #[inline]
    pub(crate) fn of(status: Status) -> Result<(), Errno> {
        if status == Status::Ok { Ok(()) } else { Err(Errno(status.errno())) }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({})", self.0)
    }
}

impl std::error::Error for Errno {}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        io::Error::from_raw_os_error(errno.0)
    }
}
