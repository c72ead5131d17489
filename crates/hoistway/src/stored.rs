//! Result documents that commands read: files, or standard input.

use std::path::Path;

use anyhow::{Context as _, Result};
use hoistway_lab::Surroundings as _;
use hoistway_results::ResultsDocument;

use crate::input::CommandLine;

/// A document that is whole and does not contradict itself.
pub(crate) fn document(surroundings: &CommandLine, file: &Path) -> Result<ResultsDocument> {
    let expected = "expected a document of hoistway compare --format json";
    let name = file.display().to_string();
    let bytes = surroundings.read(file).with_context(|| format!("{name}: cannot be read ({expected})"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name}: not text ({expected})"))?;
    let document = ResultsDocument::from_json(&text).with_context(|| name.clone())?;
    document.check().with_context(|| name)?;
    Ok(document)
}
