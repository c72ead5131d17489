//! `hoistway trace`: recordings of block I/O.

mod convert;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use hoistway_program::{Description, Options, Program};
use hoistway_trace::block::{Columns, Device, Input, Recording};

use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output};
use hoistway_terminal::printable;

/// Describes and converts recordings of block I/O.
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

/// Prints what a recording holds: mix, sizes, depth over time, streams, latencies by device and task, losses.
///
/// Reads blktrace's files (any member of the set, the folder, or a merged stream), text of blkparse, ftrace, trace-cmd, perf and
/// biosnoop, and tables, plain or compressed.
/// The times between events have btt's names and definitions.
///
/// Examples:
///   hoistway trace info trace.blktrace.0
///   hoistway trace info --major-minor 8,0 trace.txt.gz
///   blktrace -d /dev/sda -o - | hoistway trace info -
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
struct InfoArguments {
    /// The recording; - for standard input.
    recording: PathBuf,
    /// The device to describe, if the recording has several.
    #[arg(long, value_name = "MAJOR,MINOR", value_parser = device)]
    major_minor: Option<Device>,
    /// Columns of a table: msr, alibaba, tencent, spc, systor17, fiu, mqsim, or where each is, from 1, with its unit, as
    /// time=1:us,op=2:R/W,offset=3:bytes,size=4:bytes,response=5:us,dev=6,pid=7.
    #[arg(long, value_name = "COLUMNS", value_parser = Columns::parse)]
    columns: Option<Columns>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn device(text: &str) -> Result<Device, String> {
    Device::parse(text).ok_or_else(|| "expected MAJOR,MINOR, as 8,0".to_owned())
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
    let file = arguments.recording.display().to_string();
    let mut recording = match &arguments.columns {
        Some(columns) => Recording::table(Input::open(&arguments.recording)?, columns)?,
        None => Recording::open(&arguments.recording)?,
    };
    let options = Options { device: arguments.major_minor, intervals: true, ..Options::default() };
    let program = Program::infer(&mut recording, &file, &options)?;
    let description = Description::new(&program, &recording, &file);
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&description).context("the description")? + "\n",
        // Names of tasks may hold anything.
        Format::Table => description.to_string().lines().map(|line| printable::text(line) + "\n").collect(),
    };
    output.write(text)
}
