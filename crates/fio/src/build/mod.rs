//! Builds the processes of a load from the sections of a job file.
//!
//! Used by: `lib.rs`.
//! Tests: `crates/fio/tests/job_files.rs`, `crates/fio/tests/fio_job_files.rs`.

mod files;
mod flows;
mod groups;
mod replays;

use std::cell::RefCell;
use std::sync::Arc;

use hoistway_load::{Load, PlacedFile, Process};

use crate::document::{Document, Section};
use crate::error::quoted;
use crate::options::Job;
use crate::options::{Action, OptionIndex, Topic};
use crate::options::{PROCESSES_MAX, SUBJECTS, Settings, groups as group_options, priority};
use crate::{Environment, JobFile, JobFileError, values};

use crate::notices::Notices;
use files::{Files, ProcessFiles};
use flows::Flows;
use groups::Groups;
use replays::Replays;

/// Applies the options of `document` and creates the processes of its jobs.
pub(crate) fn job_file(
    document: &Document,
    index: &OptionIndex,
    environment: &Environment<'_>,
) -> Result<JobFile, JobFileError> {
    let mut builder = Builder {
        document,
        environment,
        index,
        globals: Settings::default(),
        load: Load::new(),
        files: Files::default(),
        replays: Replays::default(),
        notices: RefCell::default(),
        groups: Groups::default(),
        flows: Flows::default(),
    };
    for section in &document.sections {
        builder.add_section(section)?;
    }
    if builder.load.processes.is_empty() {
        let hint = if document.sections.is_empty() { "a job starts with a line [name]" } else { "add a job section" };
        return Err(JobFileError::new(&document.files[0], "no jobs are defined").with_hint(hint));
    }
    builder.exit_all();
    for (directory, names) in builder.files.neighbours() {
        let directory = if directory.is_empty() { "/" } else { directory };
        builder.notices.borrow_mut().add(format!(
            "{} and {} are simulated as {} disks, because each filename is one (docs/job-files.md). If they are on the same \
             disk, use directory={directory} and no filename.",
            names[0],
            names[1..].join(", "),
            names.len()
        ));
    }
    builder.load.files = builder.files.into_names();
    Ok(JobFile { load: builder.load, notices: builder.notices.into_inner().into_sentences() })
}

struct Builder<'d> {
    document: &'d Document,
    environment: &'d Environment<'d>,
    index: &'d OptionIndex,
    globals: Settings,
    load: Load,
    files: Files,
    replays: Replays,
    notices: RefCell<Notices>,
    groups: Groups,
    flows: Flows,
}

impl Builder<'_> {
    fn add_section(&mut self, section: &Section) -> Result<(), JobFileError> {
        let mut settings = self.globals.clone();
        let mut options = Vec::new();
        self.apply(section, &mut settings, &mut options)?;
        if section.is_global() {
            self.globals = settings;
            // As in fio, `name` in [global] does not name a job.
            self.globals.groups.name = None;
            for option in options {
                replace_or_push(&mut self.load.options, option);
            }
            return Ok(());
        }
        self.add_job(section, &settings, options.into())
    }

    /// Applies the options of `section`, and collects them for results.
    fn apply(
        &mut self,
        section: &Section,
        settings: &mut Settings,
        options: &mut Vec<(String, String)>,
    ) -> Result<(), JobFileError> {
        let entries = section.entries.clone();
        let notices = self.notices.get_mut();
        let goes_first = |i: &usize| matches!(&*self.document.entries[*i].name, "kb_base" | "ioengine");
        // As in fio, kb_base applies to the whole section, wherever it is set. The engine comes first, because an
        // unsupported engine explains unknown options.
        let order: Vec<usize> = entries.clone().filter(goes_first).chain(entries.filter(|i| !goes_first(i))).collect();
        for i in order {
            let entry = &self.document.entries[i];
            let error =
                |message: &str| self.document.error_at(entry.position, Some(section), message).on_option(&entry.name);
            let Some((id, spec)) = self.index.find(&entry.name) else {
                let error = error("this option does not exist");
                return Err(match self.index.nearest(&entry.name) {
                    Some(known) => error.with_hint(format!("did you mean {known:?}?")),
                    None => error.with_hint("check its name; options of unsupported engines are also unknown"),
                });
            };
            let value = entry.value.as_deref();
            match spec.action {
                Action::Honour(setter) => {
                    if let Err(refusal) = setter.apply(settings, value) {
                        let error = error(&refusal.message);
                        return Err(match refusal.hint {
                            Some(hint) => error.with_hint(hint),
                            None => error,
                        });
                    }
                    if settings.last_entry.len() <= id {
                        settings.last_entry.resize(id + 1, 0);
                    }
                    settings.last_entry[id] = i as u32 + 1;
                    let base = settings.files.kb_base;
                    let reversed = !setter.is_free_text() && value.is_some_and(|v| values::has_reversed_unit(v, base));
                    if reversed {
                        notices.add(format!(
                            "{}={}: as in fio, kib is 1000 bytes and k is 1024, unless kb_base=1000 is set.",
                            spec.name,
                            value.unwrap_or_default()
                        ));
                    }
                }
                // Turning such an option off needs no notice.
                Action::Ignore(Topic::NotSimulated(_)) if matches!(value, Some("0" | "none")) => {}
                Action::Ignore(Topic::NotSimulated(sentence)) => notices.not_simulated(spec.name, sentence),
                Action::Ignore(Topic::Other) => notices.ignored(spec.name),
                Action::Ignore(Topic::Scheduler) => notices.scheduler(value.unwrap_or_default()),
                Action::Refuse { accepted, hint } => {
                    let harmless = accepted.contains(&value.unwrap_or("1"));
                    if !harmless {
                        let message = match value {
                            Some(value) => format!("{} is not supported: it would change the results", quoted(value)),
                            None => "not supported: it would change the results".to_owned(),
                        };
                        return Err(error(&message).with_hint(hint));
                    }
                }
            }
            if let Some(value) = value {
                replace_or_push(options, (spec.name.to_owned(), value.to_owned()));
            }
        }
        Ok(())
    }

    fn add_job(
        &mut self,
        section: &Section,
        settings: &Settings,
        options: Arc<[(String, String)]>,
    ) -> Result<(), JobFileError> {
        let job = Job { document: self.document, index: self.index, section, settings, notices: &self.notices };
        let mut process = Process { options, ..settings.process.clone() };
        process.schedule.runtime = self.environment.runtime.or(process.schedule.runtime);
        for subject in &SUBJECTS {
            (subject.apply)(&job, &mut process)?;
        }
        process.plan.origin = Some(job.origin());
        // Clones differ only in their files; only their number matters here, not their positions.
        process.files = [0].into();
        process.plan.files = vec![PlacedFile::default(); settings.files.count() as usize].into();
        process.check().map_err(|error| job.load_error(error))?;
        let clones = settings.groups.numjobs.unwrap_or(1);
        if self.load.processes.len() + clones as usize > PROCESSES_MAX {
            let message = format!("the jobs make more than {PROCESSES_MAX} processes");
            return Err(job.error("numjobs", &message).with_hint("use fewer jobs or clones"));
        }
        self.groups.next(&settings.groups, &mut process.schedule);
        process.schedule.wait_for = self.groups.resolve_wait_for(&job)?;
        self.flows.join(&job, &process)?;
        let is_named = !settings.files.names.is_empty() && !job.is_replay();
        let named = if is_named { Some(self.files.named(&job)?) } else { None };
        for clone in 0..clones {
            let number = self.load.processes.len() as u32;
            let file_number = clone_number(clone, clones);
            let mut process = process.clone();
            group_options::apply_to_clone(&job, clone, number, &mut process);
            priority::apply_to_clone(&job, number, &mut process);
            let files = match (&named, self.replays.log_for(&job, self.environment, file_number)?) {
                (Some(named), _) => named.clone(),
                (None, Some(log)) => {
                    let (devices, devices_of_files) = self.files.replay_devices(&job, log.files())?;
                    process.plan.replay = Some(Arc::new(log.on_devices(devices_of_files, &settings.replay)));
                    ProcessFiles { devices, placed: Arc::new([]) }
                }
                (None, None) => self.files.allocate_unnamed(&job, &process.plan.pattern, file_number, number)?,
            };
            (process.files, process.plan.files) = (files.devices, files.placed);
            process.plan.increments = file_number;
            self.load.processes.push(process);
        }
        self.notices.borrow_mut().own_files = self.files.own_files();
        Ok(())
    }
}

impl Builder<'_> {
    /// As in fio, `exitall` in one job applies to all.
    fn exit_all(&mut self) {
        if self.groups.exit_all {
            for process in &mut self.load.processes {
                process.schedule.ends = Some(self.groups.ends[process.schedule.job]);
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

/// A clone's factor of `offset_increment` and number in file names: clones after the first count down (tried with fio
/// 3.33).
fn clone_number(clone: u32, clones: u32) -> u32 {
    if clone == 0 { 0 } else { clones - clone }
}
