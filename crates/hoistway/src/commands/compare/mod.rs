//! `hoistway compare`: one load under every scheduler.

mod arguments;
mod calibrated;
mod devices;
mod effects;
mod fio_logs;
mod fio_options;
mod format;
mod guests;
mod host;
mod io_max;
mod io_prio_class;
mod load;
mod plan;
mod queue_files;
mod queues;
mod repeats;
mod schedulers;
mod together;
mod tunables;
mod writes;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Instant as WallClock, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use hoistway_results::document::{DiskSummary, FormatTag, Run, Statistics};
use hoistway_results::fio::{self, OutputParameters};
use hoistway_results::{Direction, ResultsDocument};
use hoistway_sim::{Control, RunResult, compare};

use self::fio_logs::FioLogs;
use self::format::Format;
use self::plan::Plan;
use crate::Ending;
use crate::output::Output;
use crate::progress::Progress;
use crate::trace_file::TraceFile;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::devices::device_named;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let mut plan = Plan::of(arguments)?;
    arguments.format.check(plan.specs.len())?;
    let output = Output::open(arguments.output.as_deref())?;
    let trace = arguments.trace.as_deref().map(|file| TraceFile::open(file, &output)).transpose()?;
    let logs = arguments.fio_logs.as_deref().map(FioLogs::open).transpose()?;
    let begin = WallClock::now();
    let (runs, partial, noted) = simulate(arguments, &plan, trace, logs.as_ref())?;
    let wall_seconds = begin.elapsed().as_secs_f64();
    plan.notices.extend(noted.notice);
    plan.notices.extend(noted.refused);
    let runs = repeats::counted(runs, &plan.seeds, plan.runs_of_repeat(), &noted.cut_short);
    let document = document(arguments, plan, runs, wall_seconds, partial)?;
    let text = arguments.format.rendered(&document, noted.json_plus.as_ref(), &output)?;
    logs.map(FioLogs::finish).transpose()?;
    output.write(&text)?;
    if partial {
        return Ok(Ending::Interrupted);
    }
    Ok(if has_failed(&document) { Ending::JobFailed } else { Ending::Done })
}

/// Whether an error ended a process in any run.
fn has_failed(document: &ResultsDocument) -> bool {
    document.runs.iter().flat_map(|run| &run.jobs).any(|job| !job.failed.is_empty())
}

/// Carries all runs out. Answers whether they were cut short.
fn simulate(
    arguments: &Arguments,
    plan: &Plan,
    trace: Option<TraceFile>,
    logs: Option<&FioLogs>,
) -> Result<(Vec<Run>, bool, Noted)> {
    let specs = &plan.specs;
    let controls: Arc<Vec<Control>> = Arc::new(specs.iter().map(|_| Control::default()).collect());
    let interrupted = Arc::clone(&controls);
    ctrlc::set_handler(move || cancel(&interrupted)).context("cannot watch for Ctrl-C")?;
    let seen = Seen::default();
    let see = |place: usize, run: &Run, result: &RunResult| {
        let label = specs[place].label();
        for refused in &result.refused {
            seen.add(|seen| seen.refused.push(format!("{label}: {refused}.")));
        }
        if result.partial {
            seen.add(|seen| seen.cut_short.push((label.clone(), specs[place].seed)));
        }
        if logs.is_none() && arguments.format != Format::FioJsonPlus {
            return;
        }
        let disk_util = run.disks.iter().map(DiskSummary::as_fio).collect();
        let parameters = OutputParameters { bins: true, disk_util, ..OutputParameters::default() };
        let mut json = fio::Output::from_processes(&plan.workload.options, &result.processes, &parameters);
        json.set_timestamp_ms(now_ms());
        fio_options::complete(&mut json);
        if let Some(logs) = logs
            && !logs.write(&label, place / plan.runs_of_repeat(), &result.processes, &json)
        {
            cancel(&controls);
        }
        seen.add(|seen| {
            seen.notice = seen.notice.take().or_else(|| fio_logs::cut_notice(&result.processes));
            seen.json_plus = Some(json);
        });
    };
    let scenario = plan.scenario(arguments);
    let (runs, partial) = {
        let _progress = Progress::show(&controls, load::expected_ns(&plan.workload, arguments.runtime));
        match trace {
            None => compare(&scenario, specs, &controls, &see)?,
            Some(trace) => trace.compare(&scenario, specs, &controls, &plan.load.name, &see)?,
        }
    };
    Ok((runs, partial, seen.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)))
}

/// What is written of it all.
fn document(
    arguments: &Arguments,
    plan: Plan,
    runs: Vec<Run>,
    wall_seconds: f64,
    partial: bool,
) -> Result<ResultsDocument> {
    let focus = plan.load.scenario.as_ref().map(|scenario| scenario.page.focus());
    let mut document = ResultsDocument {
        format: FormatTag,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        job_file: plan.load.name,
        job_text: plan.load.text,
        device: devices::describe(&plan.workload, &plan.devices)?,
        guests: plan.guests.as_ref().map(guests::Chosen::summary).transpose()?,
        kernel: arguments.kernel.to_string(),
        cpus: u32::from(plan.queue.cpus),
        hw_queues: u32::from(plan.config.cpu_map().hctxs()),
        nr_requests: plan.config.scheduler_depth(),
        host: serde_json::to_value(&plan.host)?,
        seed: arguments.seed,
        wall_seconds,
        simulated_ios: runs.iter().map(|run| run.simulated_ios).sum(),
        partial,
        notices: plan.notices,
        baseline: plan.baseline,
        conclusion: Vec::new(),
        statistics: None,
        runs,
    };
    for run in &mut document.runs {
        run.fio.set_timestamp_ms(now_ms());
        fio_options::complete(&mut run.fio);
    }
    let reads = share_of_reads(&document);
    let doubts = calibrated::doubts(&plan.workload, &plan.devices, plan.guests.is_some(), reads);
    document.conclusion = hoistway_report::conclusion(&document, focus.as_ref(), &doubts);
    document.statistics = Some(Statistics::of(&document));
    Ok(document)
}

/// What was noted of runs as they ended.
#[derive(Default)]
struct Seen(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    /// Scheduler and seed of runs that were interrupted.
    cut_short: Vec<(String, u64)>,
    notice: Option<String>,
    /// Writes of `--at` that were refused.
    refused: Vec<String>,
    /// fio's json+ of the last run.
    json_plus: Option<fio::Output>,
}

impl Seen {
    fn add(&self, note: impl FnOnce(&mut Noted)) {
        note(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

fn cancel(controls: &[Control]) {
    controls.iter().for_each(|run| run.cancelled.store(true, Ordering::Relaxed));
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Of all I/Os of the first run.
fn share_of_reads(document: &ResultsDocument) -> f64 {
    let directions = || document.runs.iter().take(1).flat_map(|run| &run.jobs).flat_map(|job| &job.directions);
    let reads: u64 =
        directions().filter(|summary| summary.direction == Direction::Read).map(|summary| summary.ios).sum();
    let all: u64 = directions().map(|summary| summary.ios).sum();
    reads as f64 / all.max(1) as f64
}
