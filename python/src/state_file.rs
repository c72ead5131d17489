//! Keeps the runs of a search in a file, so that the search can be resumed. The file is replaced atomically, so it is never
//! incomplete.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use hoistway_answer::tuning::TuneRun;
use hoistway_experiment::store::{DatasetError, complete_file};
use hoistway_experiment::tune::SearchState;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors;

/// The state file.
pub(crate) struct StateFile {
    name: PathBuf,
    state: SearchState,
}

impl StateFile {
    /// Reads the state if the file exists, and checks that it can be written. Also returns the runs in it.
    pub(crate) fn open(
        py: Python<'_>,
        name: PathBuf,
        mut state: SearchState,
    ) -> PyResult<(Option<Self>, Vec<TuneRun>)> {
        let refuse = |problem: String| errors::argument(py, "state", &format!("state {}: {problem}", name.display()));
        match fs::read_to_string(&name) {
            Ok(text) => state.resume_from(&text).map_err(refuse)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let expected = "expected the state of a search, or no such file";
                return Err(refuse(format!("cannot be read ({expected}): {error}")));
            }
        }
        let runs = state.runs.clone();
        let file = StateFile { name, state };
        file.write_state()?;
        Ok((Some(file), runs))
    }

    /// Replaces the file atomically: a reader sees either the old or the new content.
    pub(crate) fn write(&mut self, runs: &[TuneRun]) -> PyResult<()> {
        self.state.runs = runs.to_vec();
        self.write_state()
    }

    fn write_state(&self) -> PyResult<()> {
        let text = serde_json::to_string(&self.state).map_err(crate::table::internal_error)? + "\n";
        let result = complete_file(&self.name, |file| {
            file.write_all(text.as_bytes()).map_err(|error| DatasetError::File {
                path: self.name.clone(),
                done: "written",
                error,
            })
        });
        result.map_err(|error| PyOSError::new_err(format!("state {error}")))
    }
}
