//! Requests: their headers, and what is wrong with them.

use crate::agreed::{Agreed, Replies};
use crate::export::Export;
use crate::fields::Fields;
use crate::refusal::Refusal;
use crate::wire::{EXTENDED_REQUEST_MAGIC, REQUEST_MAGIC, command, command_flag as flag};

/// The longest header of a request, in bytes.
pub const REQUEST_HEADER_BYTES_MAX: usize = 32;

/// What a client wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// The data; in one chunk if it is not to be fragmented.
    Read {
        /// One chunk only.
        unfragmented: bool,
    },
    /// The data follows the header.
    Write {
        /// Durable before the reply.
        fua: bool,
    },
    /// Writes that completed before become durable.
    Flush,
    /// The data is not needed any more.
    Trim {
        /// Durable before the reply.
        fua: bool,
    },
    /// The data will be needed soon.
    Cache,
    /// Zeroes.
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
        /// One extent only, and that within the range.
        one: bool,
    },
}

/// A request that makes sense: it lies within the export, and the export allows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The client's name for it.
    pub cookie: u64,
    /// What it wants.
    pub command: Command,
    /// First byte; of a flush whatever the client said.
    pub offset: u64,
    /// Number of bytes; 0 for a flush. For a write it is the size of the data that follows.
    pub length: u64,
}

/// What a reply repeats of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The client's name for it.
    pub cookie: u64,
    /// First byte, as the client said it.
    pub offset: u64,
    /// Whether it is a READ, whose errors have a form of their own with [`Replies::Chunks`].
    pub is_read: bool,
}

impl Request {
    /// What its reply repeats of it.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        Origin { cookie: self.cookie, offset: self.offset, is_read: matches!(self.command, Command::Read { .. }) }
    }
}

/// The result of reading a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Something to do.
    Request(Request),
    /// A request to refuse, once its data has been dropped.
    Refused {
        /// What the reply repeats of it.
        origin: Origin,
        /// Why.
        refusal: Refusal,
        /// Bytes of its data.
        payload_bytes: u64,
    },
    /// The client disconnects: in-flight requests complete, and no more are taken.
    Disconnect,
    /// Nothing that follows could be understood: the connection is closed.
    Violation(Violation),
}

/// What makes a connection unusable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Violation {
    /// Where a request should begin is something else.
    NotARequest(u32),
    /// More data than the server said that it takes.
    OversizedPayload(u64),
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::NotARequest(magic) => write!(f, "no request begins with {magic:#010x}"),
            Violation::OversizedPayload(bytes) => write!(f, "a request with {bytes} bytes of data"),
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
    /// For a client that agreed to this, about this export.
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

    /// Reads the header at the front of `input`; `None` if it has not come whole, and is no violation yet.
    #[must_use]
    pub fn read(&self, input: &[u8]) -> Option<Received> {
        let mut fields = Fields(input);
        let magic = fields.u32()?;
        if magic != if self.extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC } {
            return Some(Received::Violation(Violation::NotARequest(magic)));
        }
        let header = Header {
            flags: fields.u16()?,
            kind: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: if self.extended { fields.u64()? } else { u64::from(fields.u32()?) },
        };
        Some(self.judge(header))
    }

    fn judge(&self, header: Header) -> Received {
        // Only extended headers say with a flag whether data follows.
        let carries = if self.extended { header.has(flag::PAYLOAD_LEN) } else { header.kind == command::WRITE };
        let payload_bytes = if carries && header.kind != command::DISCONNECT { header.length } else { 0 };
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
        let Header { cookie, offset, length, .. } = header;
        match checked {
            // What a flush says about a range means nothing.
            Ok(Command::Flush) => Received::Request(Request { cookie, command: Command::Flush, offset, length: 0 }),
            Ok(command) => Received::Request(Request { cookie, command, offset, length }),
            Err(refusal) => {
                let origin = Origin { cookie, offset, is_read: header.kind == command::READ };
                Received::Refused { origin, refusal, payload_bytes }
            }
        }
    }

    /// The command, if it was negotiated and its flags are its own.
    fn command(&self, header: Header) -> Result<Command, Refusal> {
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
        // FUA may come with any command once it was announced; where nothing is written it means nothing.
        let allowed = allowed | flag::FUA;
        if header.flags & !allowed != 0 {
            return Err(Refusal::Invalid);
        }
        // Without the flag the length is not that of a payload, and there would be nothing to write.
        if self.extended && header.kind == command::WRITE && !header.has(flag::PAYLOAD_LEN) {
            return Err(Refusal::Invalid);
        }
        Ok(command)
    }

    fn check_range(&self, command: Command, header: Header) -> Result<(), Refusal> {
        let writes = matches!(command, Command::Write { .. } | Command::Trim { .. } | Command::WriteZeroes { .. });
        if writes && self.read_only {
            return Err(Refusal::NotPermitted);
        }
        if command == Command::Flush {
            return Ok(());
        }
        let Header { offset, length, .. } = header;
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

/// A header as it came.
#[derive(Clone, Copy)]
struct Header {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u64,
}

impl Header {
    const fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}
