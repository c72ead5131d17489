//! `hoistway conform`: how faithful are our schedulers to recorded kernels?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hoistway_conform::{Inconsistency, Interrupted, NotReplayed, Report, TraceReport, pool_of, replay};
use hoistway_trace::iosched::Trace;
use rayon::prelude::*;

use crate::Ending;
use crate::output::{Format, Output};

/// Replays recordings of real kernels and compares every decision.
///
/// Scores: `all` = same request; `hard` = the same where neither a FIFO nor a one-way elevator is right;
/// `switch` = same process where the process changes; `null` = both decline.
///
/// Examples:
///   hoistway conform crates/conform/traces/mq-deadline
///   hoistway conform --format json recording.jsonl.gz
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Recordings in the format iosched-trace/1, or folders of them (searched for *.jsonl and *.jsonl.gz).
    #[arg(required = true, value_name = "TRACE|FOLDER")]
    recordings: Vec<PathBuf>,
    /// How the scores are written.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(arguments.output.as_deref())?;
    let mut files = Vec::new();
    for path in &arguments.recordings {
        collect(path, &mut files)?;
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let watch = move || {
        // A recording that has been begun is finished, unless somebody will not wait for that.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(watch).context("cannot watch for Ctrl-C")?;
    let unless_interrupted = |file: &PathBuf| (!interrupted.load(Ordering::Relaxed)).then(|| score(file));
    let outcomes: Vec<(String, Result<TraceReport, String>)> =
        files.par_iter().filter_map(unless_interrupted).collect::<Result<_>>()?;
    let mut report = Report::default();
    if outcomes.len() < files.len() {
        report.interrupted = Some(Interrupted { recordings: outcomes.len(), of: files.len() });
    }
    for (file, outcome) in outcomes {
        match outcome {
            Ok(trace) => report.traces.push(trace),
            Err(reason) => report.skipped.push((file, reason)),
        }
    }
    let text = match arguments.format {
        Format::Table => report.table(false),
        Format::Json => report.json(),
    };
    output.write(&text)?;
    Ok(if report.interrupted.is_some() { Ending::Interrupted } else { Ending::Done })
}

/// Adds the recordings at `path`, those of a folder in the order of their names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        if !path.exists() {
            return Err(anyhow!("{}: no such file or folder (expected a recording)", path.display()));
        }
        files.push(path.to_owned());
        return Ok(());
    }
    let context = || format!("{}: cannot be read", path.display());
    let mut inside: Vec<PathBuf> =
        std::fs::read_dir(path).with_context(context)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    inside.sort();
    let before = files.len();
    for entry in inside {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if entry.is_dir() {
            // An empty folder inside another is no mistake.
            let _ = collect(&entry, files);
        } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            files.push(entry);
        }
    }
    if files.len() == before {
        return Err(anyhow!("{}: no recordings in it (expected *.jsonl or *.jsonl.gz)", path.display()));
    }
    Ok(())
}

fn score(file: &Path) -> Result<(String, Result<TraceReport, String>)> {
    let trace = Trace::open(file)?;
    let name = file.display().to_string();
    Ok(match replay(&trace) {
        Ok(outcome) => {
            let report = TraceReport { file: name.clone(), scheduler: pool_of(&trace), outcome };
            (name, Ok(report))
        }
        Err(unsupported @ NotReplayed::Unsupported { .. }) => (name, Err(unsupported.to_string())),
        Err(NotReplayed::Inconsistent(Inconsistency { line, problem })) => bail!("{name}:{line}: {problem}"),
    })
}
