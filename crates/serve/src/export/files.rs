//! The files that exports are on, each open as long as an export or one of its clients uses it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hoistway_engine::OpenVolume;

/// Open files by the path of their exports.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Vec<OpenFile>>);

struct OpenFile {
    path: PathBuf,
    /// The number of its disk.
    disk: usize,
    file: Weak<OpenVolume>,
}

impl OpenFiles {
    /// The file at this path, and the number of its disk; `open` opens it if it is not open.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn get<E>(
        &self,
        path: &PathBuf,
        open: impl FnOnce() -> Result<(usize, OpenVolume), E>,
    ) -> Result<(usize, Arc<OpenVolume>), E> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|open| open.file.strong_count() > 0);
        let found =
            files.iter().filter(|open| open.path == *path).find_map(|open| Some((open.disk, open.file.upgrade()?)));
        if let Some(found) = found {
            return Ok(found);
        }
        let (disk, file) = open()?;
        let file = Arc::new(file);
        files.push(OpenFile { path: path.clone(), disk, file: Arc::downgrade(&file) });
        Ok((disk, file))
    }
}
