//! A sparse file with the content of a simulated device: only written blocks take space, and the content persists when the device
//! is started again.
//!
//! It is written through the page cache and never synced, since the model determines how long commands take. So acknowledged
//! writes survive this program, but not a crash of the machine before the system has written them back.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use hoistway_blk::bio::{Op, Status};
use hoistway_blk::ground::{SECTOR_BYTES, Sector};
use rustix::fs::{FallocateFlags, fallocate};

use super::OpenError;
use super::channel::status_of;
use super::data_map::DataMap;
use super::lock::{LockOutcome, try_lock};
use crate::backend::{Command, Extent};
use crate::memory::Segments;

/// Zeroes for file systems that cannot zero a range.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];

/// The content of a device in a file.
pub struct SparseFile {
    file: File,
    map: DataMap,
    /// The lock that keeps other programs from it.
    _lock: Option<File>,
}

impl SparseFile {
    /// Opens the file of a device of this size. A missing or empty file becomes a hole of that size.
    ///
    /// # Errors
    /// If it cannot be opened, extended or written, is in use, or has another size.
    pub fn open(path: &Path, bytes: u64) -> Result<SparseFile, OpenError> {
        let failed = |why: io::Error| OpenError::File { path: path.to_owned(), why };
        let unfit = |why: String| OpenError::Unfit { path: path.to_owned(), why };
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(unfit("is not a file".into()));
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let lock_file = match try_lock(path, false, false).map_err(failed)? {
            LockOutcome::Acquired(file) => Some(file),
            LockOutcome::NoLocking(_) => None,
            LockOutcome::InUse => return Err(unfit("is in use by another program".into())),
        };
        match file.metadata().map_err(failed)?.len() {
            0 => file.set_len(bytes).map_err(failed)?,
            other if other != bytes => {
                return Err(unfit(format!("has {other} bytes (expected the {bytes} of this device, or no file yet)")));
            }
            _ => {}
        }
        Ok(SparseFile { file, map: DataMap::default(), _lock: lock_file })
    }

    /// Carries a command out on the content.
    pub fn carry_out(&self, command: &Command, mut data: Segments<'_>) -> Status {
        let (offset, len) = (command.sector.0 * SECTOR_BYTES, u64::from(command.sectors) * SECTOR_BYTES);
        let mut result = Ok(());
        match command.op {
            Op::Read => data.for_each(|before, piece| {
                if result.is_ok() {
                    result = self.file.read_exact_at(piece, offset + before);
                }
            }),
            Op::Write => data.for_each(|before, piece| {
                if result.is_ok() {
                    result = self.file.write_all_at(piece, offset + before);
                }
            }),
            Op::Flush => {}
            Op::Discard => result = self.punch(offset, len),
            Op::WriteZeroes if command.zeroing.may_unmap => result = self.punch(offset, len),
            Op::WriteZeroes => result = self.zero(offset, len, command.zeroing.fast_only),
        }
        result.map_or_else(|error| error.raw_os_error().map_or(Status::IoError, status_of), |()| Status::Ok)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)?;
        self.map.forget(offset..offset + len);
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64, fast_only: bool) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, offset, len) {
            Err(rustix::io::Errno::OPNOTSUPP) if !fast_only => {
                let end = offset + len;
                for from in (offset..end).step_by(ZEROES.len()) {
                    self.file.write_all_at(&ZEROES[..ZEROES.len().min((end - from) as usize)], from)?;
                }
                Ok(())
            }
            result => {
                result?;
                self.map.forget(offset..offset + len);
                Ok(())
            }
        }
    }

    /// Data and holes of a range of sectors: the first `extents_max` parts, at least one.
    ///
    /// # Errors
    /// If the system cannot find them.
    pub fn extents(&self, range: Range<Sector>, extents_max: usize) -> io::Result<Vec<Extent>> {
        self.map.extents(&self.file, range.start.0 * SECTOR_BYTES..range.end.0 * SECTOR_BYTES, extents_max)
    }

    /// The same for a range that is about to be read. If finding holes takes too long, the rest counts as data.
    ///
    /// # Errors
    /// If the system cannot find them.
    pub fn extents_of_read(&self, range: Range<Sector>) -> io::Result<Vec<Extent>> {
        self.map.extents_of_read(&self.file, range.start.0 * SECTOR_BYTES..range.end.0 * SECTOR_BYTES)
    }
}
