//! A parsed job file: sections of options with their positions.
//!
//! Used by: `build`, `options`, `jobfile`.
//! Tests: `crates/fio/tests/job_files.rs`.

use std::ops::Range;
use std::sync::Arc;

use crate::JobFileError;

/// The position of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    /// Index into [`Document::files`].
    pub(crate) file: u16,
    /// From 1.
    pub(crate) line: u32,
}

/// One `option=value` line.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The value with variables replaced; `None` for a flag without `=`.
    pub(crate) value: Option<String>,
    pub(crate) position: Position,
}

/// A `[section]` and its options.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: Arc<str>,
    pub(crate) position: Position,
    /// Indices into [`Document::entries`].
    pub(crate) entries: Range<usize>,
}

impl Section {
    /// Whether it is `[global]`: defaults for the jobs after it.
    pub(crate) fn is_global(&self) -> bool {
        &*self.name == "global"
    }
}

/// A parsed job file, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// The job file, then the files that it includes.
    pub(crate) files: Vec<Arc<str>>,
    pub(crate) sections: Vec<Section>,
    pub(crate) entries: Vec<Entry>,
}

impl Document {
    /// An error in the line at `position`.
    pub(crate) fn error_at(&self, position: Position, section: Option<&Section>, message: &str) -> JobFileError {
        let file = self.files.get(usize::from(position.file)).unwrap_or(&self.files[0]);
        JobFileError::new(file, message).at_line(position.line).in_section(section.map(|s| &s.name))
    }
}
