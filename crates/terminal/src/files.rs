//! Files that a command reads, so that it does not write over them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, ensure};

/// What makes a file the same under any name: its device and its number there.
pub type Identity = (u64, u64);

/// Refuses to write over a file, by whatever name, that is one of those that are read.
pub fn spare(read: &[Identity], output: &Path) -> Result<()> {
    let is_read = identity(output).is_some_and(|identity| read.contains(&identity));
    ensure!(!is_read, "{}: is read by this command (expected another file to write to)", output.display());
    Ok(())
}

/// None of what is not an ordinary file.
pub fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| (metadata.dev(), metadata.ino()))
}
