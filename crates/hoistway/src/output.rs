//! Where results go: standard output, or a file that is either complete or not there.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum;

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// The place for results.
pub(crate) enum Output {
    Standard,
    /// Written beside its place and renamed at the end.
    File {
        place: PathBuf,
        beside: PathBuf,
    },
}

impl Output {
    /// Checks that `file`, if given, can be written, before any work is done.
    pub(crate) fn open(file: Option<&Path>) -> Result<Output> {
        let Some(place) = file else { return Ok(Output::Standard) };
        if place.is_dir() {
            return Err(anyhow!("{}: is a directory (expected a file to write the results to)", place.display()));
        }
        let name = place
            .file_name()
            .ok_or_else(|| anyhow!("{}: expected the name of a file to write the results to", place.display()))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let beside = place.with_file_name(hidden);
        fs::write(&beside, b"").with_context(|| format!("{}: cannot be written", place.display()))?;
        Ok(Output::File { place: place.to_owned(), beside })
    }

    /// Writes the results.
    pub(crate) fn write(mut self, text: &str) -> Result<()> {
        match &mut self {
            Output::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Output::File { place, beside } => {
                let written = fs::write(&*beside, text).and_then(|()| fs::rename(&*beside, &*place));
                written.with_context(|| format!("{}: cannot be written", place.display()))?;
            }
        }
        Ok(())
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Output::Standard) && io::stdout().is_terminal()
    }

    /// How tables look there.
    pub(crate) fn style(&self) -> hoistway_report::Style {
        let terminal = self.is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        hoistway_report::Style {
            colour: terminal && !plain,
            width: terminal.then(|| console::Term::stdout().size().1),
            ascii: false,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Output::File { beside, .. } = self {
            // After a successful write it is no longer there.
            let _ = fs::remove_file(beside);
        }
    }
}

/// Whether `error` is only that nobody reads our output any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
