//! `hoistway report`: a stored document as a page.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hoistway_answer::ResultsDocument;
use hoistway_answer::tuning::Tuning;

use super::plot::Plot;
use crate::Ending;
use crate::input::CommandLine;
use crate::output::Output;
use crate::printable;
use crate::stored::{self, Stored};

/// Makes a page of the results that `hoistway compare`, `hoistway run` or `hoistway tune` wrote with --format json: one file with all
/// that it needs, to be opened in any browser, sent, or printed.
///
/// Examples:
///   hoistway compare my-load.fio --format json -o results.json
///   hoistway report results.json -o page.html
///   hoistway report results.json > page.html
///   hoistway report results.json --plot latency.svg
///   hoistway tune my-load.fio --objective "min a:read:p99" --format json -o tuned.json
///   hoistway report tuned.json -o page.html --plot front.svg
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The results, or - for standard input.
    results: PathBuf,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Makes a plot for papers: the figure by which schedulers are judged, with intervals, and the latency distribution behind it; of a
    /// search its settings as points, with the Pareto front. The page is written then only if -o says where.
    #[arg(long, value_name = "FILE.svg|png")]
    plot: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let surroundings = CommandLine::default();
    let stored = stored::any(&surroundings, &arguments.results)?;
    [&arguments.output, &arguments.plot].into_iter().flatten().try_for_each(|file| surroundings.spare(file))?;
    let output = Output::open(arguments.output.as_deref())?;
    let plot = arguments.plot.as_deref().map(|file| Plot::open(file, &output)).transpose()?;
    let is_page_wanted = plot.is_none() || arguments.output.is_some();
    let page = match &stored {
        _ if !is_page_wanted => None,
        Stored::Results(document) => Some(page(document)?),
        Stored::Search(tuning) => Some(tuned_page(tuning)?),
    };
    match (plot, &stored) {
        (None, _) => {}
        (Some(plot), Stored::Results(document)) => plot.write(document)?,
        (Some(plot), Stored::Search(tuning)) => plot.write_search(tuning)?,
    }
    page.map_or(Ok(()), |page| output.write(page))?;
    Ok(Ending::Done)
}

/// The page of a comparison.
pub(super) fn page(document: &ResultsDocument) -> Result<String> {
    let shown = printable::document(document, ResultsDocument::from_json)?;
    Ok(hoistway_page::html(shown.as_ref().unwrap_or(document)))
}

/// The page of a search.
pub(super) fn tuned_page(tuning: &Tuning) -> Result<String> {
    let shown = printable::document(tuning, Tuning::from_json)?;
    Ok(hoistway_page::tuned_html(shown.as_ref().unwrap_or(tuning)))
}
