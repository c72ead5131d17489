//! Advisory locks: a written file is locked exclusively, a read one shared. Programs that take no lock are not kept away.
//!
//! They are of the open file description (`F_OFD_SETLK`), over the whole file: two openings exclude each other within one
//! program, too, and so does QEMU, which locks bytes of its images in the same way. The description that holds one is
//! opened for that alone, so that the lock goes with the process: a ring may keep the others open for some time after it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{self, flock};
use rustix::fs::OFlags;

/// What asking for a lock came to.
pub enum Claim {
    /// It is held as long as this is open.
    Ours(File),
    /// Another program holds a conflicting lock.
    InUse,
    /// The file system has none.
    Impossible(io::Error),
}

/// Asks for a lock on a file that is to be read, or read and written.
///
/// # Errors
/// If the file cannot be opened; of a block device that is to be written, also if it is mounted or another program's (`EBUSY`).
pub fn claim(path: &Path, read_only: bool, is_device: bool) -> io::Result<Claim> {
    let exclusive = if is_device && !read_only { OFlags::EXCL } else { OFlags::empty() };
    let mut options = OpenOptions::new();
    let file = options.read(true).write(!read_only).custom_flags(exclusive.bits() as i32).open(path)?;
    let kind = if read_only { libc::F_RDLCK } else { libc::F_WRLCK };
    let whole = flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 };
    Ok(match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole)) {
        Ok(_) => Claim::Ours(file),
        Err(Errno::EAGAIN | Errno::EACCES) => Claim::InUse,
        Err(errno) => Claim::Impossible(errno.into()),
    })
}
