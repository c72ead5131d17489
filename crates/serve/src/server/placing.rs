//! Places exports on the target or on files of their own.

use std::convert::Infallible;

use hoistway_engine::{DiskId, FileSpec, OpenVolume};

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
        let Some(path) = &spec.path else { return Ok(Placed::on_target(spec)) };
        let file = FileSpec { read_only: opens_read_only, ..FileSpec::new(path) };
        let refused = |why: &dyn std::fmt::Display| ServerError::Refused(format!("export {:?}: {why}", spec.name));
        let (disk, file) = self.files_open.get(path, || {
            let id = DiskId::of(path).map_err(|why| refused(&format_args!("{}: {why}", path.display())))?;
            self.open_file(&file, id, refused)
        })?;
        Ok(Placed { disk, volume: file.index(), file: Some(file), spec })
    }

    /// Opens a file on its disk, which is started if it is not served yet. Returns the number of the disk.
    fn open_file(
        &self,
        file: &FileSpec,
        id: DiskId,
        refused: impl Fn(&dyn std::fmt::Display) -> ServerError,
    ) -> Result<(usize, OpenVolume), ServerError> {
        let disks = self.disks();
        let Some(number) = disks.iter().position(|disk| disk.id.as_ref() == Some(&id)) else {
            let start = self.start_disk.get().ok_or_else(|| refused(&"its disk cannot be added"))?;
            let number = start(self, file, id).map_err(|why| refused(&why))?;
            return Ok((number, self.disks()[number].engine.take_over_volume(0)));
        };
        let opened = disks[number].engine.open_volume(file).map_err(|why| refused(&why))?;
        opened.notes().iter().for_each(|note| self.info(format_args!("{note}")));
        Ok((number, opened))
    }

    /// Takes over the file of an export that was open at the start.
    pub(crate) fn take_over(&self, placed: &Placed) -> Placed {
        let Some(path) = &placed.spec.path else { return placed.clone() };
        let disk = &self.disks()[placed.disk];
        let take = || Ok::<_, Infallible>((placed.disk, disk.engine.take_over_volume(placed.volume)));
        let Ok((_, file)) = self.files_open.get(path, take);
        Placed { file: Some(file), ..placed.clone() }
    }
}
