//! Where fio's example job files are.

use std::path::PathBuf;

/// The directory: `FIO_EXAMPLES`, or where Debian's package has them. Where they have to be, it is an error if they are not.
pub fn examples_directory() -> Option<PathBuf> {
    let named = std::env::var_os("FIO_EXAMPLES").map(PathBuf::from);
    let directory = named.unwrap_or_else(|| PathBuf::from("/usr/share/doc/fio/examples"));
    if directory.is_dir() {
        return Some(directory);
    }
    // Minimal systems leave them out even if the package is installed, so a machine may lack them.
    let missing = format!("fio's example job files (package fio-examples) are not in {}", directory.display());
    // A test machine without them would report success for nothing.
    assert!(std::env::var_os("CI").is_none(), "{missing}: FIO_EXAMPLES names their directory, and .ci/run gets them");
    eprintln!("skipped: {missing}");
    None
}
