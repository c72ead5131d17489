//! Replies to requests. Data is not copied here: a header is written, and the caller sends the data after it.
//!
//! Used by: crate `serve`.
//! Tests: `crates/nbd/tests/requests.rs`, `crates/nbd/tests/any_bytes.rs`.

use crate::agreed::Replies;
use crate::fields::Put as _;
use crate::refusal::Refusal;
use crate::request::Origin;
use crate::wire::{
    BASE_ALLOCATION_ID, CHUNK_DONE, CHUNK_MAGIC, EXTENDED_CHUNK_MAGIC, SIMPLE_REPLY_MAGIC, chunk, extent_flag,
};

/// The longest header before data, in bytes: an extended chunk with its offset.
pub const REPLY_HEADER_BYTES_MAX: usize = 40;
/// Maximum extents in one reply.
pub const EXTENTS_MAX: usize = 1 << 16;

/// An extent of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Its length in bytes.
    pub length: u64,
    /// Whether nothing is allocated.
    pub hole: bool,
    /// Whether it reads as zeroes.
    pub zero: bool,
}

/// Writes the replies of one connection.
#[derive(Clone, Copy, Debug)]
pub struct ReplyWriter(Replies);

impl ReplyWriter {
    /// A writer for replies of this form.
    #[must_use]
    pub const fn new(replies: Replies) -> ReplyWriter {
        ReplyWriter(replies)
    }

    /// A request without data has succeeded.
    pub fn done(self, origin: Origin, out: &mut Vec<u8>) {
        match self.0 {
            // With old-style chunks a simple reply is also allowed, and shorter; not with extended headers.
            Replies::Simple | Replies::Chunks => simple(origin, 0, out),
            Replies::ExtendedChunks => self.chunk(CHUNK_DONE, chunk::NONE, origin, 0, out),
        }
    }

    /// A request has failed.
    pub fn refused(self, origin: Origin, refusal: Refusal, out: &mut Vec<u8>) {
        match self.0 {
            Replies::Simple => simple(origin, refusal.code(), out),
            Replies::Chunks if !origin.is_read => simple(origin, refusal.code(), out),
            Replies::Chunks | Replies::ExtendedChunks => {
                self.chunk(CHUNK_DONE, chunk::ERROR, origin, 6, out);
                out.put_u32(refusal.code());
                out.put_u16(0);
            }
        }
    }

    /// The header before `length` bytes of data, which the caller sends directly after it. Simple replies have only one
    /// header per request, the last.
    pub fn data_header(self, origin: Origin, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        if self.0 == Replies::Simple {
            debug_assert!(last, "a simple reply has no parts");
            return simple(origin, 0, out);
        }
        self.chunk(done_flag(last), chunk::OFFSET_DATA, origin, u64::from(length) + 8, out);
        out.put_u64(offset);
    }

    /// A part of a READ that is all zeroes; not with simple replies.
    pub fn hole(self, origin: Origin, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        debug_assert!(self.0.are_chunks(), "a simple reply has no holes");
        self.chunk(done_flag(last), chunk::OFFSET_HOLE, origin, 12, out);
        out.put_u64(offset);
        out.put_u32(length);
    }

    /// The reply to BLOCK_STATUS: extents from the start of the range. Extents beyond the range are cut off, adjacent
    /// equal ones are merged, and if only one is wanted it is the first.
    pub fn block_status(
        self,
        origin: Origin,
        length: u64,
        one: bool,
        extents: impl IntoIterator<Item = Extent>,
        out: &mut Vec<u8>,
    ) {
        // 32-bit lengths have to stay multiples of any block size.
        let length_max = if self.0 == Replies::ExtendedChunks { u64::MAX } else { u64::from(u32::MAX) & !0xffff };
        let extents = clip_extents(extents, length, length_max, if one { 1 } else { EXTENTS_MAX });
        let count = extents.len() as u64;
        if self.0 == Replies::ExtendedChunks {
            self.chunk(CHUNK_DONE, chunk::BLOCK_STATUS_EXT, origin, 8 + 16 * count, out);
            out.put_u32(BASE_ALLOCATION_ID);
            out.put_u32(extents.len() as u32);
            for (length, flags) in extents {
                out.put_u64(length);
                out.put_u64(u64::from(flags));
            }
        } else {
            self.chunk(CHUNK_DONE, chunk::BLOCK_STATUS, origin, 4 + 8 * count, out);
            out.put_u32(BASE_ALLOCATION_ID);
            for (length, flags) in extents {
                out.put_u32(length as u32);
                out.put_u32(flags);
            }
        }
    }

    fn chunk(self, flags: u16, kind: u16, origin: Origin, length: u64, out: &mut Vec<u8>) {
        let extended = self.0 == Replies::ExtendedChunks;
        out.put_u32(if extended { EXTENDED_CHUNK_MAGIC } else { CHUNK_MAGIC });
        out.put_u16(flags);
        out.put_u16(kind);
        out.put_u64(origin.cookie);
        if extended {
            out.put_u64(origin.offset);
            out.put_u64(length);
        } else {
            out.put_u32(length as u32);
        }
    }
}

fn simple(origin: Origin, error: u32, out: &mut Vec<u8>) {
    out.put_u32(SIMPLE_REPLY_MAGIC);
    out.put_u32(error);
    out.put_u64(origin.cookie);
}

const fn done_flag(last: bool) -> u16 {
    if last { CHUNK_DONE } else { 0 }
}

/// Lengths and flags to send: at most `count_max`, none longer than `length_max` or beyond `length`, and at least one.
fn clip_extents(
    extents: impl IntoIterator<Item = Extent>,
    length: u64,
    length_max: u64,
    count_max: usize,
) -> Vec<(u64, u32)> {
    let mut clipped: Vec<(u64, u32)> = Vec::new();
    let mut range_left = length;
    for extent in extents {
        let hole = if extent.hole { extent_flag::HOLE } else { 0 };
        let flags = hole | if extent.zero { extent_flag::ZERO } else { 0 };
        let mut remaining = extent.length.min(range_left);
        range_left -= remaining;
        if let Some(last) = clipped.last_mut().filter(|last| last.1 == flags) {
            let added = remaining.min(length_max - last.0);
            last.0 += added;
            remaining -= added;
        }
        while remaining > 0 && clipped.len() < count_max {
            let piece = remaining.min(length_max);
            clipped.push((piece, flags));
            remaining -= piece;
        }
        // An extent that had to be cut ends the list: the next one would not be adjacent to it.
        if remaining > 0 || range_left == 0 {
            break;
        }
    }
    if clipped.is_empty() {
        // A reply has at least one extent, and "allocated data" is always allowed.
        clipped.push((length.min(length_max), 0));
    }
    clipped
}
