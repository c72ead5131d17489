//! Advisory locks: a written file is locked exclusively, a read one shared. They do not keep out programs that take no
//! lock.
//!
//! They belong to the open file description (`F_OFD_SETLK`) and cover the whole file: two openings exclude each other
//! even within one program, and QEMU, which locks bytes of its images in the same way, is excluded, too. A separate
//! description holds the lock, so that the lock ends with the process: a ring may keep the other descriptions open for
//! some time after it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The result of trying to lock a file.
pub enum LockOutcome {
    /// The lock is held as long as this is open.
    Acquired(File),
    /// Another program holds a conflicting lock.
    InUse,
    /// The file system has no locks.
    NoLocking(io::Error),
}

/// Tries to lock a file for reading, or for reading and writing.
///
/// # Errors
/// If the file cannot be opened; for a block device to be written, also if it is mounted or used by another program (`EBUSY`).
pub fn try_lock(path: &Path, read_only: bool, is_device: bool) -> io::Result<LockOutcome> {
    let exclusive = if is_device && !read_only { OFlags::EXCL } else { OFlags::empty() };
    let mut options = OpenOptions::new();
    let file = options.read(true).write(!read_only).custom_flags(exclusive.bits() as i32).open(path)?;
    let error = match set_lock(&file, read_only) {
        Ok(()) => return Ok(LockOutcome::Acquired(file)),
        Err(error) => error,
    };
    Ok(match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::ACCESS) => LockOutcome::InUse,
        _ => LockOutcome::NoLocking(error),
    })
}

/// Locks the whole file through this description, without waiting.
#[allow(unsafe_code)]
fn set_lock(file: &File, read_only: bool) -> io::Result<()> {
    let kind = if read_only { libc::F_RDLCK } else { libc::F_WRLCK };
    let whole = libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: the descriptor is open, and the kernel only reads the description of the lock.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
