//! Reads the load of a comparison: a job file, a scenario, a recording, or the output of a monitoring tool.
//!
//! Used by: `plan`, `tune`, `run`; crate `hoistway`.
//! Tests: `crates/experiment/src/load/` (in its files), `crates/experiment/tests/recordings.rs`, `crates/hoistway/tests/cli/loads.rs`.

pub(crate) mod demand;
mod device_check;
pub(crate) mod equivalent_jobs;
mod fio_output;
pub(crate) mod job_facts;
pub(crate) mod rates;
pub(crate) mod recording;
pub(crate) mod times;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hoistway_answer::{FigureName, ResultsDocument};
use hoistway_blk::ground::Nanos;
use hoistway_fio::{Environment, JobFile};
use hoistway_load::{LogSettings, Process};
use hoistway_program::Change;
use hoistway_sim::Host;
use hoistway_trace::summary;

use crate::comparison::Profile;
use crate::comparison::environment::{CallerEnvironment, Options};
use crate::comparison::error::{About as _, Error, Fault};
use crate::comparison::fields::Field;
use crate::comparison::{self, Comparison};
use crate::load::fio_output::FioRun;
use crate::load::rates::Rates;
use crate::load::recording::Recorded;
use crate::load::times::time;
use crate::nearest;
use crate::scenarios::{self, Page};

/// The load of a comparison that names none.
const EXAMPLE: (&str, &str) = ("example.fio (bundled)", scenarios::EXAMPLE_JOB);

/// The first line of an I/O log of fio starts with this.
const IO_LOG: &str = "fio version ";

/// Whether a text cannot be a job file: it has neither sections nor options.
fn cannot_be_job_file(text: &str) -> bool {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with([';', '#']));
    let is_option = |line: &str| {
        let word = line.split('=').next().unwrap_or_default().trim();
        !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
    };
    let has_sections = lines().any(|line| line.starts_with('[') || line.starts_with("include"));
    !has_sections && lines().next().is_some_and(|line| !is_option(line))
}

/// What else a path that does not exist was probably meant as.
fn meant_instead(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with("fio ") || text.contains(" --") {
        return "; `hoistway fio` takes a command of fio".to_owned();
    }
    if path.extension().is_some() || path.components().count() > 1 {
        return String::new();
    }
    // A bare word was probably meant as a scenario.
    let names: Vec<_> = [scenarios::EXAMPLE].into_iter().chain(scenarios::names()).collect();
    let hint = nearest::hint(&text, names.iter().copied());
    format!(", or one of the scenarios {}; {}", names.join(", "), hint.trim_end()).trim_end_matches("; ").to_owned()
}

/// A job file that replays an I/O log.
fn replay_of(log: &Path) -> String {
    let name = log.display().to_string().replace('\\', "\\\\").replace(':', "\\:");
    format!("[replay]\nread_iolog={name}\ndirect=1\nioengine=libaio\niodepth=64\n")
}

/// A job file or a recording.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Its name in messages and results.
    pub(crate) name: String,
    /// The text of a job file; empty for a recording.
    pub(crate) text: String,
    /// The recording, if the load is one.
    pub(crate) recorded: Option<Arc<Recorded>>,
    /// The summary that the load was derived from, if any.
    pub(crate) rates: Option<Rates>,
    /// What fio measured, if the load is its output.
    pub(crate) fio_run: Option<FioRun>,
    /// Where the load comes from, if not from a job file: sentences for the user.
    pub(crate) notices: Vec<String>,
    /// Changes to the program that the recording suggests.
    pub(crate) changes: Vec<Change>,
    /// The scenario's page, if the load is a bundled scenario.
    pub(crate) page: Option<Page>,
}

impl Load {
    /// The schedulers of its guests, if the scenario is about guests.
    pub(crate) fn guest_schedulers(&self) -> &[String] {
        self.page.as_ref().map_or(&[], |page| &page.guest_schedulers)
    }

    /// Reads the load.
    pub(crate) fn read(options: &Options<'_>) -> Result<Load, Error> {
        let load_from_text = |name: String, text: String| Load {
            name,
            text,
            recorded: None,
            rates: None,
            fio_run: None,
            notices: Vec::new(),
            changes: Vec::new(),
            page: None,
        };
        let load = match &options.comparison.load {
            comparison::Load::Example => load_from_text(EXAMPLE.0.to_owned(), EXAMPLE.1.to_owned()),
            comparison::Load::Text { name, text } => load_from_text(name.clone(), text.clone()),
            comparison::Load::Scenario(name) => {
                let Some(scenario) = scenarios::named(name) else {
                    let known: Vec<_> = scenarios::names().collect();
                    let hint = nearest::hint(name, known.iter().copied());
                    let problem = format!("unknown load ({hint}expected one of {})", known.join(", "));
                    return Err(options.refuse(Field::Load, name, problem));
                };
                let (name, text) = (format!("{name}.fio (bundled)"), scenario.job.to_owned());
                Load { page: Some(scenario.page), ..load_from_text(name, text) }
            }
            comparison::Load::File(path) => {
                let name = path.display().to_string();
                let columns = recording::columns(options)?;
                let recording = options.environment.recording(path, columns.as_ref());
                if let Some(recording) = recording.map_err(|error| Fault::from(error).of(Field::Load))? {
                    let recorded = Recorded::of(options, recording, &name)?;
                    return Ok(Load { recorded: Some(recorded), ..load_from_text(name, String::new()) });
                }
                let meant = meant_instead(path);
                let text = options
                    .environment
                    .text(path, &format!("a fio job file or a recording of block I/O{meant}"))
                    .about(Field::Load)?;
                // Some editors begin a text with a byte order mark.
                let text = text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned);
                if let Some(read) = hoistway_fio::output::read(&text) {
                    let output = read.map_err(|problem| Error::new(Field::Load, format!("{name}: {problem}")))?;
                    let fio_run = FioRun::of(&output);
                    let notices = vec![fio_run.origin()];
                    Load { notices, fio_run: Some(fio_run), ..load_from_text(name, output.job_text) }
                } else if let Some(parsed) = summary::recognise(&text) {
                    let summary = parsed.map_err(|error| Error::new(Field::Load, format!("{name}: {error}")))?;
                    let rates = Rates::of(options, &name, summary)?;
                    Load { rates: Some(rates.clone()), ..load_from_text(name, rates.job_text()) }
                } else if text.starts_with(IO_LOG) {
                    load_from_text(name, replay_of(path))
                } else if cannot_be_job_file(&text) {
                    let problem = format!(
                        "{name}: neither a fio job file (it has no [section]) nor a recording in a known format (expected blktrace or vSCSI records, text of \
                         blkparse, ftrace, trace-cmd, perf or biosnoop, an I/O log of fio, its output, output of iostat -x, or a table with {})",
                        options.given(Field::Columns, "COLUMNS")
                    );
                    return Err(Error::new(Field::Load, problem));
                } else {
                    load_from_text(name, text)
                }
            }
        };
        if load.rates.is_none() && !options.comparison.replay.is_default() {
            let problem =
                "options of a replay need a recording (expected a recording of block I/O instead of a job file)";
            return Err(Error::new(Field::Load, format_args!("{}: {problem}", load.name)));
        }
        Ok(load)
    }

    /// The figure to rank by, if the load's source defines one; otherwise it follows from the jobs.
    pub(crate) fn focus(&self) -> Option<FigureName> {
        let scenario_focus = self.page.as_ref().map(|page| page.focus.clone());
        scenario_focus.or_else(|| self.rates.as_ref().and_then(Rates::focus))
    }

    /// Adds what was observed beside the model: of a load from a monitoring tool's output, or fio's.
    pub(crate) fn check_device(&self, document: &mut ResultsDocument) {
        let checks = match (&self.rates, &self.fio_run) {
            (Some(rates), _) => rates.checks(document),
            (None, Some(run)) => run.checks(document),
            (None, None) => return,
        };
        device_check::add(document, checks);
    }

    /// The host if none is named: for a recording the one that it shows.
    pub(crate) fn default_host(&self) -> Profile {
        match &self.recorded {
            Some(recorded) => Profile::Text { name: "recorded".to_owned(), text: recorded.host_profile() },
            None => Profile::from(Host::DEFAULT),
        }
    }

    /// The processes of the load, on a host with this number of CPUs and this much memory.
    pub(crate) fn job_file(&self, options: &Options<'_>, cpus: u16, memory_bytes: u64) -> Result<JobFile, Error> {
        let environment = Environment {
            variable: &|name| options.environment.variable(name),
            include: &|path| options.environment.included(path),
            log: &|path| options.environment.log(path),
            cpus: u32::from(cpus),
            page_bytes: 4096,
            memory_mib: memory_bytes >> 20,
            runtime: options.comparison.runtime_ns.map(Nanos),
        };
        let parsed = JobFile::parse(&self.text, &self.name, &environment);
        let mut file = parsed.map_err(|error| Fault::from(error).of(Field::Load))?;
        file.notices.extend(self.rates.iter().flat_map(Rates::notices));
        file.notices.extend(self.notices.iter().cloned());
        let ramp = time(options, Field::RampNs, options.comparison.ramp_ns)?;
        for process in &mut file.load.processes {
            process.schedule.ramp = ramp.unwrap_or(process.schedule.ramp);
            // The programs of a bundled load start exactly after their delay, not when fio's polling notices its end.
            process.schedule.polled_start &= self.page.is_none();
            if options.comparison.logs {
                process.log = Some(process.log_settings);
            }
        }
        Ok(file)
    }
}

/// A load for experiments that do not run in virtual time.
#[derive(Debug)]
pub struct LoadText(Load);

impl LoadText {
    /// Reads the load of a comparison.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(comparison: &Comparison, environment: &dyn CallerEnvironment) -> Result<LoadText, Error> {
        Load::read(&Options { comparison, environment }).map(LoadText)
    }

    /// Its name in messages and results.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The text of the job file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The processes on a host with this number of CPUs, with the runtime, ramp time and logs of the comparison.
    ///
    /// # Errors
    /// If it is not a valid job file, or a time is out of range.
    pub fn job_file(
        &self,
        comparison: &Comparison,
        environment: &dyn CallerEnvironment,
        cpus: u16,
    ) -> Result<JobFile, Error> {
        let options = Options { comparison, environment };
        time(&options, Field::RuntimeNs, comparison.runtime_ns)?;
        match &self.0.recorded {
            Some(recorded) => recorded.in_real_time(&options),
            None => self.0.job_file(&options, cpus, 4 << 30),
        }
    }
}

/// A notice if a load has log options, but no logs are written: `name` is the option that turns logs on.
#[must_use]
pub fn unused_logs_notice(name: &str, workload: &hoistway_load::Load) -> Option<String> {
    let is_set = |process: &Process| process.log.is_none() && process.log_settings != LogSettings::default();
    let has_log_options = workload.processes.iter().any(is_set);
    has_log_options.then(|| format!("Logging options (log_avg_msec and others) have no effect without {name}."))
}

/// Virtual time of a run, ns; `None` unless every process is bounded by time.
pub(crate) fn expected_ns(workload: &hoistway_load::Load, runtime: Option<Nanos>) -> Option<u64> {
    let mut phases: BTreeMap<u32, u64> = BTreeMap::new();
    for process in &workload.processes {
        let schedule = &process.schedule;
        let parts = [schedule.start_delay, schedule.ramp, runtime.or(schedule.runtime)?];
        let length = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.0));
        let phase = phases.entry(schedule.phase).or_default();
        *phase = length.max(*phase);
    }
    Some(phases.values().fold(0, |sum, phase| sum.saturating_add(*phase)))
}
