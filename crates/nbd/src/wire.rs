//! The numbers of the protocol. All integers on the wire are big endian.
//!
//! Used by: `handshake`, `request`, `export`, `options`, `reply`; crate `serve`.
//! Tests: `crates/nbd/tests/handshake.rs`, `crates/nbd/tests/requests.rs`.

/// The first eight bytes that a server sends: `NBDMAGIC`.
pub const GREETING_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Precedes the server's handshake flags and every option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Precedes every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Precedes a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Precedes a request with extended headers.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Precedes a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Precedes a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// Precedes a chunk with extended headers.
pub const EXTENDED_CHUNK_MAGIC: u32 = 0x6e8a_278c;

/// Flags of the handshake; server and client use the same bits.
pub mod handshake_flag {
    /// Fixed newstyle: options have replies.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The 124 zero bytes after the reply to `EXPORT_NAME` are left out.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// Options of the handshake.
pub mod option {
    /// Chooses an export and ends the handshake; the only option of clients that are not of fixed newstyle.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the session.
    pub const ABORT: u32 = 2;
    /// Lists the exports.
    pub const LIST: u32 = 3;
    /// Starts TLS.
    pub const STARTTLS: u32 = 5;
    /// Asks about an export.
    pub const INFO: u32 = 6;
    /// Asks about an export and ends the handshake.
    pub const GO: u32 = 7;
    /// Asks for replies in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Lists the metadata contexts of an export.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses metadata contexts for block status.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Asks for 64-bit lengths, which includes replies in chunks.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Types of replies to options. Those with the highest bit are errors, and their data is text for people.
pub mod option_reply {
    /// Success; the last reply to an option.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// Information about an export; see [`info`](super::info).
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    const ERROR: u32 = 1 << 31;
    /// Unknown option.
    pub const ERR_UNSUP: u32 = ERROR + 1;
    /// Known, but not allowed here.
    pub const ERR_POLICY: u32 = ERROR + 2;
    /// The data does not fit the option, or the option the state.
    pub const ERR_INVALID: u32 = ERROR + 3;
    /// TLS is required first.
    pub const ERR_TLS_REQD: u32 = ERROR + 5;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = ERROR + 6;
    /// More data than the server accepts.
    pub const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// Types of information about an export.
pub mod info {
    /// u64 size in bytes, u16 [transmission flags](super::transmission_flag); always sent.
    pub const EXPORT: u16 = 0;
    /// The name of the export, sent on request.
    pub const NAME: u16 = 1;
    /// Its description.
    pub const DESCRIPTION: u16 = 2;
    /// u32 minimum, u32 preferred block size, u32 maximum payload.
    pub const BLOCK_SIZE: u16 = 3;
}

/// The features of an export, in 16 bits.
pub mod transmission_flag {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1 << 0;
    /// Nothing may be written.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The flag FUA is supported, with every command.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Seeks cost time: clients should schedule as for a rotating disk.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` and its flag `NO_HOLE` are supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The flag DF is supported; only with replies in chunks.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers writes completed on any connection, and all see the same data.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is supported.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The flag `FAST_ZERO` is supported.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests.
pub mod command {
    /// Reads.
    pub const READ: u16 = 0;
    /// Writes; the data follows the header.
    pub const WRITE: u16 = 1;
    /// The client disconnects; no reply.
    pub const DISCONNECT: u16 = 2;
    /// Makes completed writes durable.
    pub const FLUSH: u16 = 3;
    /// The data is no longer needed.
    pub const TRIM: u16 = 4;
    /// The data will be needed soon.
    pub const CACHE: u16 = 5;
    /// Writes zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Asks where holes and zeroes are.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod command_flag {
    /// Durable before the reply.
    pub const FUA: u16 = 1 << 0;
    /// `WRITE_ZEROES` leaves no hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply to READ is one chunk.
    pub const DF: u16 = 1 << 2;
    /// The reply to `BLOCK_STATUS` has one extent.
    pub const REQ_ONE: u16 = 1 << 3;
    /// `WRITE_ZEROES` fails at once if it would be no faster than a write.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// Extended headers only: the length is that of a payload, not of the effect.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// The flag of the last chunk of a reply.
pub const CHUNK_DONE: u16 = 1 << 0;

/// Types of chunks. Those with the highest bit are errors.
pub mod chunk {
    /// Only marks the end.
    pub const NONE: u16 = 0;
    /// u64 offset, data.
    pub const OFFSET_DATA: u16 = 1;
    /// u64 offset, u32 length of zeroes.
    pub const OFFSET_HOLE: u16 = 2;
    /// u32 context, then extents of u32 length and u32 flags.
    pub const BLOCK_STATUS: u16 = 5;
    /// u32 context, u32 count, then extents of u64 length and u64 flags.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// u32 error, u16 length of a text, the text.
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// The metadata context that says what is allocated.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// The number of [`BASE_ALLOCATION`] in replies.
pub const BASE_ALLOCATION_ID: u32 = 1;

/// Flags of an extent of [`BASE_ALLOCATION`].
pub mod extent_flag {
    /// Nothing is allocated.
    pub const HOLE: u32 = 1 << 0;
    /// Reads as zeroes.
    pub const ZERO: u32 = 1 << 1;
}

/// Longest name of an export, and longest other string, in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
