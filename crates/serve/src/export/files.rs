//! The files that exports are on, each open as long as an export or one of its clients uses it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hoistway_engine::OpenVolume;

/// Open files by the path of their exports.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Vec<(PathBuf, Weak<OpenVolume>)>>);

impl OpenFiles {
    /// The file at this path; `open` opens it if it is not open.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn get<E>(
        &self,
        path: &PathBuf,
        open: impl FnOnce() -> Result<OpenVolume, E>,
    ) -> Result<Arc<OpenVolume>, E> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(_, file)| file.strong_count() > 0);
        let found = files.iter().filter(|(other, _)| other == path).find_map(|(_, file)| file.upgrade());
        if let Some(file) = found {
            return Ok(file);
        }
        let file = Arc::new(open()?);
        files.push((path.clone(), Arc::downgrade(&file)));
        Ok(file)
    }
}
