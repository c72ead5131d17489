//! `hoistway trace convert`: converts a recording to another format.

mod iologs;

use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;
use hoistway_trace::block::{
    Action, BlktraceWriter, ChromeWriter, Event, Flights, IologVersion, Payload, ReadError, Recording, Step,
};

use hoistway_terminal::output::Output;

use super::source::Source;
use crate::numbered_files::NumberedFiles;

/// Convert a recording to another format.
///
/// The format follows from the output's extension:
///   NAME.blktrace         blktrace's records for blkparse and btt: NAME.blktrace.0 ..., one a CPU
///   NAME.iolog            I/O logs of fio: NAME.iolog.0 ..., one for each stream, and NAME.iolog.fio,
///                         which replays them (NAME.log: the same, under that name)
///   NAME.perfetto-trace   I/Os below their tasks, for ui.perfetto.dev (Chrome's JSON)
///   NAME.jsonl            a line for each event
///
/// Examples:
///   hoistway trace convert trace.txt.gz -o trace.blktrace
///   hoistway trace convert trace.blktrace.0 -o trace.iolog
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConvertArguments {
    #[command(flatten)]
    source: Source,
    /// NAME.blktrace, NAME.iolog, NAME.perfetto-trace or NAME.jsonl.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Version of I/O logs: 3 has times in microseconds; 2, for old fio, in milliseconds. [default: 3]
    #[arg(long, value_name = "2|3", value_parser = version)]
    iolog_version: Option<IologVersion>,
}

/// Maximum CPUs, and therefore files, of a converted recording.
const CPUS_MAX: u32 = 4096;

fn version(text: &str) -> Result<IologVersion, String> {
    match text {
        "2" => Ok(IologVersion::V2),
        "3" => Ok(IologVersion::V3),
        _ => Err("expected 2 or 3".to_owned()),
    }
}

pub(crate) fn convert(arguments: &ConvertArguments) -> Result<()> {
    let output = &arguments.output;
    let ending = output.extension().and_then(|ending| ending.to_str());
    ensure!(
        arguments.iolog_version.is_none() || matches!(ending, Some("iolog" | "log")),
        "--iolog-version: -o {} is not an I/O log (expected NAME.iolog)",
        output.display()
    );
    match ending {
        Some("jsonl") => to_json(arguments),
        Some("blktrace") => to_blktrace(arguments),
        Some("iolog" | "log") => iologs::write(&arguments.source, output, arguments.iolog_version.unwrap_or_default()),
        Some("perfetto-trace") => to_chrome(arguments),
        Some("parquet") => {
            let json = output.with_extension("jsonl");
            bail!(
                "-o {}: there is no writer of Parquet (expected {1}, and in Python polars.scan_ndjson(\"{1}\", infer_schema_length=None).sink_parquet(...))",
                output.display(),
                json.display()
            )
        }
        _ => bail!(
            "-o {}: unknown extension (expected NAME.blktrace, NAME.iolog, NAME.perfetto-trace or NAME.jsonl)",
            output.display()
        ),
    }
}

/// The next event of the requested device, or of any device.
fn next(recording: &mut Recording, source: &Source) -> Result<Option<Event>, ReadError> {
    while let Some(event) = recording.next_event()? {
        if source.major_minor.is_none_or(|device| event.device == device) {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

fn to_blktrace(arguments: &ConvertArguments) -> Result<()> {
    let mut recording = arguments.source.open()?;
    let mut files = NumberedFiles::new(&arguments.output);
    let mut writer = BlktraceWriter::new(vec![files.next()?]);
    while let Some(event) = next(&mut recording, &arguments.source)? {
        ensure!(event.cpu < CPUS_MAX, "an event of CPU {} (expected a number below {CPUS_MAX})", event.cpu);
        // blkparse stops at the first missing number, so CPUs without events get empty files.
        while writer.cpus() <= event.cpu as usize {
            writer.add(files.next()?);
        }
        writer.write(&event, recording.names())?;
    }
    writer.finish()?;
    files.finish()
}

fn to_json(arguments: &ConvertArguments) -> Result<()> {
    let mut recording = arguments.source.open()?;
    let mut out = BufWriter::new(Output::open(Some(&arguments.output))?.stream()?);
    while let Some(event) = next(&mut recording, &arguments.source)? {
        let line = json(&event, recording.names().get(event.pid));
        out.write_all(format!("{line}\n").as_bytes())?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

/// Number of events read ahead to decide whether a recording has queue events (bios), or only those of requests.
const LOOKAHEAD: usize = 4096;

fn to_chrome(arguments: &ConvertArguments) -> Result<()> {
    let mut recording = arguments.source.open()?;
    let mut writer = ChromeWriter::new(BufWriter::new(Output::open(Some(&arguments.output))?.stream()?))?;
    let mut first = Vec::with_capacity(LOOKAHEAD);
    while first.len() < LOOKAHEAD
        && let Some(event) = next(&mut recording, &arguments.source)?
    {
        first.push(event);
    }
    let mut in_flight = Flights::new(!first.iter().any(|event| event.action == Action::Queue));
    let begin_ns = first.first().map_or(0, |event| event.time_ns);
    let mut written = Ok(());
    let mut first = first.into_iter();
    while let Some(event) =
        first.next().map_or_else(|| next(&mut recording, &arguments.source), |event| Ok(Some(event)))?
    {
        in_flight.take(&event, &mut |step, io| {
            if step == Step::Completed && written.is_ok() {
                written = writer.write(io, begin_ns, event.time_ns, recording.names());
            }
        });
    }
    written?;
    writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

/// An event as JSON, with blkparse's names for its fields.
fn json(event: &Event, task: Option<&str>) -> serde_json::Value {
    let mut value = serde_json::json!({
        "time_ns": event.time_ns,
        "action": event.action.letters(),
        "device": event.device.to_string(),
        "cpu": event.cpu,
        "pid": event.pid,
        "rwbs": event.flags.letters(),
        "sector": event.sector,
        "bytes": event.bytes,
        "error": event.error,
    });
    let mut add = |name: &str, more: serde_json::Value| value[name] = more;
    if let Some(task) = task {
        add("task", task.into());
    }
    if event.priority.0 != 0 {
        add("ioprio", event.priority.0.into());
    }
    if event.cgroup != 0 {
        add("cgroup", event.cgroup.into());
    }
    match event.payload {
        Payload::None => {}
        Payload::Requests(requests) => add("requests", requests.into()),
        Payload::Rest(sector) => add("rest_sector", sector.into()),
        Payload::From { device, sector } => {
            add("from_device", device.to_string().into());
            add("from_sector", sector.into());
        }
    }
    value
}
