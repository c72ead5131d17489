//! Memory that holds only written chunks: the content of targets in memory.

use std::sync::{Mutex, OnceLock, PoisonError};

use hoistway_blk::ground::{SECTOR_BYTES, Sector};

use super::Extent;

/// Bytes of a chunk, the unit of allocation and of holes.
const CHUNK: u64 = 64 << 10;
const CHUNK_SECTORS: u64 = CHUNK / SECTOR_BYTES;

/// Chunks of a region: a disk of 8 TB has 30,000 regions, of which only the written ones take space.
const REGION: u64 = 4096;

type Chunk = Option<Box<[u8]>>;
type Region = Box<[Mutex<Chunk>]>;

/// The content. Each chunk has its own lock, so transfers to different places do not contend.
pub struct SparseBytes {
    regions: Box<[OnceLock<Region>]>,
    bytes: u64,
}

impl SparseBytes {
    /// This many bytes, all zero.
    pub fn new(bytes: u64) -> Self {
        SparseBytes { regions: (0..bytes.div_ceil(CHUNK * REGION)).map(|_| OnceLock::new()).collect(), bytes }
    }

    /// Reads from `at`.
    pub fn read(&self, at: u64, buffer: &mut [u8]) {
        let mut rest = buffer;
        self.for_each_chunk(at, rest.len() as u64, |chunk, within, len| {
            let (piece, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            match chunk {
                Some(bytes) => piece.copy_from_slice(&bytes[within..within + len]),
                None => piece.fill(0),
            }
        });
    }

    /// Writes at `at`.
    pub fn write(&self, at: u64, from: &[u8]) {
        let mut rest = from;
        self.for_each_chunk(at, from.len() as u64, |chunk, within, len| {
            let (piece, behind) = rest.split_at(len);
            rest = behind;
            chunk.get_or_insert_with(zeroes)[within..within + len].copy_from_slice(piece);
        });
    }

    /// Writes zeroes; whole chunks are freed if that is allowed, and allocated otherwise.
    pub fn zero(&self, at: u64, bytes: u64, may_unmap: bool) {
        self.for_each_chunk_of((at, bytes), may_unmap, |chunk, within, len| match chunk {
            _ if may_unmap && len as u64 == CHUNK => *chunk = None,
            Some(bytes) => bytes[within..within + len].fill(0),
            None if may_unmap => {}
            None => *chunk = Some(zeroes()),
        });
    }

    /// Data and holes of a range: all parts, or the first `extents_max`, at least one.
    pub fn extents(&self, from: Sector, to: Sector, extents_max: usize) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        let mut sector = from.0;
        while sector < to.0 {
            let step = if self.has_region(sector / CHUNK_SECTORS) { CHUNK_SECTORS } else { CHUNK_SECTORS * REGION };
            let end = ((sector / step + 1) * step).min(to.0);
            let is_hole = step > CHUNK_SECTORS || self.chunk(sector / CHUNK_SECTORS, |chunk| chunk.is_none());
            let has_enough = extents.len() >= extents_max.max(1);
            match extents.last_mut() {
                Some(last) if last.is_hole == is_hole => last.bytes += (end - sector) * SECTOR_BYTES,
                _ if has_enough => break,
                _ => extents.push(Extent { bytes: (end - sector) * SECTOR_BYTES, is_hole }),
            }
            sector = end;
        }
        extents
    }

    /// Calls `body` with each chunk of a range, the offset of the range in the chunk, and the number of bytes there.
    fn for_each_chunk(&self, at: u64, bytes: u64, body: impl FnMut(&mut Chunk, usize, usize)) {
        self.for_each_chunk_of((at, bytes), false, body);
    }

    /// The same, but may skip regions that were never written.
    fn for_each_chunk_of(
        &self,
        (at, bytes): (u64, u64),
        skip_unwritten: bool,
        mut body: impl FnMut(&mut Chunk, usize, usize),
    ) {
        debug_assert!(at + bytes <= self.bytes, "the range lies within the capacity");
        let (mut at, end) = (at, at + bytes);
        while at < end {
            if skip_unwritten && !self.has_region(at / CHUNK) {
                at = (at / (CHUNK * REGION) + 1) * CHUNK * REGION;
                continue;
            }
            let within = at % CHUNK;
            let len = (CHUNK - within).min(end - at);
            self.chunk(at / CHUNK, |chunk| body(chunk, within as usize, len as usize));
            at += len;
        }
    }

    /// Whether the region of this chunk was ever written.
    fn has_region(&self, chunk: u64) -> bool {
        self.regions[(chunk / REGION) as usize].get().is_some()
    }

    fn chunk<R>(&self, index: u64, body: impl FnOnce(&mut Chunk) -> R) -> R {
        let region = &self.regions[(index / REGION) as usize];
        let region = region.get_or_init(|| (0..REGION).map(|_| Mutex::new(None)).collect());
        body(&mut region[(index % REGION) as usize].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn zeroes() -> Box<[u8]> {
    vec![0; CHUNK as usize].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_ranges_are_holes_and_read_as_zeroes() {
        let bytes = SparseBytes::new(4 * CHUNK);
        bytes.write(2 * CHUNK - 3, &[1, 2, 3, 4, 5]);
        let mut read = [9; 7];
        bytes.read(2 * CHUNK - 4, &mut read);
        assert_eq!(read, [0, 1, 2, 3, 4, 5, 0]);
        let extents = bytes.extents(Sector(8), Sector(4 * CHUNK_SECTORS), usize::MAX);
        let found: Vec<_> = extents.iter().map(|extent| (extent.bytes / SECTOR_BYTES, extent.is_hole)).collect();
        assert_eq!(found, [(CHUNK_SECTORS - 8, true), (2 * CHUNK_SECTORS, false), (CHUNK_SECTORS, true)]);
    }

    #[test]
    fn zeroing_gives_whole_chunks_up_only_if_it_may() {
        let bytes = SparseBytes::new(2 * CHUNK);
        bytes.write(0, &vec![7; 2 * CHUNK as usize]);
        bytes.zero(0, CHUNK + 1, true);
        assert!(bytes.extents(Sector(0), Sector(CHUNK_SECTORS), usize::MAX)[0].is_hole);
        let mut read = [9; 2];
        bytes.read(CHUNK, &mut read);
        assert_eq!(read, [0, 7]);
        bytes.zero(0, CHUNK, false);
        assert!(!bytes.extents(Sector(0), Sector(CHUNK_SECTORS), usize::MAX)[0].is_hole, "it was to stay allocated");
    }
}
