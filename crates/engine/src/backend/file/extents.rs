//! Where a file has data and where holes.

use std::fs::File;
use std::io;
use std::ops::Range;

use hoistway_blk::SECTOR_BYTES;
use rustix::fs::{SeekFrom, seek};

use crate::backend::Extent;

/// What of a range of bytes, whole sectors, is data and what are holes: the first `most` parts, or one more.
///
/// Behind the end of a file that has become shorter is no hole: it would be taken for zeroes, and a read of it fails.
///
/// # Errors
/// If the system does not say.
pub fn extents_of(file: &File, bytes: Range<u64>, most: usize) -> io::Result<Vec<Extent>> {
    let Range { start: mut at, end } = bytes;
    let mut extents = Vec::new();
    let push = |extents: &mut Vec<Extent>, from: u64, to: u64, is_hole| {
        if to > from {
            extents.push(Extent { sectors: (to - from) / SECTOR_BYTES, is_hole });
        }
    };
    while at < end && (extents.is_empty() || extents.len() < most) {
        // Data begins and ends somewhere in its sector, and counts as all of it.
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => (data / SECTOR_BYTES * SECTOR_BYTES).min(end),
            // Holes up to its end, which somebody may have moved.
            Err(rustix::io::Errno::NXIO) => file.metadata()?.len().next_multiple_of(SECTOR_BYTES).clamp(at, end),
            // A file system that cannot tell has no holes.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(errno.into()),
        };
        push(&mut extents, at, data, true);
        let hole = seek(file, SeekFrom::Hole(data)).unwrap_or(end).next_multiple_of(SECTOR_BYTES).min(end);
        push(&mut extents, data, hole, false);
        at = hole.max(data);
    }
    Ok(extents)
}
