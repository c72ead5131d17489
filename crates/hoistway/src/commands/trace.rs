//! `hoistway trace`: describes and converts recordings of block I/O.

mod convert;
mod source;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use hoistway_program::{Description, Options, RequestedDevice};

use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output};
use hoistway_terminal::printable;

use self::source::Source;

/// Describe and convert recordings of block I/O.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Convert(convert::ConvertArguments),
    Info(InfoArguments),
}

/// Describe a recording: mix, sizes, depth over time, streams, latencies by device and task, losses.
///
/// Reads blktrace's files (any member of the set, the folder, or a merged stream), the text of blkparse, ftrace, trace-cmd, perf
/// and biosnoop, vSCSI records, and tables, plain or compressed. Intervals between events have btt's names and definitions.
///
/// Examples:
///   hoistway trace info trace.blktrace.0
///   hoistway trace info --major-minor 8,0 trace.txt.gz
///   blktrace -d /dev/sda -o - | hoistway trace info -
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
struct InfoArguments {
    #[command(flatten)]
    source: Source,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    match &arguments.command {
        Command::Convert(arguments) => convert::convert(arguments)?,
        Command::Info(arguments) => info(arguments)?,
    }
    Ok(Ending::Done)
}

fn info(arguments: &InfoArguments) -> Result<()> {
    let output = Output::open(None)?;
    let file = arguments.source.name();
    let mut recording = arguments.source.open()?;
    let options = Options {
        device: arguments.source.major_minor.map(RequestedDevice::Number),
        intervals: true,
        ..Options::default()
    };
    let program = arguments.source.infer(&mut recording, &options)?;
    let description = Description::new(&program, &recording, &file);
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&description).context("the description")? + "\n",
        // Names of tasks may contain control characters.
        Format::Table => description.to_string().lines().map(|line| printable::text(line) + "\n").collect(),
    };
    output.write(text)
}
