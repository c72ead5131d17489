//! The files that exports are on, each open as long as an export or one of its clients uses it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hoistway_engine::{FileSpec, OpenVolume};

use crate::server::ServerError;
use crate::site::Site;
use crate::spec::{ExportSpec, Placed};

/// Open files by the path of their exports.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Vec<(PathBuf, Weak<OpenVolume>)>>);

impl OpenFiles {
    /// The file at this path; `open` opens it if it is not open.
    fn get(
        &self,
        path: &PathBuf,
        open: impl FnOnce() -> Result<OpenVolume, ServerError>,
    ) -> Result<Arc<OpenVolume>, ServerError> {
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

impl Site {
    /// Places an export: on its own file, which is opened if it is not open, or on the target. The file stays open as long as the result
    /// or the export exists.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn place(&self, spec: ExportSpec, opens_read_only: bool) -> Result<Placed, ServerError> {
        let Some(path) = &spec.path else { return Ok(Placed { spec, volume: 0, file: None }) };
        let file = FileSpec { read_only: opens_read_only, ..FileSpec::new(path) };
        let file = self.files_open.get(path, || {
            let opened = self.engine.open_volume(&file);
            let opened = opened.map_err(|why| ServerError::Refused(format!("export {:?}: {why}", spec.name)))?;
            opened.notes().iter().for_each(|note| self.say(format_args!("{note}")));
            Ok(opened)
        })?;
        Ok(Placed { volume: file.index(), file: Some(file), spec })
    }

    /// Takes over the file of an export that was open at the start.
    pub(crate) fn take_over(&self, placed: &Placed) -> Result<Placed, ServerError> {
        let Some(path) = &placed.spec.path else { return Ok(placed.clone()) };
        let file = self.files_open.get(path, || Ok(self.engine.take_over_volume(placed.volume)))?;
        Ok(Placed { file: Some(file), ..placed.clone() })
    }
}
