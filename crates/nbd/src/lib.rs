//! The server's side of NBD, the network block device, without sockets, threads and clocks: bytes in, requests and bytes
//! out.
//!
//! Used by: crate `serve`.
//! Tests: `crates/nbd/tests/`.
//!
//! 1. A [`Handshake`] takes the options of the client and replies until both agree on an export ([`Agreed`]): fixed newstyle with
//!    `GO`, `INFO`, `LIST`, `EXPORT_NAME`, `ABORT`, `STARTTLS`, structured replies, extended headers, `base:allocation`.
//! 2. [`Requests`] reads the headers of requests. An accepted [`Request`] lies within the export and is allowed; others become a
//!    [`Refusal`], or a [`Violation`] after which the connection cannot continue.
//! 3. A [`ReplyWriter`] writes the headers of replies: simple, in chunks, or in chunks with 64-bit lengths.
//!
//! No input of a client causes a panic, and no input is buffered here: the caller's buffer must hold one option
//! ([`OPTION_BYTES_MAX`]) during the handshake, and one header afterwards.
//!
//! ```
//! use hoistway_nbd::{Agreed, Command, Export, Received, Refusal, Replies, ReplyWriter, Requests};
//!
//! let export = Export::new("vm1", 1 << 20);
//! let agreed = Agreed { export: 0, replies: Replies::Simple, allocation: false };
//!
//! // A read of 512 bytes, right behind the end.
//! let mut header = Vec::from(0x2560_9513_u32.to_be_bytes());
//! header.extend([0, 0, 0, 0]);
//! header.extend(77_u64.to_be_bytes());
//! header.extend((1_u64 << 20).to_be_bytes());
//! header.extend(512_u32.to_be_bytes());
//!
//! let Some(Received::Refused { origin, refusal, .. }) = Requests::new(agreed, &export).read(&header) else {
//!     panic!("it is refused");
//! };
//! assert_eq!(refusal, Refusal::Invalid);
//!
//! let mut out = Vec::new();
//! ReplyWriter::new(agreed.replies).refused(origin, refusal, &mut out);
//! assert_eq!(out.len(), 16);
//! ```

mod agreed;
mod export;
mod fields;
mod handshake;
mod options;
mod refusal;
mod reply;
mod request;
pub mod wire;

pub use agreed::{Agreed, Replies};
pub use export::Export;
pub use handshake::{ANSWERS_BYTES_MAX, DROPPED_BYTES_MAX, Departure, Handshake, OPTION_BYTES_MAX, Progress, Tls};
pub use refusal::Refusal;
pub use reply::{EXTENTS_MAX, Extent, REPLY_HEADER_BYTES_MAX, ReplyWriter};
pub use request::{Command, Origin, REQUEST_HEADER_BYTES_MAX, Received, Request, Requests, Violation};
