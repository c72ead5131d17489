//! `hoistway conform`: how faithfully the schedulers reproduce recorded kernels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hoistway_evidence::conform::diff::{KernelComparison, KernelDiff};
use hoistway_evidence::conform::{
    Inconsistency, Interrupted, NotReplayed, Refused, Report, TraceReport, pool_of, replay,
};
use hoistway_trace::iosched::{ReadError, Trace};

use hoistway_terminal::Ending;
use hoistway_terminal::files::{Identity, identity, spare};
use hoistway_terminal::output::{Format, Output};

/// Replay recordings of real kernels and compare every decision.
///
/// Scores: `all` = same request; `hard` = same request where neither a FIFO nor a one-way elevator chooses it; `switch`
/// = same process where the process changes; `null` = neither dispatches.
///
/// Damaged recordings are listed with file, line and reason, and the exit status is then 2; the others are still
/// scored.
///
/// Examples:
///   hoistway conform crates/evidence/traces/mq-deadline
///   hoistway conform --format json recording.jsonl.gz
///   hoistway conform --diff recordings/6.12 recordings/6.18
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Recordings in the format iosched-trace/1, or folders of them (searched for *.jsonl and *.jsonl.gz).
    #[arg(required_unless_present = "diff", value_name = "TRACE|FOLDER")]
    recordings: Vec<PathBuf>,
    /// Compare two kernels instead: recordings of the same scenarios, or folders of them, paired by name.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "recordings")]
    diff: Option<Vec<PathBuf>>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    if let Some(sides) = &arguments.diff {
        return compare_kernels(&sides[0], &sides[1], arguments);
    }
    let output = Output::open(arguments.output.as_deref())?;
    let mut files = Vec::new();
    for path in &arguments.recordings {
        collect(path, &mut files)?;
    }
    if let Some(output) = &arguments.output {
        let read: Vec<Identity> = files.iter().filter_map(|file| identity(file)).collect();
        spare(&read, output)?;
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let watch = move || {
        // The first Ctrl-C lets started recordings finish; the second exits.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    hoistway_terminal::interrupt::on_interrupt(watch)?;
    let unless_interrupted = |file: &PathBuf| (!interrupted.load(Ordering::Relaxed)).then(|| score(file));
    let verdicts: Vec<RecordingResult> =
        hoistway_parallel::map(&files, unless_interrupted).into_iter().flatten().collect();
    let mut report = Report::default();
    if verdicts.len() < files.len() {
        report.interrupted = Some(Interrupted { recordings: verdicts.len(), of: files.len() });
    }
    for verdict in verdicts {
        match verdict {
            RecordingResult::Scored(trace) => report.traces.push(*trace),
            RecordingResult::Skipped { file, reason } => report.skipped.push((file, reason)),
            RecordingResult::Refused(refused) => report.refused.push(refused),
        }
    }
    let text = match arguments.format {
        Format::Table => report.table(false),
        Format::Json => report.json(),
    };
    output.write(&text)?;
    if report.interrupted.is_some() {
        return Ok(Ending::Interrupted);
    }
    match &report.refused[..] {
        [] => Ok(Ending::Done),
        [damaged] => bail!("{damaged}"),
        [first, others @ ..] => bail!("{first} (and {} more damaged recordings)", others.len()),
    }
}

/// Compares the recordings of two kernels.
fn compare_kernels(first: &Path, second: &Path, arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(arguments.output.as_deref())?;
    let [first, second] = [named_recordings(first)?, named_recordings(second)?];
    if let Some(output) = &arguments.output {
        let read: Vec<Identity> = first.values().chain(second.values()).filter_map(|file| identity(file)).collect();
        spare(&read, output)?;
    }
    // Two files are a pair whatever their names are.
    let pairs: Vec<(&PathBuf, &PathBuf)> = match (first.len(), second.len()) {
        (1, 1) => first.values().zip(second.values()).collect(),
        _ => first.iter().filter_map(|(name, file)| Some((file, second.get(name)?))).collect(),
    };
    let open = |file: &PathBuf| Trace::open(file).map_err(|error| anyhow!("{error}"));
    let compare = |(one, other): &(&PathBuf, &PathBuf)| -> Result<KernelComparison> {
        Ok(KernelComparison::of(&open(one)?, &open(other)?))
    };
    let comparisons = hoistway_parallel::map(&pairs, compare).into_iter().collect::<Result<Vec<_>>>()?;
    let is_paired = |file: &PathBuf| pairs.iter().any(|(one, other)| *one == file || *other == file);
    let lonely = first.values().chain(second.values()).filter(|file| !is_paired(file));
    let report = KernelDiff::new(comparisons, lonely.map(|file| file.display().to_string()).collect());
    let text = match arguments.format {
        Format::Table => report.text(),
        Format::Json => report.json(),
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

/// The recordings below a path, by the names of their files.
fn named_recordings(path: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    let mut named = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(other) = named.insert(name, file.clone()) {
            let (file, other) = (file.display(), other.display());
            bail!("{file}: has the name of {other} (expected one recording of each scenario on a side of --diff)");
        }
    }
    Ok(named)
}

/// The result for a recording.
enum RecordingResult {
    Scored(Box<TraceReport>),
    /// Its scheduler is not implemented here.
    Skipped {
        file: String,
        reason: String,
    },
    /// It is damaged; other recordings are still scored.
    Refused(Refused),
}

/// Adds the recording at `path`, or the recordings in that folder, sorted by name.
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
            // An empty subfolder is allowed.
            let _ = collect(&entry, files);
        } else if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            files.push(entry);
        }
    }
    if files.len() == before {
        return Err(anyhow!("{}: has no recordings (expected *.jsonl or *.jsonl.gz)", path.display()));
    }
    Ok(())
}

fn score(path: &Path) -> RecordingResult {
    let file = path.display().to_string();
    let trace = match Trace::open(path) {
        Ok(trace) => trace,
        Err(ReadError { line, problem, .. }) => {
            return RecordingResult::Refused(Refused { file, line, reason: problem.to_string() });
        }
    };
    match replay(&trace) {
        Ok(outcome) => RecordingResult::Scored(Box::new(TraceReport { file, scheduler: pool_of(&trace), outcome })),
        Err(unsupported @ NotReplayed::Unsupported { .. }) => {
            RecordingResult::Skipped { file, reason: unsupported.to_string() }
        }
        Err(NotReplayed::Inconsistent(Inconsistency { line, problem })) => {
            RecordingResult::Refused(Refused { file, line: Some(line), reason: problem })
        }
    }
}
