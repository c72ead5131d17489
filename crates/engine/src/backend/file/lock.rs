//! Advisory locks: a written file is locked exclusively, a read one shared. They do not keep out programs that take no
//! lock.
//!
//! They belong to the open file description (`F_OFD_SETLK`) and cover the whole file: two openings exclude each other
//! even within one program, and QEMU, which locks bytes of its images in the same way, is excluded, too. A separate
//! description holds the lock, so that the lock ends with the process: a ring may keep the other descriptions open for
//! some time after it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, flock};
use rustix::fs::OFlags;

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
    let kind = if read_only { libc::F_RDLCK } else { libc::F_WRLCK };
    let whole = flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 };
    Ok(match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole)) {
        Ok(_) => LockOutcome::Acquired(file),
        Err(Errno::EAGAIN | Errno::EACCES) => LockOutcome::InUse,
        Err(errno) => LockOutcome::NoLocking(errno.into()),
    })
}
