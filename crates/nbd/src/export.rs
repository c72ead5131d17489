//! What a server offers.

use crate::wire::transmission_flag as flag;

/// A disk that clients can ask for by name. The empty name also selects the first one of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// Its name; at most [`STRING_BYTES_MAX`](crate::wire::STRING_BYTES_MAX) bytes.
    pub name: String,
    /// What it is, for people; may be empty.
    pub description: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// Whether distance costs time.
    pub rotational: bool,
    /// Whether TRIM does something.
    pub trim: bool,
    /// Whether `FAST_ZERO` can be honoured: zeroes are never slower than data, or are refused.
    pub fast_zero: bool,
    /// Requests are multiples of this, in bytes; a power of two.
    pub block_bytes_min: u32,
    /// Requests of multiples of this are fast, in bytes; a power of two.
    pub block_bytes_preferred: u32,
    /// Most data in a request or in a reply, in bytes.
    pub payload_bytes_max: u32,
}

impl Export {
    /// One of that size that can everything, with blocks of 512 bytes.
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

    /// The transmission flags, for a client with replies in chunks or without.
    #[must_use]
    pub fn flags(&self, chunks: bool) -> u16 {
        // What a client may not do is not announced: it should learn it now, not by an error.
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
        optional.iter().filter(|(holds, _)| *holds).fold(always, |flags, (_, bits)| flags | bits)
    }
}

/// The export that a client means.
pub(crate) fn named<'a>(exports: &'a [Export], name: &str) -> Option<(usize, &'a Export)> {
    let mut all = exports.iter().enumerate();
    if name.is_empty() {
        // One that is really called so comes first.
        return all.find(|(_, export)| export.name.is_empty()).or_else(|| exports.first().map(|export| (0, export)));
    }
    all.find(|(_, export)| export.name == name)
}
