//! `hoistway tune`: searches for the best setting for a load.

mod arguments;
mod state;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Result, bail};
use hoistway_answer::tuning::{Budget, TuneRun, Tuning};
use hoistway_experiment::tune::{BUDGET_RUNS, Cancel, Search, SearchObserver, SearchState, TuneError, tune};
use hoistway_experiment::{CallerEnvironment, Comparison, Devices, Field, MeasuredTime, Vary};
use hoistway_fio::LogSource;
use indicatif::{ProgressBar, ProgressStyle};

use self::state::StateFile;
use super::compare::parse;
use super::report::tuned_page;
use crate::input::CommandLine;
use hoistway_terminal::Ending;
use hoistway_terminal::output::{Format, Output, different};
use hoistway_terminal::printable;

pub(crate) use self::arguments::Arguments;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let environment = TuneEnvironment::default();
    let search = search(arguments)?;
    let new_state = SearchState::of(&search, &environment)?;
    let files = [&arguments.run.output, &arguments.state, &arguments.report];
    files.into_iter().flatten().try_for_each(|file| environment.0.spare(file))?;
    let files = [("--state", &arguments.state), ("--report", &arguments.report)];
    different(&files)?;
    let output = Output::open(arguments.run.output.as_deref())?;
    let report = arguments.report.as_deref().map(|file| Output::beside("--report", file, &output)).transpose()?;
    let state = arguments.state.as_deref().map(|file| StateFile::open(file, new_state)).transpose()?;
    if let Some(name) = arguments.state.as_deref()
        && output.is_same_file(&Output::open(Some(name))?)
    {
        bail!("--state {}: is also the output file (expected another file)", name.display());
    }
    let known_runs = state.as_ref().map(|file| file.state().runs.clone()).unwrap_or_default();
    let must_stop = Arc::new(AtomicBool::new(false));
    let cancel_handle: Arc<OnceLock<Cancel>> = Arc::default();
    let (interrupted, handle) = (Arc::clone(&must_stop), Arc::clone(&cancel_handle));
    let interrupt = move || {
        interrupted.store(true, Ordering::SeqCst);
        handle.get().inspect(|runs| runs.cancel());
    };
    hoistway_terminal::interrupt::on_interrupt(interrupt)?;
    let observer = Observer {
        must_stop: &must_stop,
        cancel_handle: &cancel_handle,
        saved: Mutex::new(Saved { file: state, failure: None, runs: 0 }),
        bar: bar(),
    };
    let outcome = tune(&search, &environment, known_runs, &observer);
    if let Some(bar) = &observer.bar {
        bar.finish_and_clear();
    }
    let saved = observer.saved.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = saved.failure {
        return Err(failure.context("--state"));
    }
    let mut document = match outcome {
        Ok(document) => document,
        Err(TuneError::Cannot(error)) => return Err(error.into()),
        Err(TuneError::Ended) => {
            let hint = match &arguments.state {
                Some(file) => {
                    format!("its {} runs are saved in {}; run the same command to resume", saved.runs, file.display())
                }
                None => "use --state FILE to make a search resumable".to_owned(),
            };
            let _ = writeln!(io::stderr(), "hoistway: the search was interrupted; {hint}");
            return Ok(Ending::Interrupted);
        }
    };
    if !arguments.stable {
        document.command = crate::command_line().1;
    }
    document.conclusion = hoistway_render::text::tuning_conclusion(&document);
    let holds = document.found.as_ref().is_some_and(|outcome| outcome.holds);
    let text = render(&document, arguments.format, output.text_width())?;
    // Each output is written even if another one fails.
    let report = report.map_or(Ok(()), |report| tuned_page(&document).and_then(|page| report.write_to_file_only(page)));
    output.write(&text).and(report)?;
    Ok(if holds { Ending::Done } else { Ending::LimitBroken })
}

fn render(document: &Tuning, format: Format, width: usize) -> Result<String> {
    Ok(match format {
        Format::Json => serde_json::to_string_pretty(document)? + "\n",
        Format::Table => printable::text(&hoistway_render::text::tuning(document, width)),
    })
}

fn search(arguments: &Arguments) -> Result<Search> {
    let devices = parse::devices(&arguments.device)?;
    if let [_, another, ..] = &devices[..] {
        let name = another.common.as_ref().map(ToString::to_string).unwrap_or_default();
        bail!("--device {name}: a search uses one device (expected one, or NAME=PRESET for each file of the job file)");
    }
    let comparison = Comparison {
        load: parse::load(Some(&arguments.job)),
        devices: devices.into_iter().filter(|devices| *devices != Devices::default()).collect(),
        kernels: vec![arguments.kernel.to_string()],
        hosts: arguments.host.iter().map(|host| host.as_str().into()).collect(),
        schedulers: arguments.over.clone(),
        measured: if arguments.from_start { MeasuredTime::AsFio } else { MeasuredTime::Lasting },
        ..parse::common(&arguments.host_options, &arguments.run, arguments.guest_scheduler.as_slice())?
    };
    Ok(Search {
        comparison,
        vary: parse::parse_each(&arguments.vary, vary)?,
        objective: arguments.objective.clone(),
        budget: arguments.budget.unwrap_or(Budget::Runs(BUDGET_RUNS)),
    })
}

fn vary(text: &str) -> Result<Vary> {
    let (key, values) = text.split_once('=').map_or((text, None), |(key, values)| (key, Some(values)));
    let texts: Vec<&str> = values.map(|values| values.split(',').collect()).unwrap_or_default();
    let Some((owner, name)) = Vary::split(key).filter(|_| !texts.contains(&"")) else {
        bail!(
            "--vary {text}: expected SCHED.TUNABLE, queue.FILE, io.cost.qos or io.latency.CGROUP.target, with values if needed, such as \
             kyber.read_lat_nsec or mq-deadline.fifo_batch=1,4,16"
        );
    };
    let texts = texts.into_iter().map(str::to_owned).collect();
    Ok(Vary { of: owner.to_owned(), name: name.to_owned(), texts })
}

/// The progress bar; on a terminal only.
fn bar() -> Option<ProgressBar> {
    io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{bar:40} {pos} of about {len} runs  {elapsed} so far");
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    })
}

/// Stores finished runs, and ends the search on Ctrl-C.
struct Observer<'a> {
    must_stop: &'a AtomicBool,
    /// Cancels the current runs. Set when the first begins.
    cancel_handle: &'a OnceLock<Cancel>,
    saved: Mutex<Saved>,
    bar: Option<ProgressBar>,
}

struct Saved {
    file: Option<StateFile>,
    /// The first error while writing the state.
    failure: Option<anyhow::Error>,
    runs: usize,
}

impl SearchObserver for Observer<'_> {
    fn begins(&self, cancel: Cancel) {
        let _ = self.cancel_handle.set(cancel);
    }

    fn goes_on(&self) -> bool {
        !self.must_stop.load(Ordering::SeqCst)
    }

    fn ran(&self, runs: &[TuneRun], planned: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(planned);
            bar.set_position(runs.len() as u64);
        }
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        saved.runs = runs.len();
        let written = saved.file.as_mut().map_or(Ok(()), |file| file.write(runs.to_vec()));
        if let Err(failure) = written {
            saved.failure.get_or_insert(failure);
            self.must_stop.store(true, Ordering::SeqCst);
        }
    }
}

/// The command line with `tune`'s names for the options.
#[derive(Default)]
struct TuneEnvironment(CommandLine);

impl CallerEnvironment for TuneEnvironment {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn log(&self, path: &Path) -> io::Result<Arc<dyn LogSource>> {
        self.0.log(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name)
    }

    fn name(&self, field: Field) -> String {
        match field {
            Field::Schedulers => "--over".to_owned(),
            Field::GuestSchedulers => "--guest-scheduler".to_owned(),
            field => self.0.name(field),
        }
    }
}
