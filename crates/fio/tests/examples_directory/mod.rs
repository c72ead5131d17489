//! Finds fio's example job files.

use std::path::PathBuf;

/// The directory: `FIO_EXAMPLES`, or that of Debian's package. If they are required, it is an error if they are
/// missing.
pub fn examples_directory() -> Option<PathBuf> {
    let named = std::env::var_os("FIO_EXAMPLES").map(PathBuf::from);
    let directory = named.unwrap_or_else(|| PathBuf::from("/usr/share/doc/fio/examples"));
    if directory.is_dir() {
        return Some(directory);
    }
    // Minimal systems lack them even if the package is installed.
    let missing = format!("fio's example job files (package fio-examples) are not in {}", directory.display());
    // Without this, a test machine without them would report success although nothing was tested.
    assert!(std::env::var_os("CI").is_none(), "{missing}: FIO_EXAMPLES names their directory, and .ci/run gets them");
    eprintln!("skipped: {missing}");
    None
}
