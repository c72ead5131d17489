//! The exports of a server.
//!
//! Used by: `handshake`, `request`; crate `serve`.
//! Tests: `crates/nbd/tests/handshake.rs`, `crates/nbd/tests/requests.rs`.

use crate::wire::transmission_flag as flag;

/// A disk that clients select by name. The empty name also selects the first export of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Its name; at most [`STRING_BYTES_MAX`](crate::wire::STRING_BYTES_MAX) bytes.
    pub name: String,
    /// A description for users; may be empty.
    pub description: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether it is read-only.
    pub read_only: bool,
    /// Whether seeks cost time.
    pub rotational: bool,
    /// Whether TRIM has an effect.
    pub trim: bool,
    /// Whether `FAST_ZERO` is supported: zeroing is never slower than writing, or is refused.
    pub fast_zero: bool,
    /// Requests are multiples of this, in bytes; a power of two.
    pub block_bytes_min: u32,
    /// Requests of multiples of this are fast, in bytes; a power of two.
    pub block_bytes_preferred: u32,
    /// Maximum data of a request or a reply, in bytes.
    pub payload_bytes_max: u32,
}

impl Export {
    /// An export of this size with all features, and blocks of 512 bytes.
    #[must_use]
    pub fn new(name: impl Into<String>, size_bytes: u64) -> Export {
        Export {
            name: name.into(),
            description: String::new(),
            size_bytes,
            read_only: false,
            rotational: false,
            trim: true,
            fast_zero: true,
            block_bytes_min: 512,
            block_bytes_preferred: 4096,
            payload_bytes_max: 32 << 20,
        }
    }

    /// The transmission flags for a client with or without replies in chunks.
    #[must_use]
    pub fn flags(&self, chunks: bool) -> u16 {
        // Commands that the client may not use are not announced, so that it knows before it gets an error.
        let writable = !self.read_only;
        let optional = [
            (self.read_only, flag::READ_ONLY),
            (self.rotational, flag::ROTATIONAL),
            (writable, flag::SEND_FUA | flag::SEND_WRITE_ZEROES),
            (writable && self.trim, flag::SEND_TRIM),
            (writable && self.fast_zero, flag::SEND_FAST_ZERO),
            (chunks, flag::SEND_DF),
        ];
        let always = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::CAN_MULTI_CONN | flag::SEND_CACHE;
        optional.iter().filter(|(is_set, _)| *is_set).fold(always, |flags, (_, bits)| flags | bits)
    }
}

/// The export that a client selects.
pub(crate) fn find_export<'a>(exports: &'a [Export], name: &str) -> Option<(usize, &'a Export)> {
    let mut indexed = exports.iter().enumerate();
    if name.is_empty() {
        // An export with an empty name has precedence.
        return indexed
            .find(|(_, export)| export.name.is_empty())
            .or_else(|| exports.first().map(|export| (0, export)));
    }
    indexed.find(|(_, export)| export.name == name)
}
