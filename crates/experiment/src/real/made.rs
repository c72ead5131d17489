//! Target files that runs create, and that later runs may overwrite.
//!
//! Used by: `target`; crate `hoistway`.
//! Tests: `crates/hoistway/tests/cli/overwriting.rs`, `crates/hoistway/tests/cli/run.rs`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use hoistway_load::Load;
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

/// An extended attribute that marks files created by runs, which may be overwritten. Not every file system keeps it.
const MADE: &str = "user.hoistway.made";

/// Whether a run has created this file.
#[must_use]
pub fn is_made(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| fgetxattr(&file, MADE, &mut [0u8; 8]).is_ok())
}

/// Size in bytes of the file that a load needs.
///
/// # Errors
/// If the load gives no size.
pub fn bytes_of(load: &Load) -> Result<u64, String> {
    let mut bytes = 0;
    for process in &load.processes {
        let ranges = process.ranges(hoistway_load::limits::REGION_BYTES).map_err(|why| why.to_string())?;
        let end = ranges.iter().map(|(start, bytes)| start.saturating_add(*bytes)).max();
        bytes = bytes.max(end.unwrap_or(u64::MAX));
    }
    if bytes > hoistway_engine::Target::BYTES_MAX {
        return Err(
            "does not exist, and the load does not set its size (expected size= in every job, or an existing file)"
                .into(),
        );
    }
    Ok(bytes)
}

/// Creates a file of this many bytes; returns `false` if interrupted. Fills it with data, as fio does, because reads of holes
/// would not reach the device.
///
/// # Errors
/// If it cannot be created, or exists already.
pub fn make(path: &Path, bytes: u64, is_interrupted: &dyn Fn() -> bool) -> Result<bool, String> {
    let failed = |error: std::io::Error| format!("cannot be created: {error}");
    if path.exists() {
        return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The file is renamed when it is complete; the next run replaces the temporary file of a killed run.
    let temporary = path.with_file_name(format!(".{name}.hoistway-part"));
    let _ = std::fs::remove_file(&temporary);
    let mut file = File::create_new(&temporary).map_err(failed)?;
    let filled = fill(&mut file, bytes, is_interrupted).and_then(|is_complete| {
        // Without the attribute the next run needs `force`.
        let _ = fsetxattr(&file, MADE, b"1", XattrFlags::CREATE);
        if is_complete {
            std::fs::rename(&temporary, path)?;
        }
        Ok(is_complete)
    });
    if !matches!(filled, Ok(true)) {
        // An incomplete file is useless.
        let _ = std::fs::remove_file(&temporary);
    }
    filled.map_err(failed)
}

fn fill(file: &mut File, bytes: u64, is_interrupted: &dyn Fn() -> bool) -> std::io::Result<bool> {
    let mut chunk = vec![0u8; 1 << 20];
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for word in chunk.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    let mut remaining = bytes;
    while remaining > 0 {
        if is_interrupted() {
            return Ok(false);
        }
        let len = remaining.min(chunk.len() as u64);
        file.write_all(&chunk[..len as usize])?;
        remaining -= len;
    }
    file.sync_all()?;
    Ok(true)
}
