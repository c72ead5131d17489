//! The settings that all runs of a scheduler share.

use std::collections::BTreeMap;
use std::fmt;

use hoistway_blk::schedulers::Registry;
use hoistway_measure::Setting;

use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::{QueueFile, Tunable};
use crate::nearest;

/// The writes that apply to all runs.
#[derive(Debug, Default)]
pub(crate) struct Fixed {
    /// Files of `queue/` of the devices, whatever their scheduler.
    pub(crate) queue_files: Vec<(String, String)>,
    /// The tunables of schedulers, of hosts and guests.
    pub(crate) tunables: BTreeMap<String, Setting>,
}

impl Fixed {
    /// The requested writes. Values are not tried yet.
    pub(crate) fn of(options: &Options<'_>, schedulers: &[String], known: &Registry) -> Result<Fixed, Error> {
        let mut fixed = Fixed::default();
        for tunable in &options.comparison.tunables {
            let Tunable { scheduler, name, text } = tunable;
            let refuse = |problem: String| options.refuse(Field::Tunables, tunable, problem);
            if known.find(scheduler).is_none() {
                let hint = nearest::hint(scheduler, known.names());
                let known = known.names().join(", ");
                return Err(refuse(format!("unknown scheduler \"{scheduler}\" ({hint}expected one of {known})")));
            }
            if !schedulers.contains(scheduler) {
                return Err(refuse(format!("{scheduler} is not among the compared schedulers")));
            }
            let setting = fixed.tunables.entry(scheduler.clone()).or_insert_with(|| Setting::untouched(scheduler));
            if let Some(before) = setting.text(&Setting::file_of(name)) {
                let before = options.given(Field::Tunables, format_args!("{scheduler}.{name}={before}"));
                return Err(refuse(format!("{before} was already given (expected one value for each tunable)")));
            }
            setting.write(&Setting::file_of(name), text);
        }
        for QueueFile { file, text } in &options.comparison.queue_files {
            let given = format!("{file}={text}");
            if let Some((_, before)) = fixed.queue_files.iter().find(|(before, _)| before == file) {
                let before = options.given(Field::QueueFiles, format_args!("{file}={before}"));
                let problem = format!("{before} was already given (expected one value for each file)");
                return Err(options.refuse(Field::QueueFiles, given, problem));
            }
            check_file(options, Field::QueueFiles, given, file, text)?;
            fixed.queue_files.push((file.clone(), text.clone()));
        }
        Ok(fixed)
    }

    /// The setting of a scheduler in guests, whose queues have no other settings than its tunables.
    pub(crate) fn in_guests(&self, scheduler: &str) -> Setting {
        self.tunables.get(scheduler).cloned().unwrap_or_else(|| Setting::untouched(scheduler))
    }

    /// The setting of a scheduler on the devices.
    pub(crate) fn on_devices(&self, scheduler: &str) -> Setting {
        let mut setting = self.in_guests(scheduler);
        self.queue_files.iter().for_each(|(file, text)| setting.write(file, text));
        setting
    }
}

/// Checks that a file is one of `queue/` that this option sets. `given` is the value of the option.
pub(crate) fn check_file(
    options: &Options<'_>,
    field: Field,
    given: impl fmt::Display,
    file: &str,
    text: &str,
) -> Result<(), Error> {
    let problem = match file {
        "scheduler" => format!("use {}", options.name(Field::Schedulers)),
        _ if Setting::is_tunable(file) => format!("use {}", options.given(Field::Tunables, "SCHED.TUNABLE=VALUE")),
        "nr_requests" if text.parse::<u32>().is_err() => "expected a whole number".to_owned(),
        _ => return Ok(()),
    };
    Err(options.refuse(field, given, problem))
}

impl fmt::Display for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.scheduler, self.name, self.text)
    }
}
