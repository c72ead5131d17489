//! The request in a chain: copied once, then checked.
//!
//! Used by: `device`; crate `serve`.
//! Tests: `crates/vhost/tests/any_bytes.rs`.

use virtio_bindings::bindings::virtio_blk as blk;

use crate::chain::Chain;
use crate::config_space::{DISCARD_SECTORS_MAX, DISCARD_SEGMENTS_MAX, Disk, ID_BYTES, ZERO_SECTORS_MAX};
use crate::memory::GuestAddressSpace;

const HEADER_BYTES: u64 = 16;
const RANGE_BYTES: u64 = 16;
const SECTOR_BYTES: u64 = 512;

/// The status of a completed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// It failed; the protocol has no other error code.
    IoError = 1,
    /// Unknown request.
    Unsupported = 2,
}

/// A range of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Its start, in sectors.
    pub sector: u64,
    /// Its length in sectors; may be 0.
    pub sectors: u32,
    /// Whether the space may be deallocated.
    pub may_unmap: bool,
}

/// A valid request: its range exists, and the disk allows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Fill the writable descriptors, except for the status.
    Read {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes; more than 0.
        bytes: u32,
    },
    /// Write the driver's data after the header.
    Write {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes; more than 0.
        bytes: u32,
    },
    /// Make completed writes durable.
    Flush,
    /// Return the disk's id.
    Id,
    /// Discard the content of these ranges.
    Discard(Vec<Range>),
    /// Zero these ranges.
    WriteZeroes(Vec<Range>),
}

/// Why a chain is not a valid request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestRejection {
    /// It completes with this status.
    Complete(Status),
    /// There is no room for a status: the head is only returned.
    NoStatus,
}

/// Limits of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum data of a read or write, in bytes.
    pub data_bytes_max: u32,
}

const REFUSED: RequestRejection = RequestRejection::Complete(Status::IoError);

/// Parses the request of a chain.
///
/// # Errors
/// How to complete the request instead.
pub fn parse(
    chain: &Chain,
    space: &impl GuestAddressSpace,
    disk: &Disk,
    limits: Limits,
) -> Result<Request, RequestRejection> {
    // Checked first: without room for the status, the disk is not written.
    let status_at = chain.status_address().ok_or(RequestRejection::NoStatus)?;
    if !space.write(status_at, &[Status::IoError as u8]) {
        return Err(RequestRejection::NoStatus);
    }
    let mut header = [0; HEADER_BYTES as usize];
    if chain.is_out_of_order() || !chain.gather(space, 0, &mut header) {
        return Err(REFUSED);
    }
    let [kind, sector] =
        [&header[..4], &header[8..]].map(|bytes| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)));
    let (out_bytes, in_bytes) = (chain.readable_bytes() - HEADER_BYTES, chain.writable_bytes() - 1);
    let transfer = |bytes: u64| {
        let bytes = u32::try_from(bytes).ok().filter(|&bytes| bytes <= limits.data_bytes_max).ok_or(REFUSED)?;
        let is_aligned = bytes > 0 && u64::from(bytes).is_multiple_of(SECTOR_BYTES);
        if !is_aligned || !exists(sector, u64::from(bytes) / SECTOR_BYTES, disk) {
            return Err(REFUSED);
        }
        Ok((sector * SECTOR_BYTES, bytes))
    };
    let check_writable = || if disk.read_only { Err(REFUSED) } else { Ok(()) };
    match kind as u32 {
        blk::VIRTIO_BLK_T_IN => transfer(in_bytes).map(|(offset, bytes)| Request::Read { offset, bytes }),
        blk::VIRTIO_BLK_T_OUT => {
            check_writable()?;
            transfer(out_bytes).map(|(offset, bytes)| Request::Write { offset, bytes })
        }
        blk::VIRTIO_BLK_T_FLUSH => Ok(Request::Flush),
        blk::VIRTIO_BLK_T_GET_ID => Ok(Request::Id),
        blk::VIRTIO_BLK_T_DISCARD => {
            check_writable()?;
            ranges(chain, space, disk, out_bytes, DISCARD_SECTORS_MAX, 0).map(Request::Discard)
        }
        blk::VIRTIO_BLK_T_WRITE_ZEROES => {
            check_writable()?;
            let flags = blk::VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
            ranges(chain, space, disk, out_bytes, ZERO_SECTORS_MAX, flags).map(Request::WriteZeroes)
        }
        _ => Err(RequestRejection::Complete(Status::Unsupported)),
    }
}

fn exists(sector: u64, sectors: u64, disk: &Disk) -> bool {
    sector.checked_add(sectors).is_some_and(|end| end <= disk.sectors)
}

/// The ranges of a discard or write-zeroes, all checked.
fn ranges(
    chain: &Chain,
    space: &impl GuestAddressSpace,
    disk: &Disk,
    bytes: u64,
    sectors_max: u32,
    known_flags: u32,
) -> Result<Vec<Range>, RequestRejection> {
    if bytes == 0 || !bytes.is_multiple_of(RANGE_BYTES) || bytes / RANGE_BYTES > u64::from(DISCARD_SEGMENTS_MAX) {
        return Err(REFUSED);
    }
    let mut buffer = [0; (RANGE_BYTES * DISCARD_SEGMENTS_MAX as u64) as usize];
    let buffer = &mut buffer[..bytes as usize];
    if !chain.gather(space, HEADER_BYTES, buffer) {
        return Err(REFUSED);
    }
    let range = |bytes: &[u8]| {
        let number =
            |part: std::ops::Range<usize>| bytes[part].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let (sector, sectors, flags) = (number(0..8), number(8..12) as u32, number(12..16) as u32);
        if flags & !known_flags != 0 {
            return Err(RequestRejection::Complete(Status::Unsupported));
        }
        let blocks = u64::from(disk.block_bytes) / SECTOR_BYTES;
        let is_aligned = sector.is_multiple_of(blocks) && u64::from(sectors).is_multiple_of(blocks);
        if sectors > sectors_max || !is_aligned || !exists(sector, u64::from(sectors), disk) {
            return Err(REFUSED);
        }
        Ok(Range { sector, sectors, may_unmap: flags != 0 })
    };
    buffer.chunks_exact(RANGE_BYTES as usize).map(range).collect()
}

/// Writes the disk's id, truncated to the driver's buffer. Returns the number of bytes; `None` if the buffer is not in
/// memory.
pub(crate) fn write_id(chain: &Chain, space: &impl GuestAddressSpace, disk: &Disk) -> Option<u32> {
    let bytes = (ID_BYTES as u64).min(chain.writable_bytes() - 1) as usize;
    chain.scatter(space, &disk.id[..bytes]).then_some(bytes as u32)
}
