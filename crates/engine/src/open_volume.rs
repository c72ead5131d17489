//! A volume that stays open while it is used.
//!
//! Used by: crate `serve`.
//! Tests: `crates/engine/tests/files.rs`.

use std::fmt;
use std::sync::Arc;

use crate::backend::{Backend, FileSpec, OpenError};
use crate::engine::Engine;

/// Keeps a volume open. Dropping it closes the volume: its file and lock are released, and requests that have not reached the file
/// fail.
pub struct OpenVolume {
    backend: Arc<dyn Backend>,
    index: usize,
    notes: Vec<String>,
}

impl OpenVolume {
    /// Its index in [`Engine::volumes`], which stays the same.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Features that are unavailable there, as sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl fmt::Debug for OpenVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenVolume").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Drop for OpenVolume {
    fn drop(&mut self) {
        self.backend.close(self.index);
    }
}

impl Engine {
    /// Opens a file as a further volume of the target.
    ///
    /// # Errors
    /// If the file cannot be opened, or the target cannot have further volumes.
    pub fn open_volume(&self, file: &FileSpec) -> Result<OpenVolume, OpenError> {
        let (index, notes) = self.backend.open(file)?;
        Ok(OpenVolume { backend: Arc::clone(&self.backend), index, notes })
    }

    /// Gives a volume the length of its file, if that has become longer. Clients that are attached already keep their range.
    ///
    /// # Errors
    /// If the length cannot be found, or there is no room for it.
    pub fn grow_volume(&self, index: usize) -> Result<(), OpenError> {
        self.backend.grow(index)
    }

    /// Takes over a volume that was open at the start, so that it can be closed.
    #[must_use]
    pub fn take_over_volume(&self, index: usize) -> OpenVolume {
        OpenVolume { backend: Arc::clone(&self.backend), index, notes: Vec::new() }
    }
}
