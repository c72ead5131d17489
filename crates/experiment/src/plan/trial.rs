//! Trials of settings on queues that are not in use, so that a mistake is refused at once with the possible values.

use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{Instant, Local};
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::sysfs::{AttributeError, WRITABLE_ATTRIBUTES};
use hoistway_device::Shape;
use hoistway_legacy::AnyQueue;
use hoistway_measure::Setting;
use hoistway_sim::QueueSettings;

use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::comparison::{Tunable, Vary};
use crate::nearest;
use crate::plan::schedulers::queue_under;
use crate::plan::settings::{Fixed, check_file};
use crate::plan::{io_cost, io_latency};

/// The environment for trying settings out.
pub(crate) struct Trial<'a> {
    pub(crate) options: &'a Options<'a>,
    /// All schedulers, of hosts and guests.
    pub(crate) schedulers: &'a [String],
    /// The schedulers of the host, whose queues are written to.
    pub(crate) host_schedulers: &'a [String],
    pub(crate) queue: &'a QueueSettings,
    /// The first device.
    pub(crate) shape: &'a Shape,
    /// The settings that apply to all runs.
    pub(crate) fixed: &'a Fixed,
}

/// The result of trying a value out.
#[derive(Debug, Default)]
pub(crate) struct TrialResult {
    /// The schedulers that have this value by default.
    pub(crate) default_under: Vec<String>,
    /// The schedulers that reject the value, although others accept it.
    pub(crate) refused_under: Vec<String>,
}

impl Trial<'_> {
    /// The queue of the first device with the settings of all runs.
    pub(crate) fn config(&self) -> QueueConfig {
        let first = self.host_schedulers.first().map_or("none", String::as_str);
        self.queue.config_with(self.shape, &self.fixed.on_devices(first))
    }

    /// Tries the settings of all runs. Returns a notice for each value that the kernel changes.
    pub(crate) fn fixed(&self) -> Result<Vec<String>, Error> {
        let config = self.config();
        let mut notices = self.files(Field::QueueFiles, &self.fixed.queue_files, &config, self.host_schedulers)?;
        for (scheduler, setting) in &self.fixed.tunables {
            let queue = queue_under(scheduler, &config).about(Field::Tunables)?;
            for (name, text) in setting.tunables() {
                notices.extend(set_tunable(self.options, Field::Tunables, &queue, name, text)?);
            }
        }
        Ok(notices)
    }

    /// Tries a value of a varied setting. Adds a notice if the kernel changes it.
    pub(crate) fn varied(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<TrialResult, Error> {
        match vary.of.as_str() {
            Vary::QUEUE => self.file(vary, text, notices),
            Vary::IO_COST => self.io_cost(vary, text),
            Vary::IO_LATENCY => self.io_latency(vary, text),
            _ => self.tunable(vary, text, notices),
        }
    }

    fn tunable(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<TrialResult, Error> {
        let queue = queue_under(&vary.of, &self.config()).about(Field::Vary)?;
        let now = queue.generation().hz.now(Instant::ZERO);
        for (name, text) in self.fixed.in_guests(&vary.of).tunables() {
            queue.set_tunable(now, name, text, &mut Effects::new()).about(Field::Tunables)?;
        }
        let before = queue.tunable(&vary.name).ok();
        notices.extend(set_tunable(self.options, Field::Vary, &queue, &vary.name, text)?);
        let is_default_value = before.is_some() && before == queue.tunable(&vary.name).ok();
        let default_under = is_default_value.then(|| vary.of.clone()).into_iter().collect();
        Ok(TrialResult { default_under, ..TrialResult::default() })
    }

    fn io_cost(&self, vary: &Vary, text: &str) -> Result<TrialResult, Error> {
        let mut disks = self.queue.io_cost.clone();
        io_cost::vary(&mut disks, &vary.name, text)
            .map_err(|problem| self.options.refuse(Field::Vary, format_args!("{}={text}", vary.label()), problem))?;
        let default_under = if disks == self.queue.io_cost { self.host_schedulers.to_vec() } else { Vec::new() };
        Ok(TrialResult { default_under, ..TrialResult::default() })
    }

    fn io_latency(&self, vary: &Vary, text: &str) -> Result<TrialResult, Error> {
        let mut disks = self.queue.io_latency.clone();
        io_latency::vary(&mut disks, &vary.name, text)
            .map_err(|problem| self.options.refuse(Field::Vary, format_args!("{}={text}", vary.label()), problem))?;
        let is_default = io_latency::are_equal(&disks, &self.queue.io_latency);
        let default_under = if is_default { self.host_schedulers.to_vec() } else { Vec::new() };
        Ok(TrialResult { default_under, ..TrialResult::default() })
    }

    /// Tries a value of a file under every scheduler of the host. A value that only some schedulers reject is left out for those.
    fn file(&self, vary: &Vary, text: &str, notices: &mut Vec<String>) -> Result<TrialResult, Error> {
        let file = vary.name.as_str();
        check_file(self.options, Field::Vary, shown_write(Field::Vary, file, text), file, text)?;
        let written = [(file.to_owned(), text.to_owned())];
        let (mut tried, mut refusals) = (TrialResult::default(), Vec::new());
        for scheduler in self.host_schedulers {
            let fixed = self.fixed.on_devices(scheduler);
            let setting = fixed.clone().with(file, text);
            let config = self.queue.config_with(self.shape, &setting);
            match self.files(Field::Vary, &written, &config, std::slice::from_ref(scheduler)) {
                Ok(new) => {
                    notices.extend(new.into_iter().filter(|notice| !notices.contains(notice)).collect::<Vec<_>>())
                }
                Err(refusal) => {
                    tried.refused_under.push(scheduler.clone());
                    refusals.push(refusal);
                    continue;
                }
            }
            let before = self.shown(file, &fixed);
            if before.is_some() && before == self.shown(file, &setting) {
                tried.default_under.push(scheduler.clone());
            }
        }
        match refusals.into_iter().next() {
            Some(refusal) if tried.refused_under.len() == self.host_schedulers.len() => Err(refusal),
            Some(refusal) => {
                notices.push(format!("Left out: {refusal}."));
                Ok(tried)
            }
            None => Ok(tried),
        }
    }

    /// The value that a file of `queue/` shows with a setting.
    fn shown(&self, file: &str, setting: &Setting) -> Option<String> {
        let queue = queue_under(&setting.scheduler, &self.queue.config_with(self.shape, setting)).ok()?;
        let now = queue.generation().hz.now(Instant::ZERO);
        for (file, text) in setting.queue_files().filter(|(file, _)| *file != "nr_requests") {
            queue.set_attribute(now, file, text, &mut Effects::new()).ok()?;
        }
        queue.attribute(file).ok()
    }

    /// Tries files on a queue of each scheduler. Returns a notice for each value that the kernel changes.
    fn files(
        &self,
        field: Field,
        files: &[(String, String)],
        config: &QueueConfig,
        schedulers: &[String],
    ) -> Result<Vec<String>, Error> {
        let options = self.options;
        let mut notices = Vec::new();
        // The number of requests is part of the configuration.
        let files: Vec<_> = files.iter().filter(|(file, _)| file != "nr_requests").collect();
        // A file that only some schedulers reject, such as `async_depth` under none, is written for the others.
        let mut accepted = vec![false; files.len()];
        let mut refused: Vec<(usize, &str, AttributeError)> = Vec::new();
        for scheduler in schedulers {
            let queue = queue_under(scheduler, config).map_err(|error| {
                let others = options.name(Field::Schedulers);
                let requests = config.nr_requests.map_or_else(String::new, |requests| requests.to_string());
                let given = shown_write(field, "nr_requests", &requests);
                options.refuse(
                    field,
                    given,
                    format_args!("{error} (expected fewer with {scheduler}, or other {others})"),
                )
            })?;
            let now = queue.generation().hz.now(Instant::ZERO);
            for (index, (file, text)) in files.iter().enumerate() {
                let setting = options.given(field, shown_write(field, file, text));
                match queue.set_attribute(now, file, text, &mut Effects::new()) {
                    Ok(()) => accepted[index] = true,
                    Err(AttributeError::Unknown) => {
                        check_writable(options, field, shown_write(field, file, text), file)?;
                        return Err(Error::new(field, format_args!("{setting}: no such file")));
                    }
                    Err(error) => {
                        refused.push((index, scheduler, error));
                        continue;
                    }
                }
                let shown = queue.attribute(file).about(field)?;
                if shown.trim() != text.trim() {
                    let notice = format!("{setting}: the kernel reads this as \"{}\".", shown.trim());
                    if !notices.contains(&notice) {
                        notices.push(notice);
                    }
                }
            }
        }
        for (index, scheduler, error) in refused {
            let (file, text) = files[index];
            let setting = options.given(field, shown_write(field, file, text));
            if !accepted[index] {
                return Err(Error::new(field, format_args!("{setting}: {error} with {scheduler}")));
            }
            notices.push(format!("{setting}: not written with {scheduler}, where the kernel refuses it ({error})."));
        }
        Ok(notices)
    }
}

/// Sets a tunable of a queue's scheduler. Returns a notice if the kernel reads a different value.
pub(crate) fn set_tunable(
    options: &Options<'_>,
    field: Field,
    queue: &AnyQueue<Local>,
    name: &str,
    text: &str,
) -> Result<Option<String>, Error> {
    let requested = Tunable { scheduler: queue.scheduler().to_owned(), name: name.to_owned(), text: text.to_owned() };
    let refuse = |problem: String| Err(options.refuse(field, &requested, problem));
    let tunables = queue.tunables();
    let Some(tunable) = tunables.iter().find(|tunable| tunable.name == name) else {
        if queue.attribute(name).is_ok() {
            let file = options.given(Field::QueueFiles, format_args!("{name}={text}"));
            let kernel = queue.generation().kernel;
            return refuse(format!("in Linux {kernel} this is a file of queue/, not a tunable (expected {file})"));
        }
        return refuse(unknown_tunable_error(queue, name));
    };
    let now = queue.generation().hz.now(Instant::ZERO);
    if let Err(error) = queue.set_tunable(now, name, text, &mut Effects::new()) {
        return refuse(format!("{error}; expected {} to {} ({})", tunable.min, tunable.max, tunable.unit));
    }
    Ok(match queue.tunable(name) {
        Ok(value) if value.to_string() != *text => {
            let setting = options.given(field, &requested);
            Some(format!("{setting}: the kernel reads this as {value}."))
        }
        _ => None,
    })
}

/// Checks that a file of `queue/` can be written.
pub(crate) fn check_writable(
    options: &Options<'_>,
    field: Field,
    given: impl std::fmt::Display,
    file: &str,
) -> Result<(), Error> {
    // The scheduler is a separate field.
    let known = || WRITABLE_ATTRIBUTES.into_iter().filter(|&file| file != "scheduler");
    if known().any(|known| known == file) {
        return Ok(());
    }
    let problem = format!(
        "no such file ({}expected one of {})",
        nearest::hint(file, known()),
        known().collect::<Vec<_>>().join(", ")
    );
    Err(options.refuse(field, given, problem))
}

/// A write to a file of `queue/` as an option gives it.
fn shown_write(field: Field, file: &str, text: &str) -> String {
    if field == Field::Vary { format!("{}.{file}={text}", Vary::QUEUE) } else { format!("{file}={text}") }
}

/// The error for an unknown tunable, with the tunables of the queue's scheduler.
pub(crate) fn unknown_tunable_error(queue: &AnyQueue<Local>, name: &str) -> String {
    let (scheduler, tunables) = (queue.scheduler(), queue.tunables());
    if tunables.is_empty() {
        return format!("{scheduler} has no tunables");
    }
    let known: Vec<&str> = tunables.iter().map(|tunable| tunable.name).collect();
    let (hint, known) = (nearest::hint(name, known.iter().copied()), known.join(", "));
    format!("{scheduler} has no tunable \"{name}\" ({hint}expected one of {known})")
}
