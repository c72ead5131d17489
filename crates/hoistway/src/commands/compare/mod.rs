//! `hoistway compare`: one load under every scheduler.

mod arguments;
mod calibrated;
mod devices;
mod effects;
mod fio_logs;
mod fio_options;
mod format;
mod host;
mod io_max;
mod io_prio_class;
mod load;
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
use hoistway_sim::{Control, QueueSettings, RunResult, Scenario, compare};

use self::fio_logs::FioLogs;
use self::format::Format;
use self::schedulers::Default;
use crate::Ending;
use crate::output::Output;
use crate::progress::Progress;
use crate::trace_file::TraceFile;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::devices::device_named;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let load = load::read_job(arguments.job.as_deref())?;
    let (host, cpus) = host::choose(&arguments.host, arguments.cpus, arguments.memory)?;
    let mut workload = load::parse_job(&load.text, &load.name, cpus, host.memory_bytes)?;
    load::override_ramp(&mut workload, arguments.ramp);
    if arguments.fio_logs.is_some() {
        fio_logs::wanted(&mut workload);
    }
    let page = load.scenario.as_ref().map(|scenario| &scenario.page);
    let (mut devices, mut notices) =
        devices::choose(&workload, &arguments.device, page.map(|page| page.device.as_str()))?;
    let mut queue = QueueSettings::new(arguments.kernel, cpus);
    devices = queues::choose(arguments, devices, &mut queue)?;
    let default = Default { devices: &devices, queue: &queue, elevator: arguments.elevator.as_deref() };
    let schedulers = schedulers::choose(&arguments.schedulers, &default, &mut notices)?;
    let baseline = schedulers::baseline(arguments.baseline.as_deref(), &schedulers)?;
    let settings = tunables::parse(&arguments.set, &schedulers)?;
    queue.shared_tags = arguments.shared_tags;
    queues::check_shared_tags(&queue, &devices, &schedulers)?;
    queue_files::parse(&arguments.queue, arguments.nr_requests.as_deref(), &mut queue)?;
    queue.io_max = io_max::parse(&arguments.io_max, &workload)?;
    queue.io_prio_class = io_prio_class::parse(&arguments.io_prio_class, &workload, arguments.kernel)?;
    let config = queue.config(&devices[0]);
    notices.extend(queue_files::try_out(&queue, &config, &schedulers)?);
    notices.extend(tunables::try_out(&settings, &config)?);
    queue.writes = writes::parse(&arguments.at)?;
    writes::try_out(&queue.writes, &config, &schedulers)?;
    notices.extend(schedulers::legacy_notice(&schedulers, arguments.kernel));
    notices.extend(effects::notices(&workload, &schedulers, arguments.kernel));
    notices.extend(io_prio_class::notice(&queue.io_prio_class, &schedulers));
    notices.extend(queues::polling_notice(&workload, &queue, &schedulers));
    notices.extend(together::notice(&workload, &schedulers, arguments.kernel));
    notices.extend(fio_logs::unused_notice(&workload));
    notices.extend(workload.notices.iter().cloned());
    let seeds = repeats::seeds(arguments.seed, arguments.repeat);
    let specs = repeats::specs(&schedulers, &settings, &seeds);
    arguments.format.check(specs.len())?;
    let output = Output::open(arguments.output.as_deref())?;
    let trace = arguments.trace.as_deref().map(|file| TraceFile::open(file, &output)).transpose()?;
    let logs = arguments.fio_logs.as_deref().map(FioLogs::open).transpose()?;

    let scenario = Scenario {
        workload: &workload,
        devices: devices.iter().collect(),
        queue,
        host: host.clone(),
        runtime: arguments.runtime,
    };
    let controls: Arc<Vec<Control>> = Arc::new(specs.iter().map(|_| Control::default()).collect());
    let interrupted = Arc::clone(&controls);
    ctrlc::set_handler(move || cancel(&interrupted)).context("cannot watch for Ctrl-C")?;
    let seen = Seen::default();
    let see = |place: usize, run: &Run, result: &RunResult| {
        let spec = &specs[place];
        for refused in &result.refused {
            seen.add(|seen| seen.refused.push(format!("{}: {refused}.", spec.scheduler)));
        }
        if result.partial {
            seen.add(|seen| seen.cut_short.push((spec.scheduler.clone(), spec.seed)));
        }
        if logs.is_none() && arguments.format != Format::FioJsonPlus {
            return;
        }
        let disk_util = run.disks.iter().map(DiskSummary::as_fio).collect();
        let parameters = OutputParameters { bins: true, disk_util, ..OutputParameters::default() };
        let mut json = fio::Output::from_processes(&workload.global_options, &result.processes, &parameters);
        json.set_timestamp_ms(now_ms());
        fio_options::complete(&mut json);
        if let Some(logs) = &logs
            && !logs.write(&spec.scheduler, place / schedulers.len(), &result.processes, &json)
        {
            cancel(&controls);
        }
        seen.add(|seen| {
            seen.notice = seen.notice.take().or_else(|| fio_logs::cut_notice(&result.processes));
            seen.json_plus = Some(json);
        });
    };
    let begin = WallClock::now();
    let (runs, partial) = {
        let _progress = Progress::show(&controls, load::expected_ns(&workload, arguments.runtime));
        match trace {
            None => compare(&scenario, &specs, &controls, &see)?,
            Some(trace) => trace.compare(&scenario, &specs, &controls, &load.name, &see)?,
        }
    };
    let wall_seconds = begin.elapsed().as_secs_f64();
    let seen = seen.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    notices.extend(seen.notice);
    notices.extend(seen.refused);

    let simulated_ios = runs.iter().map(|run| run.simulated_ios).sum();
    let mut document = ResultsDocument {
        format: FormatTag,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        job_file: load.name,
        job_text: load.text,
        device: devices::describe(&workload, &devices)?,
        kernel: arguments.kernel.to_string(),
        cpus: u32::from(cpus),
        hw_queues: u32::from(config.cpu_map().hctxs()),
        nr_requests: config.scheduler_depth(),
        host: serde_json::to_value(&host)?,
        seed: arguments.seed,
        wall_seconds,
        simulated_ios,
        partial,
        notices,
        baseline,
        conclusion: Vec::new(),
        statistics: None,
        runs: repeats::counted(runs, &seeds, schedulers.len(), &seen.cut_short),
    };
    for run in &mut document.runs {
        run.fio.set_timestamp_ms(now_ms());
        fio_options::complete(&mut run.fio);
    }
    let doubts = calibrated::doubts(&workload, &devices, share_of_reads(&document));
    document.conclusion = hoistway_report::conclusion(&document, page.map(|page| page.focus()).as_ref(), &doubts);
    document.statistics = Some(Statistics::of(&document));
    let text = arguments.format.rendered(&document, seen.json_plus.as_ref(), &output)?;
    logs.map(FioLogs::finish).transpose()?;
    output.write(&text)?;
    Ok(if partial { Ending::Interrupted } else { Ending::Done })
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
