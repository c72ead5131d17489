//! Reads stored result documents from files or standard input.

use std::path::Path;

use anyhow::{Context as _, Result};
use hoistway_answer::ResultsDocument;
use hoistway_answer::tuning::Tuning;
use hoistway_experiment::CallerEnvironment as _;

use crate::input::CommandLine;

/// A document of a comparison or of a search.
pub(crate) enum Stored {
    Results(Box<ResultsDocument>),
    Search(Box<Tuning>),
}

/// Reads a complete and consistent document of a comparison.
pub(crate) fn document(environment: &CommandLine, file: &Path) -> Result<ResultsDocument> {
    results(&text(environment, file, "expected a document of hoistway compare --format json")?, file)
}

/// Reads a document of a comparison or of a search.
pub(crate) fn any(environment: &CommandLine, file: &Path) -> Result<Stored> {
    let text = text(environment, file, "expected a document of hoistway compare or hoistway tune --format json")?;
    if !Tuning::is_search_document(&text) {
        return Ok(Stored::Results(Box::new(results(&text, file)?)));
    }
    let name = || file.display().to_string();
    let search = Tuning::from_json(&text).with_context(name)?;
    search.check().with_context(name)?;
    Ok(Stored::Search(Box::new(search)))
}

fn text(environment: &CommandLine, file: &Path, expected: &str) -> Result<String> {
    let name = file.display();
    let bytes = environment.read(file).with_context(|| format!("{name}: cannot be read ({expected})"))?;
    String::from_utf8(bytes).with_context(|| format!("{name}: not text ({expected})"))
}

fn results(text: &str, file: &Path) -> Result<ResultsDocument> {
    let name = || file.display().to_string();
    let document = ResultsDocument::from_json(text).with_context(name)?;
    document.check().with_context(name)?;
    Ok(document)
}
