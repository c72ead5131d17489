//! Files that a command reads, so that it does not overwrite them.
//!
//! Used by: crates `hoistway`, `evidence`.
//! Tests: `crates/hoistway/tests/cli/overwriting.rs`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, ensure};

/// Identifies a file independently of its name: the device and the inode number.
pub type Identity = (u64, u64);

/// Refuses to overwrite a file that is one of those being read, whatever its name.
pub fn spare(read_files: &[Identity], output: &Path) -> Result<()> {
    let is_read = identity(output).is_some_and(|identity| read_files.contains(&identity));
    ensure!(!is_read, "{}: is read by this command (expected another file to write to)", output.display());
    Ok(())
}

/// The identity of a regular file; `None` for anything else.
pub fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| (metadata.dev(), metadata.ino()))
}
