//! `hoistway report`: renders a stored result document as an HTML page.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hoistway_answer::tuning::Tuning;
use hoistway_answer::{Analysis, ResultsDocument};

use crate::input::CommandLine;
use crate::stored::{self, Stored};
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;
use hoistway_terminal::printable;

/// Make an HTML page of results that `hoistway compare`, `hoistway run` or `hoistway tune` wrote with --format json: one
/// self-contained file for any browser.
///
/// Examples:
///   hoistway compare my-load.fio --format json -o results.json
///   hoistway report results.json -o page.html
///   hoistway report results.json > page.html
///   hoistway tune my-load.fio --objective "min a:read:p99" --format json -o tuned.json
///   hoistway report tuned.json -o page.html
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The results, or - for standard input.
    results: PathBuf,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    let stored = stored::any(&environment, &arguments.results)?;
    arguments.output.iter().try_for_each(|file| environment.spare(file))?;
    let output = Output::open(arguments.output.as_deref())?;
    output.write(match &stored {
        Stored::Results(document) => page(document)?,
        Stored::Search(tuning) => tuned_page(tuning)?,
    })?;
    Ok(Ending::Done)
}

/// The page of a comparison.
pub(super) fn page(document: &ResultsDocument) -> Result<String> {
    let escaped = printable::document(document, ResultsDocument::from_json)?;
    Ok(hoistway_render::html::html(&Analysis::of(escaped.as_ref().unwrap_or(document))))
}

/// The page of a search.
pub(super) fn tuned_page(tuning: &Tuning) -> Result<String> {
    let escaped = printable::document(tuning, Tuning::from_json)?;
    Ok(hoistway_render::html::tuned_html(escaped.as_ref().unwrap_or(tuning)))
}
