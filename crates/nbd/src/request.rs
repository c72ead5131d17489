//! Requests: parsing and checking their headers.
//!
//! Used by: `reply`; crate `serve`.
//! Tests: `crates/nbd/tests/requests.rs`, `crates/nbd/tests/any_bytes.rs`.

use crate::agreed::{Agreed, Replies};
use crate::export::Export;
use crate::fields::Fields;
use crate::refusal::Refusal;
use crate::wire::{EXTENDED_REQUEST_MAGIC, REQUEST_MAGIC, command, command_flag as flag};

/// The longest header of a request, in bytes.
pub const REQUEST_HEADER_BYTES_MAX: usize = 32;

/// The command of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Read data; in one chunk if `unfragmented`.
    Read {
        /// Whether the reply must be a single chunk.
        unfragmented: bool,
    },
    /// Write the data after the header.
    Write {
        /// Durable before the reply.
        fua: bool,
    },
    /// Make writes durable that completed before.
    Flush,
    /// The data is no longer needed.
    Trim {
        /// Durable before the reply.
        fua: bool,
    },
    /// The data will be needed soon.
    Cache,
    /// Write zeroes.
    WriteZeroes {
        /// Durable before the reply.
        fua: bool,
        /// The blocks stay allocated.
        no_hole: bool,
        /// Fail at once, with [`Refusal::NotSupported`], if it would be no faster than a write.
        fast: bool,
    },
    /// Where holes and zeroes are.
    BlockStatus {
        /// Whether only one extent is wanted, within the range.
        one: bool,
    },
}

/// A valid request: it lies within the export, and the export allows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The client's identifier for it.
    pub cookie: u64,
    /// The command.
    pub command: Command,
    /// First byte; for a flush the client's value, which has no meaning.
    pub offset: u64,
    /// Number of bytes; 0 for a flush. For a write it is the size of the data after the header.
    pub length: u64,
}

/// The parts of a request that its reply repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The client's identifier for it.
    pub cookie: u64,
    /// First byte, as sent by the client.
    pub offset: u64,
    /// Whether it is a READ, whose errors have a special form with [`Replies::Chunks`].
    pub is_read: bool,
}

impl Request {
    /// The parts that its reply repeats.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        Origin { cookie: self.cookie, offset: self.offset, is_read: matches!(self.command, Command::Read { .. }) }
    }
}

/// The result of reading a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// A valid request.
    Request(Request),
    /// A request to refuse, after its data has been discarded.
    Refused {
        /// The parts that the reply repeats.
        origin: Origin,
        /// The reason.
        refusal: Refusal,
        /// Bytes of its data.
        payload_bytes: u64,
    },
    /// The client disconnects: requests in flight complete, and no more are accepted.
    Disconnect,
    /// Nothing that follows could be understood: the connection is closed.
    Violation(Violation),
}

/// Why a connection cannot continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// The bytes received are not a request.
    NotARequest(u32),
    /// More data than the server's maximum.
    OversizedPayload(u64),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::NotARequest(magic) => write!(f, "not a request: it begins with {magic:#010x}"),
            Violation::OversizedPayload(bytes) => write!(f, "a request with too much data ({bytes} bytes)"),
        }
    }
}

/// Reads the requests of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    extended: bool,
    allocation: bool,
    chunks: bool,
    size_bytes: u64,
    read_only: bool,
    trim: bool,
    fast_zero: bool,
    block_bytes_min: u64,
    payload_bytes_max: u64,
}

impl Requests {
    /// A reader for a client with this agreement and export.
    #[must_use]
    pub fn new(agreed: Agreed, export: &Export) -> Requests {
        Requests {
            extended: agreed.replies == Replies::ExtendedChunks,
            allocation: agreed.allocation,
            chunks: agreed.replies.are_chunks(),
            size_bytes: export.size_bytes,
            read_only: export.read_only,
            trim: export.trim,
            fast_zero: export.fast_zero,
            block_bytes_min: u64::from(export.block_bytes_min),
            payload_bytes_max: u64::from(export.payload_bytes_max),
        }
    }

    /// Bytes of a header.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        if self.extended { REQUEST_HEADER_BYTES_MAX } else { 28 }
    }

    /// Reads the header at the front of `input`; `None` if it is incomplete and not a violation yet.
    #[must_use]
    pub fn read(&self, input: &[u8]) -> Option<Received> {
        let mut fields = Fields(input);
        let magic = fields.u32()?;
        if magic != if self.extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC } {
            return Some(Received::Violation(Violation::NotARequest(magic)));
        }
        let header = RequestHeader {
            flags: fields.u16()?,
            kind: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: if self.extended { fields.u64()? } else { u64::from(fields.u32()?) },
        };
        Some(self.check(header))
    }

    fn check(&self, header: RequestHeader) -> Received {
        // Only extended headers have a flag for data after the header.
        let has_payload = if self.extended { header.has(flag::PAYLOAD_LEN) } else { header.kind == command::WRITE };
        let payload_bytes = if has_payload && header.kind != command::DISCONNECT { header.length } else { 0 };
        if payload_bytes > self.payload_bytes_max {
            return Received::Violation(Violation::OversizedPayload(payload_bytes));
        }
        if header.kind == command::DISCONNECT {
            return Received::Disconnect;
        }
        let checked = self.command(header).and_then(|command| {
            self.check_range(command, header)?;
            Ok(command)
        });
        let RequestHeader { cookie, offset, length, .. } = header;
        match checked {
            // The range of a flush has no meaning.
            Ok(Command::Flush) => Received::Request(Request { cookie, command: Command::Flush, offset, length: 0 }),
            Ok(command) => Received::Request(Request { cookie, command, offset, length }),
            Err(refusal) => {
                let origin = Origin { cookie, offset, is_read: header.kind == command::READ };
                Received::Refused { origin, refusal, payload_bytes }
            }
        }
    }

    /// The command, if it was negotiated and its flags are allowed.
    fn command(&self, header: RequestHeader) -> Result<Command, Refusal> {
        let fua = header.has(flag::FUA);
        let (allowed, command) = match header.kind {
            command::READ => {
                (if self.chunks { flag::DF } else { 0 }, Command::Read { unfragmented: header.has(flag::DF) })
            }
            command::WRITE => (if self.extended { flag::PAYLOAD_LEN } else { 0 }, Command::Write { fua }),
            command::FLUSH => (0, Command::Flush),
            command::TRIM if self.trim => (0, Command::Trim { fua }),
            command::CACHE => (0, Command::Cache),
            command::WRITE_ZEROES => {
                let fast_zero = if self.fast_zero { flag::FAST_ZERO } else { 0 };
                let (no_hole, fast) = (header.has(flag::NO_HOLE), header.has(flag::FAST_ZERO));
                (flag::NO_HOLE | fast_zero, Command::WriteZeroes { fua, no_hole, fast })
            }
            command::BLOCK_STATUS if self.allocation => {
                (flag::REQ_ONE, Command::BlockStatus { one: header.has(flag::REQ_ONE) })
            }
            _ => return Err(Refusal::Invalid),
        };
        // Once announced, FUA may come with any command; it is ignored if nothing is written.
        let allowed = allowed | flag::FUA;
        if header.flags & !allowed != 0 {
            return Err(Refusal::Invalid);
        }
        // Without the flag the length is not that of a payload, so there would be no data to write.
        if self.extended && header.kind == command::WRITE && !header.has(flag::PAYLOAD_LEN) {
            return Err(Refusal::Invalid);
        }
        Ok(command)
    }

    fn check_range(&self, command: Command, header: RequestHeader) -> Result<(), Refusal> {
        let writes = matches!(command, Command::Write { .. } | Command::Trim { .. } | Command::WriteZeroes { .. });
        if writes && self.read_only {
            return Err(Refusal::NotPermitted);
        }
        if command == Command::Flush {
            return Ok(());
        }
        let RequestHeader { offset, length, .. } = header;
        if length == 0 || !offset.is_multiple_of(self.block_bytes_min) || !length.is_multiple_of(self.block_bytes_min) {
            return Err(Refusal::Invalid);
        }
        if offset.checked_add(length).is_none_or(|end| end > self.size_bytes) {
            let lacks_space = matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
            return Err(if lacks_space { Refusal::NoSpace } else { Refusal::Invalid });
        }
        match command {
            Command::Read { unfragmented: true } if length > self.payload_bytes_max => Err(Refusal::Overflow),
            Command::Read { .. } if length > self.payload_bytes_max => Err(Refusal::Invalid),
            _ => Ok(()),
        }
    }
}

/// A header as received.
#[derive(Clone, Copy)]
struct RequestHeader {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u64,
}

impl RequestHeader {
    const fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}
