//! `--state`: stores the runs of a search in a file, which is replaced atomically.

use std::fs;
use std::io::{Error, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use hoistway_experiment::tune::SearchState;

use hoistway_terminal::output::{Output, cannot_be_written};

/// The state file.
pub(super) struct StateFile {
    name: PathBuf,
    state: SearchState,
}

impl StateFile {
    /// Reads the state if the file exists, and checks that it can be written.
    pub(super) fn open(name: &Path, mut state: SearchState) -> Result<Self> {
        // A pipe or device may never end, so it cannot hold a state.
        let content = fs::metadata(name).and_then(|metadata| {
            if metadata.is_file() { fs::read_to_string(name) } else { Err(Error::other("not a regular file")) }
        });
        match content {
            Ok(text) => {
                if let Err(problem) = state.resume_from(&text) {
                    bail!("--state {}: {problem}", name.display());
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                bail!(
                    "--state {}: cannot be read (expected the state of a search, or no such file): {error}",
                    name.display()
                )
            }
        }
        Output::open(Some(name)).with_context(|| format!("--state {}", name.display()))?;
        Ok(Self { name: name.to_owned(), state })
    }

    /// The current state.
    pub(super) fn state(&self) -> &SearchState {
        &self.state
    }

    /// Replaces the file: a reader sees either the old or the new content.
    pub(super) fn write(&mut self, runs: Vec<hoistway_answer::tuning::TuneRun>) -> Result<()> {
        self.state.runs = runs;
        let text = serde_json::to_string(&self.state)? + "\n";
        let mut stream = Output::open(Some(&self.name))?.stream()?;
        stream.write_all(text.as_bytes()).with_context(|| cannot_be_written(&self.name))?;
        stream.finish().map(|_| ())
    }
}
