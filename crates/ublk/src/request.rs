//! A request as the kernel describes it.
//!
//! Used by: `queue`; crate `serve`.
//! Tests: below.

use crate::disk::{DISCARD_BYTES_MAX, Disk, SECTOR_BYTES, TRANSFER_BYTES_MAX, ZERO_BYTES_MAX};
use crate::layout::{DESCRIPTOR_BYTES, u32_at, u64_at};

const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 2;
const DISCARD: u32 = 3;
const WRITE_ZEROES: u32 = 5;
/// The lowest byte is the operation.
const OPERATION: u32 = 0xff;
const FLAG_FUA: u32 = 1 << 13;
const FLAG_NO_UNMAP: u32 = 1 << 15;

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Its data is to be written to the queue.
    Read {
        /// The first byte.
        offset: u64,
        /// The length.
        bytes: u32,
    },
    /// Its data is to be read from the queue.
    Write {
        /// The first byte.
        offset: u64,
        /// The length.
        bytes: u32,
        /// Completes only when the data is on stable storage (FUA).
        durable: bool,
    },
    /// Makes durable what has been written.
    Flush,
    /// The content is no longer needed.
    Discard {
        /// The first byte.
        offset: u64,
        /// The length.
        bytes: u32,
    },
    /// The content reads as zeroes afterwards.
    WriteZeroes {
        /// The first byte.
        offset: u64,
        /// The length.
        bytes: u32,
        /// Whether the space may be deallocated.
        may_unmap: bool,
    },
}

/// A descriptor that is no request to this disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadDescriptor {
    /// An operation that was never offered.
    #[error("operation {0} is unknown")]
    Operation(u32),
    /// The length is 0, or more than was offered.
    #[error("{sectors} sectors at once")]
    Length {
        /// The length.
        sectors: u32,
    },
    /// It reaches beyond the end.
    #[error("sector {sector} and {sectors} sectors from there reach beyond the end")]
    Range {
        /// The first sector.
        sector: u64,
        /// The length.
        sectors: u32,
    },
    /// A change of a read-only disk.
    #[error("operation {0} changes a read-only disk")]
    ReadOnly(u32),
}

impl Request {
    /// Reads a descriptor (`struct ublksrv_io_desc`).
    pub(crate) fn parse(descriptor: &[u8; DESCRIPTOR_BYTES], disk: &Disk) -> Result<Request, BadDescriptor> {
        let flags = u32_at(descriptor, 0);
        let (operation, sectors, sector) = (flags & OPERATION, u32_at(descriptor, 4), u64_at(descriptor, 8));
        let bytes_max = match operation {
            READ | WRITE => TRANSFER_BYTES_MAX,
            FLUSH => return Ok(Request::Flush),
            DISCARD => DISCARD_BYTES_MAX,
            WRITE_ZEROES => ZERO_BYTES_MAX,
            _ => return Err(BadDescriptor::Operation(operation)),
        };
        let is_long = u64::from(sectors) * SECTOR_BYTES > u64::from(bytes_max);
        if sectors == 0 || is_long {
            return Err(BadDescriptor::Length { sectors });
        }
        let disk_sectors = disk.bytes / SECTOR_BYTES;
        if sector.checked_add(u64::from(sectors)).is_none_or(|end| end > disk_sectors) {
            return Err(BadDescriptor::Range { sector, sectors });
        }
        if operation != READ && disk.read_only {
            return Err(BadDescriptor::ReadOnly(operation));
        }
        let (offset, bytes) = (sector * SECTOR_BYTES, sectors * SECTOR_BYTES as u32);
        Ok(match operation {
            READ => Request::Read { offset, bytes },
            WRITE => Request::Write { offset, bytes, durable: flags & FLAG_FUA != 0 },
            DISCARD => Request::Discard { offset, bytes },
            _ => Request::WriteZeroes { offset, bytes, may_unmap: flags & FLAG_NO_UNMAP == 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::Layout;

    const DISK: Disk =
        Disk { bytes: 8 << 30, block_bytes: 512, preferred_block_bytes: 4096, read_only: false, rotational: false };

    fn parse(flags: u32, sectors: u32, sector: u64, disk: &Disk) -> Result<Request, BadDescriptor> {
        let mut descriptor = Layout([0; DESCRIPTOR_BYTES]);
        descriptor.put(0, flags.to_ne_bytes()).put(4, sectors.to_ne_bytes()).put(8, sector.to_ne_bytes());
        Request::parse(&descriptor.0, disk)
    }

    #[test]
    fn each_operation_is_read_with_its_range_and_flags() {
        let (offset, bytes) = (4096, 8192);
        let parse = |flags| parse(flags, 16, 8, &DISK).unwrap();
        assert_eq!(parse(0), Request::Read { offset, bytes });
        assert_eq!(parse(1), Request::Write { offset, bytes, durable: false });
        assert_eq!(parse(1 | 1 << 13 | 1 << 11), Request::Write { offset, bytes, durable: true });
        assert_eq!(parse(2), Request::Flush);
        assert_eq!(parse(3), Request::Discard { offset, bytes });
        assert_eq!(parse(5), Request::WriteZeroes { offset, bytes, may_unmap: true });
        assert_eq!(parse(5 | 1 << 15), Request::WriteZeroes { offset, bytes, may_unmap: false });
    }

    #[test]
    fn a_descriptor_that_was_never_offered_is_refused_with_the_reason() {
        let sectors = (DISK.bytes / 512) as u32;
        let end = u64::from(sectors);
        for (flags, count, sector, said) in [
            (4, 8, 0, "operation 4 is unknown"),
            (0xff, 8, 0, "operation 255 is unknown"),
            (0, 0, 0, "0 sectors"),
            (0, 2049, 0, "2049 sectors at once"),
            (3, 1 << 22, 0, "4194304 sectors at once"),
            (5, 1 << 16, 0, "65536 sectors at once"),
            (1, 2, end - 1, "beyond the end"),
            (1, 1, u64::MAX, "beyond the end"),
        ] {
            let error = parse(flags, count, sector, &DISK).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(parse(1, 1, end - 1, &DISK).is_ok() && parse(3, 1 << 21, 0, &DISK).is_ok());
        let read_only = Disk { read_only: true, ..DISK };
        for operation in [1, 3, 5] {
            assert_eq!(parse(operation, 8, 0, &read_only), Err(BadDescriptor::ReadOnly(operation)));
        }
        assert!(parse(0, 8, 0, &read_only).is_ok() && parse(2, 0, 0, &read_only).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_accepted_lies_on_the_disk(bytes in proptest::array::uniform24(any::<u8>()), sectors in 0_u32..4096, sector: u64) {
            let mut descriptor = Layout(bytes);
            descriptor.put(4, sectors.to_ne_bytes()).put(8, (sector % (DISK.bytes / 256)).to_ne_bytes());
            let (Request::Read { offset, bytes }
            | Request::Write { offset, bytes, .. }
            | Request::Discard { offset, bytes }
            | Request::WriteZeroes { offset, bytes, .. }) = (match Request::parse(&descriptor.0, &DISK) {
                Ok(Request::Flush) | Err(_) => return Ok(()),
                Ok(request) => request,
            }) else { unreachable!("a flush has no range") };
            prop_assert!(bytes > 0 && offset + u64::from(bytes) <= DISK.bytes);
        }
    }
}
