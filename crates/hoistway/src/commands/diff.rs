//! `hoistway diff`: compares two result documents.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use hoistway_answer::Analysis;
use hoistway_answer::diff::Diff;

use crate::input::CommandLine;
use crate::stored;
use hoistway_terminal::Ending;
use hoistway_terminal::output::{DocumentFormat as Format, Output};
use hoistway_terminal::printable;

/// Show the differences of two result documents: inputs, and figures that differ beyond the noise.
///
/// Both are written by `hoistway compare --format json`. Runs with the same seed are compared in pairs; if the seeds differ, the
/// documents are compared as independent samples. Rows are matched by their names in the table.
///
/// Examples:
///   hoistway compare my-load.fio --repeat 5 --format json -o before.json
///   hoistway compare my-load.fio --repeat 5 --format json -o after.json --kernel 6.12
///   hoistway diff before.json after.json
///   hoistway diff before.json after.json --all --format markdown
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The first document, or - for standard input.
    before: PathBuf,
    /// The second document.
    after: PathBuf,
    /// Also show figures that did not change, or changed only within the noise.
    #[arg(long)]
    all: bool,
    /// The output format; JSON has all figures.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = CommandLine::default();
    if arguments.before == Path::new("-") && arguments.after == Path::new("-") {
        bail!("-: standard input can be read once (expected two files, or one and -)");
    }
    let before = stored::document(&environment, &arguments.before)?;
    let after = stored::document(&environment, &arguments.after)?;
    arguments.output.iter().try_for_each(|file| environment.spare(file))?;
    let output = Output::open(arguments.output.as_deref())?;
    let diff = Diff::of(&Analysis::of(&before), &Analysis::of(&after));
    let text = match arguments.format {
        Format::Table => printable::text(&hoistway_render::text::diff(&diff, arguments.all, output.text_width())),
        Format::Markdown => printable::text(&hoistway_render::text::diff_markdown(&diff, arguments.all)),
        Format::Json => serde_json::to_string_pretty(&diff)? + "\n",
    };
    output.write(&text)?;
    Ok(Ending::Done)
}
