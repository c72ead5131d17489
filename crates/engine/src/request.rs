//! Requests of clients, and their completions.

use std::fmt;
use std::io;

use hoistway_blk::bio::{IoPriority, Status};

use crate::memory::Buffer;

/// The longest read or write, in bytes.
pub const TRANSFER_BYTES_MAX: u64 = 32 << 20;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Fills the buffer.
    Read,
    /// Writes the buffer.
    Write {
        /// Completes only when the data is on stable storage (FUA).
        durable: bool,
    },
    /// Makes all writes durable that completed before this was submitted.
    Flush,
    /// The content is no longer needed; afterwards it reads as zeroes or as before.
    Discard {
        /// How much, in bytes.
        bytes: u64,
    },
    /// The content reads as zeroes afterwards.
    WriteZeroes {
        /// How much, in bytes.
        bytes: u64,
        /// The space need not stay allocated.
        may_unmap: bool,
        /// Rather fail with `EOPNOTSUPP` than take as long as writing zeroes would.
        fast_only: bool,
    },
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// Where it begins, in bytes from the start of the volume; 0 for a flush.
    pub offset: u64,
    /// The data of a read or write, which is as long as its buffer; empty for anything else.
    pub buffer: Buffer,
    /// Anything that lets the client recognise it.
    pub token: u64,
    /// The priority of its own; [`IoPriority::UNSET`] for that of the client's [`Context`](crate::Context).
    pub ioprio: IoPriority,
}

impl Request {
    /// A request with the priority of its client.
    #[must_use]
    pub fn new(operation: Operation, offset: u64, buffer: Buffer, token: u64) -> Request {
        Request { operation, offset, buffer, token, ioprio: IoPriority::UNSET }
    }

    /// Reads as much as the buffer holds.
    #[must_use]
    pub fn read(offset: u64, buffer: Buffer, token: u64) -> Request {
        Request::new(Operation::Read, offset, buffer, token)
    }

    /// Writes the buffer.
    #[must_use]
    pub fn write(offset: u64, buffer: Buffer, token: u64) -> Request {
        Request::new(Operation::Write { durable: false }, offset, buffer, token)
    }

    /// Flushes.
    #[must_use]
    pub fn flush(token: u64) -> Request {
        Request::new(Operation::Flush, 0, Buffer::EMPTY, token)
    }

    /// Discards.
    #[must_use]
    pub fn discard(offset: u64, bytes: u64, token: u64) -> Request {
        Request::new(Operation::Discard { bytes }, offset, Buffer::EMPTY, token)
    }

    /// Zeroes, which may take as long as it takes and may leave holes.
    #[must_use]
    pub fn write_zeroes(offset: u64, bytes: u64, token: u64) -> Request {
        let operation = Operation::WriteZeroes { bytes, may_unmap: true, fast_only: false };
        Request::new(operation, offset, Buffer::EMPTY, token)
    }

    /// How much of the volume it covers, in bytes.
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

/// The completion of a request: each has exactly one, in no particular order, unless its client is dropped before.
#[derive(Debug)]
pub struct Completion {
    /// The request's.
    pub token: u64,
    /// How it ended.
    pub result: Result<(), Errno>,
    /// The request's buffer; of a read that went well, the data.
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
    /// The request makes no sense: it is empty, or longer than [`TRANSFER_BYTES_MAX`].
    pub const INVAL: Errno = Errno(22);
    /// It reaches beyond the end of the volume, or the storage behind it is full.
    pub const NOSPC: Errno = Errno(28);
    /// The volume cannot do that, or not fast.
    pub const OPNOTSUPP: Errno = Errno(95);
    /// The engine has been stopped.
    pub const SHUTDOWN: Errno = Errno(108);
    /// The client took the request back before it was on its way.
    pub const CANCELED: Errno = Errno(125);
}

impl Errno {
    /// How a bio ended.
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
