//! From sections of options to processes.

mod files;
mod flows;
mod groups;
mod notices;
mod replays;

use std::sync::Arc;

use hoistway_blk::Nanos;

use crate::checks::{self, JobContext};
use crate::error::quoted;
use crate::generator::{Purpose, Stream};
use crate::jobfile::{Document, Section};
use crate::options::{Action, OptionIndex, PROCESSES_MAX, Subject};
use crate::plan::IoPlan;
use crate::replay::Replay;
use crate::settings::Settings;
use crate::workload::{Process, Workload};
use crate::{Environment, JobFileError, values};

use files::{Files, FilesOf};
use flows::Flows;
use groups::Groups;
use notices::Notices;
use replays::Replays;

/// Reads the options of `document` and makes the processes of its jobs.
pub(crate) fn workload(
    document: &Document,
    text: &str,
    environment: &Environment<'_>,
) -> Result<Workload, JobFileError> {
    let mut builder = Builder {
        document,
        environment,
        index: OptionIndex::new(),
        globals: Settings::default(),
        global_options: Vec::new(),
        processes: Vec::new(),
        files: Files::default(),
        replays: Replays::default(),
        notices: Notices::default(),
        groups: Groups::default(),
        flows: Flows::default(),
    };
    for section in &document.sections {
        builder.section(section)?;
    }
    if builder.processes.is_empty() {
        let hint = if document.sections.is_empty() { "a job starts with a line [name]" } else { "add a job section" };
        return Err(JobFileError::new(&document.files[0], "no jobs are defined").hinting(hint));
    }
    builder.exit_all();
    Ok(Workload {
        processes: builder.processes,
        files: builder.files.into_names(),
        notices: builder.notices.into_sentences(),
        global_options: builder.global_options,
        text: text.to_owned(),
    })
}

struct Builder<'d> {
    document: &'d Document,
    environment: &'d Environment<'d>,
    index: OptionIndex,
    globals: Settings,
    global_options: Vec<(String, String)>,
    processes: Vec<Process>,
    files: Files,
    replays: Replays,
    notices: Notices,
    groups: Groups,
    flows: Flows,
}

impl Builder<'_> {
    fn section(&mut self, section: &Section) -> Result<(), JobFileError> {
        let mut settings = self.globals.clone();
        let mut options = Vec::new();
        self.apply(section, &mut settings, &mut options)?;
        if section.is_global() {
            self.globals = settings;
            // As in fio, a name in [global] names no job.
            self.globals.name = None;
            for option in options {
                replace_or_push(&mut self.global_options, option);
            }
            return Ok(());
        }
        self.job(section, &settings, options.into())
    }

    /// Applies the options of `section`, and collects them for the results.
    fn apply(
        &mut self,
        section: &Section,
        settings: &mut Settings,
        options: &mut Vec<(String, String)>,
    ) -> Result<(), JobFileError> {
        let entries = section.entries.clone();
        let is_base = |i: &usize| matches!(&*self.document.entries[*i].name, "kb_base" | "ioengine");
        // As in fio, kb_base holds for the whole section, wherever it stands. An engine that is not supported is the reason
        // why its options are unknown.
        let order: Vec<usize> = entries.clone().filter(is_base).chain(entries.filter(|i| !is_base(i))).collect();
        for i in order {
            let entry = &self.document.entries[i];
            let error =
                |message: &str| self.document.error_at(entry.place, Some(section), message).on_option(&entry.name);
            let Some((id, spec)) = self.index.find(&entry.name) else {
                let error = error("this option does not exist");
                return Err(match self.index.nearest(&entry.name) {
                    Some(known) => error.hinting(format!("did you mean {known:?}?")),
                    None => error.hinting("check its name; options of engines that are not supported are unknown, too"),
                });
            };
            let value = entry.value.as_deref();
            match spec.action {
                Action::Honour(setter) => {
                    if let Err(refusal) = setter.apply(settings, value) {
                        let error = error(&refusal.message);
                        return Err(match refusal.hint {
                            Some(hint) => error.hinting(hint),
                            None => error,
                        });
                    }
                    settings.given[id] = i as u32 + 1;
                    let reversed =
                        !setter.is_free_text() && value.is_some_and(|v| values::has_reversed_unit(v, settings.kb_base));
                    if reversed {
                        self.notices.add(format!(
                            "{}={}: as in fio, kib is 1000 bytes and k is 1024, unless kb_base=1000 is set.",
                            spec.name,
                            value.unwrap_or_default()
                        ));
                    }
                }
                // Switched off it asks for what is done.
                Action::Ignore(Subject::Told(_)) if matches!(value, Some("0" | "none")) => {}
                Action::Ignore(Subject::Told(sentence)) => self.notices.told(spec.name, sentence),
                Action::Ignore(Subject::Other) => self.notices.ignored(spec.name),
                Action::Ignore(Subject::Scheduler) => self.notices.scheduler(value.unwrap_or_default()),
                Action::Refuse { accepted, hint } => {
                    let harmless = accepted.contains(&value.unwrap_or("1"));
                    if !harmless {
                        let message = match value {
                            Some(value) => format!("{} is not supported: it would change the results", quoted(value)),
                            None => "not supported: it would change the results".to_owned(),
                        };
                        return Err(error(&message).hinting(hint));
                    }
                }
            }
            if let Some(value) = value {
                replace_or_push(options, (spec.name.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    fn job(
        &mut self,
        section: &Section,
        settings: &Settings,
        options: Arc<[(String, String)]>,
    ) -> Result<(), JobFileError> {
        let context = JobContext { document: self.document, index: &self.index, section, settings };
        let plan = Arc::new(checks::plan(&context)?);
        checks::notices(&context, &plan, &mut |notice| self.notices.add(notice));
        if self.processes.len() as i64 + settings.numjobs > PROCESSES_MAX {
            let message = format!("the jobs make more than {PROCESSES_MAX} processes");
            return Err(context.error("numjobs", &message).hinting("use fewer jobs or clones"));
        }
        let (group, phase) = self.groups.next(settings);
        let wait_for = self.groups.waited_for(&context)?;
        self.flows.join(&context, phase, wait_for)?;
        let latency_target = checks::latency_target(&context)?;
        let steady_state = checks::steady_state(&context)?;
        let depth = checks::depth(settings);
        let job = self.groups.jobs - 1;
        let is_named = !settings.filenames.is_empty() && settings.replay.logs.is_empty();
        let named = if is_named { Some(self.files.named(&context)?) } else { None };
        for clone in 0..settings.numjobs as u32 {
            let index = self.processes.len() as u32;
            let number = clone_number(clone, settings.numjobs as u32);
            let (files, replay) = match (&named, self.replays.of(&context, self.environment, number)?) {
                (Some(named), _) => (named.clone(), None),
                (None, Some(log)) => {
                    let (devices, places) = self.files.of_replay(&context, &log.files)?;
                    let origin = context.error("read_iolog", "");
                    let replay = Replay::new(&log, &settings.replay, &places, origin);
                    (FilesOf { devices, placed: Arc::new([]) }, Some(replay))
                }
                (None, None) => (self.files.own(&context, &plan, number, index)?, None),
            };
            let renamed = settings.name.as_deref().filter(|_| clone == 0);
            self.processes.push(Process {
                index,
                name: renamed.unwrap_or(&section.name).to_owned(),
                description: settings.description.clone(),
                job,
                clone,
                group,
                phase,
                wait_for,
                ends: None,
                group_reporting: settings.group_reporting,
                options: Arc::clone(&options),
                engine: settings.engine,
                iodepth: depth.iodepth,
                submit_batch: depth.submit_batch,
                complete_min: depth.complete_min,
                complete_max: depth.complete_max,
                iodepth_low: depth.iodepth_low,
                direct: settings.direct,
                invalidate: settings.invalidate,
                write_sync: settings.write_sync,
                end_fsync: settings.end_fsync || settings.fsync_on_close,
                runtime: (settings.runtime > Nanos::ZERO).then_some(settings.runtime),
                time_based: plan.time_based,
                ramp: settings.ramp_time,
                start_delay: start_delay(settings, index),
                think: checks::think(&context),
                rate: checks::rate(settings),
                flow: checks::flow(settings),
                latency_target,
                steady_state,
                max_latency: checks::max_latency(settings),
                serialize_overlap: settings.serialize_overlap,
                io_priority: checks::io_priority(settings),
                nice: settings.nice,
                polls: settings.hipri,
                cgroup: settings.cgroup.clone(),
                cgroup_weight: settings.cgroup_weight,
                cpus_allowed: cpus(settings, index),
                files: files.devices,
                log: None,
                log_settings: settings.log,
                plan: IoPlan { job: Arc::clone(&plan), process: index, clone: number, files: files.placed, replay },
            });
        }
        self.notices.own_files = self.files.own_files();
        Ok(())
    }
}

impl Builder<'_> {
    /// As in fio, `exitall` of one job holds for all.
    fn exit_all(&mut self) {
        if self.groups.exit_all {
            for process in &mut self.processes {
                process.ends = Some(self.groups.ends[process.job]);
            }
        }
    }
}

fn replace_or_push(options: &mut Vec<(String, String)>, option: (String, String)) {
    match options.iter_mut().find(|old| old.0 == option.0) {
        Some(old) => old.1 = option.1,
        None => options.push(option),
    }
}

/// What fio multiplies `offset_increment` by, and what it numbers files with: the clones after the first count down (tried with
/// fio 3.33).
fn clone_number(clone: u32, clones: u32) -> u32 {
    if clone == 0 { 0 } else { clones - clone }
}

/// The delay of a process: of a range, a draw that is the same in every run.
fn start_delay(settings: &Settings, process: u32) -> Nanos {
    let (low, high) = settings.start_delay;
    let mut stream = Stream::new(0, u64::from(process), Purpose::StartDelay);
    low + Nanos(stream.below(high.0 - low.0 + 1))
}

fn cpus(settings: &Settings, process: u32) -> Option<Arc<[u32]>> {
    let cpus = settings.cpus_allowed.as_ref()?;
    if !settings.cpus_split {
        return Some(Arc::clone(cpus));
    }
    // As in fio, the CPUs go round over all processes of the run.
    let own = cpus.get(process as usize % cpus.len().max(1))?;
    Some(Arc::new([*own]))
}
