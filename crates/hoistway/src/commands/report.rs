//! `hoistway report`: a stored result document as a page.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hoistway_results::ResultsDocument;

use super::plot::Plot;
use crate::Ending;
use crate::input::CommandLine;
use crate::output::Output;
use crate::printable;
use crate::stored;

/// Makes a page of the results that `hoistway compare --format json` or `hoistway run --format json` wrote: one file with all that
/// it needs, to be opened in any browser, sent, or printed.
///
/// Examples:
///   hoistway compare my-load.fio --format json -o results.json
///   hoistway report results.json -o page.html
///   hoistway report results.json > page.html
///   hoistway report results.json --plot latency.svg
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The results, or - for standard input.
    results: PathBuf,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Makes a plot for papers: the figure by which schedulers are judged, with intervals, and the latency distribution behind it. The
    /// page is written then only if -o says where.
    #[arg(long, value_name = "FILE.svg|png")]
    plot: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let surroundings = CommandLine::default();
    let document = stored::document(&surroundings, &arguments.results)?;
    [&arguments.output, &arguments.plot].into_iter().flatten().try_for_each(|file| surroundings.spare(file))?;
    let output = Output::open(arguments.output.as_deref())?;
    let plot = arguments.plot.as_deref().map(|file| Plot::open(file, &output)).transpose()?;
    let is_page_wanted = plot.is_none() || arguments.output.is_some();
    let page = if is_page_wanted { Some(page(&document)?) } else { None };
    plot.map_or(Ok(()), |plot| plot.write(&document))?;
    page.map_or(Ok(()), |page| output.write(page))?;
    Ok(Ending::Done)
}

/// The page of a document.
pub(super) fn page(document: &ResultsDocument) -> Result<String> {
    let shown = printable::document(document)?;
    Ok(hoistway_page::html(shown.as_ref().unwrap_or(document)))
}
