//! `hoistway why`: counts the reasons for dispatch decisions in a trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flate2::bufread::MultiGzDecoder;
use hoistway_trace::events::{Header, Reader};
use serde_json::{Value, json};

use hoistway_render::text::aligned;
use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output};
use hoistway_terminal::printable;

/// Count the reasons why each scheduler chose a request, or dispatched none, in a trace of `hoistway compare --trace`.
///
/// Examples:
///   hoistway why events.jsonl.gz
///   hoistway why --format json events.jsonl
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The trace.
    trace: PathBuf,
    /// The output format: a table by job, or JSON by process.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A reason: its keyword and its sentence.
type Reason = (String, String);

/// The owner of a chosen request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequestOwner {
    /// No request was chosen.
    NoRequest,
    /// The kernel: write-back and journals, or all I/O of a host for its guests.
    Kernel,
    Process(u32),
}

/// A run's decisions, counted by owner and reason.
type Counts = BTreeMap<(RequestOwner, Reason), u64>;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(None)?;
    let name = arguments.trace.display();
    let (header, mut reader) = Reader::new(open(&arguments.trace)?).with_context(|| name.to_string())?;
    let mut runs: Vec<Counts> = vec![Counts::new(); header.runs.len()];
    let mut is_partial = false;
    while let Some(line) = reader.line().with_context(|| name.to_string())? {
        is_partial |= line.partial == Some(true);
        let (Some(reason), Some(why)) = (line.reason, line.why) else { continue };
        let Some(counts) = line.run.and_then(|run| runs.get_mut(run as usize)) else {
            bail!("{name}: has an event of a run that its first line does not list (expected a complete trace)");
        };
        let owner = match (line.process, line.rq) {
            (Some(process), _) => RequestOwner::Process(process),
            (None, Some(_)) => RequestOwner::Kernel,
            (None, None) => RequestOwner::NoRequest,
        };
        *counts.entry((owner, (reason.into_owned(), why.into_owned()))).or_default() += 1;
    }
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&document(&header, &runs, is_partial))? + "\n",
        Format::Table => printable::text(&table(&header, &runs, is_partial)),
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

/// Opens the file, and decompresses it if necessary.
fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let unreadable = || format!("{}: cannot be read (expected a trace of `hoistway compare --trace`)", path.display());
    let mut file = BufReader::with_capacity(1 << 18, File::open(path).with_context(unreadable)?);
    let is_gzip = file.fill_buf().with_context(unreadable)?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) })
}

fn job_of(header: &Header, owner: RequestOwner) -> &str {
    match owner {
        RequestOwner::NoRequest => "(no request)",
        RequestOwner::Kernel => "(no job)",
        RequestOwner::Process(process) => header.processes.get(process as usize).map_or("", |process| &process.job),
    }
}

fn table(header: &Header, runs: &[Counts], is_partial: bool) -> String {
    let devices = header.devices.join(" + ");
    let mut text = format!("{} on {devices}, Linux {}, seed {}\n", header.job_file, header.kernel, header.seed);
    for (run, counts) in header.runs.iter().zip(runs) {
        let set = run.tunables.iter().map(|(name, value)| format!(" {name}={}", value.as_str().unwrap_or_default()));
        text += &format!("\n{}{}\n", run.scheduler, set.collect::<String>());
        if counts.is_empty() {
            text += "  never asked for a request\n";
            continue;
        }
        let mut by_job: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for ((owner, (_, why)), count) in counts {
            *by_job.entry((job_of(header, *owner), why)).or_default() += count;
        }
        let all: u64 = by_job.values().sum();
        let mut rows: Vec<_> = by_job.into_iter().collect();
        rows.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let cells: Vec<[String; 4]> = rows
            .into_iter()
            .map(|((job, why), count)| {
                let percent = count as f64 * 100.0 / all as f64;
                [format!("{count:>9}"), format!("{percent:>4.1} %"), job.to_owned(), why.to_owned()]
            })
            .collect();
        text += &aligned(&cells);
    }
    if is_partial {
        text += "\nIncomplete: some events are missing.\n";
    }
    text
}

fn document(header: &Header, runs: &[Counts], is_partial: bool) -> Value {
    let runs = header.runs.iter().zip(runs).map(|(run, counts)| {
        let reasons = counts.iter().map(|((owner, (reason, why)), count)| {
            let process = match owner {
                RequestOwner::Process(process) => Some(process),
                RequestOwner::NoRequest | RequestOwner::Kernel => None,
            };
            let job = process.map(|_| job_of(header, *owner));
            let is_request = *owner != RequestOwner::NoRequest;
            json!({"process": process, "job": job, "request": is_request, "reason": reason, "why": why, "count": count})
        });
        json!({
            "run": run.run,
            "scheduler": run.scheduler,
            "tunables": run.tunables,
            "reasons": reasons.collect::<Vec<_>>(),
        })
    });
    json!({
        "format": "hoistway-reasons/1",
        "job_file": header.job_file,
        "devices": header.devices,
        "kernel": header.kernel,
        "seed": header.seed,
        "partial": is_partial,
        "runs": runs.collect::<Vec<_>>(),
    })
}
