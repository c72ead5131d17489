//! What a handshake ended with.

/// The form of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replies {
    /// One header, and the data if it is a READ that went well.
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

/// What client and server agreed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// The export, by its position among the server's.
    pub export: usize,
    /// The form of replies.
    pub replies: Replies,
    /// Whether `BLOCK_STATUS` may ask for `base:allocation`.
    pub allocation: bool,
}
