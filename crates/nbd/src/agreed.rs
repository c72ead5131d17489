//! The result of a handshake.
//!
//! Used by: `reply`, `handshake`, `request`; crate `serve`.
//! Tests: `crates/nbd/tests/requests.rs`, `crates/nbd/tests/handshake.rs`.

/// The form of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replies {
    /// A header, followed by the data of a successful READ.
    Simple,
    /// In chunks.
    Chunks,
    /// In chunks, with lengths of 64 bits in both directions.
    ExtendedChunks,
}

impl Replies {
    /// Whether replies come in chunks.
    #[must_use]
    pub const fn are_chunks(self) -> bool {
        !matches!(self, Replies::Simple)
    }
}

/// What client and server agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Index of the export among the server's.
    pub export: usize,
    /// The form of replies.
    pub replies: Replies,
    /// Whether `BLOCK_STATUS` may ask for `base:allocation`.
    pub allocation: bool,
}
