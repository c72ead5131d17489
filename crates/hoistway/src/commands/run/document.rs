//! The result document of runs for real: that of a comparison.

use std::time::{SystemTime, UNIX_EPOCH};

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::{FormatTag, Front, JobSummary, REVISION, Run, RunVariant, Statistics, cpu_us_per_io};
use hoistway_blk::Kernel;
use hoistway_fio::JobFile;
use hoistway_load::Load;
use hoistway_measure::fio::{Output, OutputParameters};
use serde_json::{Map, Value, json};

use super::RunOf;
use super::arguments::Arguments;
use super::target::Target;

/// What latencies are of.
const ABOUT_LATENCY: &str = "Latencies are from when a process hands an I/O in until it learns of its end; fio's slat is part \
                             of its clat here.";

pub(super) fn of(
    arguments: &Arguments,
    target: &Target,
    file: &JobFile,
    text: String,
    runs: Vec<RunOf>,
    wall_seconds: f64,
) -> ResultsDocument {
    let mut notices: Vec<String> = file.notices.clone();
    for note in runs.iter().flat_map(|run| &run.notes) {
        if !notices.contains(note) {
            notices.push(note.clone());
        }
    }
    notices.push(ABOUT_LATENCY.to_owned());
    let first = runs.first();
    let command_line = crate::command_line();
    let mut document = ResultsDocument {
        format: FormatTag,
        revision: REVISION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line.1,
        arguments: command_line.0,
        job_file: arguments.job.display().to_string(),
        job_text: text,
        recording: None,
        device: json!({ "name": target.name(), "target": arguments.target }),
        guests: None,
        kernel: Kernel::DEFAULT.to_string(),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        hw_queues: first.map_or(0, |run| run.hw_queues),
        nr_requests: first.map_or(0, |run| run.nr_requests),
        host: Value::from("this machine"),
        seed: arguments.run.seed,
        seeds: vec![arguments.run.seed],
        setups: Vec::new(),
        wall_seconds,
        simulated_ios: 0,
        is_real: true,
        writes: Vec::new(),
        partial: false,
        notices,
        default_scheduler: None,
        baseline: None,
        focus: None,
        focuses: Vec::new(),
        smallest_effect: None,
        doubts: Vec::new(),
        verdicts: Vec::new(),
        conclusion: Vec::new(),
        advice: Vec::new(),
        statistics: None,
        runs: runs.iter().map(|run| run_of(arguments, file, run)).collect(),
    };
    document.simulated_ios = document.runs.iter().map(|run| run.simulated_ios).sum();
    document.statistics = Some(Statistics::of(&document));
    document
}

fn run_of(arguments: &Arguments, file: &JobFile, run: &RunOf) -> Run {
    let number = |text: &str| text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from);
    let tunables: Map<String, Value> = run.tunables.iter().map(|(name, text)| (name.clone(), number(text))).collect();
    Run {
        scheduler: run.scheduler.clone(),
        front: Front::Mq,
        ran_as: None,
        tunables,
        queue_files: Map::new(),
        variant: RunVariant::new(&run.scheduler, Map::new()),
        setup: 0,
        repeat: 0,
        seed: arguments.run.seed,
        simulated_seconds: run.seconds,
        simulated_ios: run.processes.iter().map(|process| process.total_ios()).sum(),
        wall_seconds: run.seconds,
        cpu_us_per_io: cpu_us_per_io(&run.processes),
        disks: Vec::new(),
        locks: None,
        page_cache: None,
        jobs: JobSummary::from_processes(&run.processes),
        excerpt: None,
        fio: fio_output(&file.load, run, false),
    }
}

/// What fio would have written of a run.
pub(super) fn fio_output(load: &Load, run: &RunOf, bins: bool) -> Output {
    let parameters = OutputParameters { bins, ..OutputParameters::default() };
    let mut output = Output::from_processes(&load.options, &run.processes, &parameters);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    output.set_timestamp_ms(now);
    output
}
