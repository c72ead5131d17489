//! `hoistway trace convert`: a recording in another format.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use hoistway_trace::block::{BlktraceWriter, Event, Payload, Recording};

use hoistway_terminal::output::{Output, cannot_be_written};

/// Writes a recording in another format: that of blktrace for blkparse and btt, or JSON with a line for each event.
///
/// The ending of the output says which. NAME.blktrace is written as NAME.blktrace.0 and so on, a file for each CPU.
///
/// Examples:
///   hoistway trace convert trace.txt.gz -o trace.blktrace
///   hoistway trace convert trace.blktrace.0 -o trace.jsonl
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConvertArguments {
    /// The recording; - for standard input.
    recording: PathBuf,
    /// NAME.blktrace or NAME.jsonl.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// CPUs that a set may have files for.
const CPUS_MAX: u32 = 4096;

pub(crate) fn convert(arguments: &ConvertArguments) -> Result<()> {
    let output = &arguments.output;
    match output.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => to_json(arguments),
        Some("blktrace") => {
            let mut parts = Vec::new();
            let written = to_blktrace(arguments, &mut parts);
            let renamed =
                written.and_then(|()| parts.iter().try_for_each(|(part, place)| Ok(fs::rename(part, place)?)));
            if renamed.is_err() {
                // Nothing half-written stays behind.
                parts.iter().for_each(|(part, _)| drop(fs::remove_file(part)));
            }
            renamed
        }
        _ => bail!("-o {}: an unknown ending (expected NAME.blktrace or NAME.jsonl)", output.display()),
    }
}

/// A file that is not complete, and its place.
type Part = (PathBuf, PathBuf);

fn open(output: &Path, parts: &mut Vec<Part>) -> io::Result<BufWriter<File>> {
    let with = |ending: String| {
        let mut name = output.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let cpu = parts.len();
    let (part, place) = (with(format!(".{cpu}.part")), with(format!(".{cpu}")));
    let file = File::create(&part)?;
    parts.push((part, place));
    Ok(BufWriter::new(file))
}

fn opened(output: &Path, parts: &mut Vec<Part>) -> Result<BufWriter<File>> {
    open(output, parts).with_context(|| cannot_be_written(output))
}

fn to_blktrace(arguments: &ConvertArguments, parts: &mut Vec<Part>) -> Result<()> {
    let mut recording = Recording::open(&arguments.recording)?;
    let mut writer = BlktraceWriter::new(vec![opened(&arguments.output, parts)?]);
    while let Some(event) = recording.next_event()? {
        ensure!(event.cpu < CPUS_MAX, "an event of CPU {} (expected less than {CPUS_MAX})", event.cpu);
        // blkparse stops at the first number that is missing: CPUs between have empty files.
        while writer.cpus() <= event.cpu as usize {
            writer.add(opened(&arguments.output, parts)?);
        }
        writer.write(&event, recording.names())?;
    }
    writer.finish()?;
    Ok(())
}

fn to_json(arguments: &ConvertArguments) -> Result<()> {
    let mut recording = Recording::open(&arguments.recording)?;
    let mut out = BufWriter::new(Output::open(Some(&arguments.output))?.stream()?);
    while let Some(event) = recording.next_event()? {
        let line = json(&event, recording.names().get(event.pid));
        out.write_all(format!("{line}\n").as_bytes())?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}

/// An event as blkparse names its parts.
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
