//! Places exports on the target or on files of their own.

use std::convert::Infallible;

use hoistway_engine::FileSpec;

use crate::export::spec::{ExportSpec, Placed};
use crate::server::ServerError;
use crate::server::server_state::ServerState;

impl ServerState {
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
            opened.notes().iter().for_each(|note| self.info(format_args!("{note}")));
            Ok::<_, ServerError>(opened)
        })?;
        Ok(Placed { volume: file.index(), file: Some(file), spec })
    }

    /// Takes over the file of an export that was open at the start.
    pub(crate) fn take_over(&self, placed: &Placed) -> Placed {
        let Some(path) = &placed.spec.path else { return placed.clone() };
        let take = || Ok::<_, Infallible>(self.engine.take_over_volume(placed.volume));
        let Ok(file) = self.files_open.get(path, take);
        Placed { file: Some(file), ..placed.clone() }
    }
}
