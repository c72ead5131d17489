//! Headers of blktrace's records, versions 7 and 8, in either byte order.
//!
//! Layout: a header of 48 bytes (version 7) or 64 bytes (version 8), then the payload. Numbers are in the byte order of the
//! recording machine, numbers in payloads big endian.

/// The magic number without its version.
pub(crate) const MAGIC: u32 = 0x6561_7400;
/// Category of records that are no events of the device.
pub(crate) const NOTIFY: u16 = 0x0400;
/// Bit of an action's code: the payload begins with the id of a cgroup.
pub(crate) const HAS_CGROUP: u16 = 0x100;
/// Notify: the name of a process.
pub(crate) const NOTIFY_PROCESS: u16 = 0;
/// Notify: time of day.
pub(crate) const NOTIFY_TIMESTAMP: u16 = 1;
/// Notify: a message.
pub(crate) const NOTIFY_MESSAGE: u16 = 2;
/// Bytes of a header of version 7.
pub(crate) const HEADER_BYTES: usize = 48;
/// Bytes of a header of version 8.
pub(crate) const HEADER_BYTES_MAX: usize = 64;

/// The version, and whether numbers are big endian; `None` if the magic number is wrong.
pub(crate) fn layout(magic: [u8; 4]) -> Option<(u8, bool)> {
    let is_known = |number: u32| number & !0xff == MAGIC && matches!(number & 0xff, 7 | 8);
    let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
    if is_known(little) { Some((little as u8, false)) } else { is_known(big).then_some((big as u8, true)) }
}

/// A header in this machine's numbers.
pub(crate) struct Header {
    version: u8,
    pub(crate) is_big_endian: bool,
    pub(crate) sequence: u32,
    pub(crate) time_ns: u64,
    pub(crate) sector: u64,
    pub(crate) bytes: u32,
    pub(crate) code: u16,
    pub(crate) category: u16,
    pub(crate) pid: u32,
    pub(crate) device: u32,
    pub(crate) cpu: u32,
    pub(crate) error: u16,
    pub(crate) payload_bytes: usize,
}

impl Header {
    /// None if the magic number is wrong, or there are too few bytes.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let (version, is_big_endian) = layout(*bytes.first_chunk()?)?;
        if version == 7 {
            let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
            Some(if is_big_endian { Header::version_7::<true>(bytes) } else { Header::version_7::<false>(bytes) })
        } else {
            let bytes: &[u8; HEADER_BYTES_MAX] = bytes.first_chunk()?;
            Some(if is_big_endian { Header::version_8::<true>(bytes) } else { Header::version_8::<false>(bytes) })
        }
    }

    #[inline]
    fn version_7<const BIG: bool>(bytes: &[u8; HEADER_BYTES]) -> Header {
        let action = read_number::<4, BIG>(bytes, 28) as u32;
        Header {
            version: 7,
            is_big_endian: BIG,
            sequence: read_number::<4, BIG>(bytes, 4) as u32,
            time_ns: read_number::<8, BIG>(bytes, 8),
            sector: read_number::<8, BIG>(bytes, 16),
            bytes: read_number::<4, BIG>(bytes, 24) as u32,
            code: action as u16,
            category: (action >> 16) as u16,
            pid: read_number::<4, BIG>(bytes, 32) as u32,
            device: read_number::<4, BIG>(bytes, 36) as u32,
            cpu: read_number::<4, BIG>(bytes, 40) as u32,
            error: read_number::<2, BIG>(bytes, 44) as u16,
            payload_bytes: read_number::<2, BIG>(bytes, 46) as usize,
        }
    }

    #[inline]
    fn version_8<const BIG: bool>(bytes: &[u8; HEADER_BYTES_MAX]) -> Header {
        let action = read_number::<8, BIG>(bytes, 32);
        Header {
            version: 8,
            is_big_endian: BIG,
            sequence: read_number::<4, BIG>(bytes, 4) as u32,
            time_ns: read_number::<8, BIG>(bytes, 8),
            sector: read_number::<8, BIG>(bytes, 16),
            bytes: read_number::<4, BIG>(bytes, 24) as u32,
            code: action as u16,
            category: (action >> 32) as u16,
            pid: read_number::<4, BIG>(bytes, 28) as u32,
            device: read_number::<4, BIG>(bytes, 40) as u32,
            cpu: read_number::<4, BIG>(bytes, 44) as u32,
            error: read_number::<2, BIG>(bytes, 48) as u16,
            payload_bytes: read_number::<2, BIG>(bytes, 50) as usize,
        }
    }

    pub(crate) const fn header_bytes(&self) -> usize {
        if self.version == 7 { HEADER_BYTES } else { HEADER_BYTES_MAX }
    }
}

/// Reads a number of `COUNT` bytes.
#[inline]
pub(crate) fn read_number<const COUNT: usize, const BIG: bool>(bytes: &[u8], offset: usize) -> u64 {
    let mut padded = [0; 8];
    if BIG {
        padded[8 - COUNT..].copy_from_slice(&bytes[offset..offset + COUNT]);
        u64::from_be_bytes(padded)
    } else {
        padded[..COUNT].copy_from_slice(&bytes[offset..offset + COUNT]);
        u64::from_le_bytes(padded)
    }
}
