//! Tunables of schedulers that are set for a whole comparison.

use std::collections::BTreeMap;
use std::fmt;

use hoistway_blk::drive::Effects;
use hoistway_blk::ground::{Instant, Local};
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::schedulers::Registry;
use hoistway_legacy::AnyQueue;

use crate::comparison::Tunable;
use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::nearest;
use crate::plan::schedulers;

/// Names and values, by scheduler.
pub(crate) type Settings = BTreeMap<String, Vec<(String, String)>>;

pub(crate) fn settings(options: &Options<'_>, schedulers: &[String], known: &Registry) -> Result<Settings, Error> {
    let mut settings = Settings::new();
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
        let scheduler_settings = settings.entry(scheduler.clone()).or_default();
        if let Some((_, before)) = scheduler_settings.iter().find(|(known, _)| known == name) {
            let before = options.given(Field::Tunables, format_args!("{scheduler}.{name}={before}"));
            return Err(refuse(format!("{before} was already given (expected one value for each tunable)")));
        }
        scheduler_settings.push((name.clone(), text.clone()));
    }
    Ok(settings)
}

impl fmt::Display for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.scheduler, self.name, self.text)
    }
}

/// Tries the settings on separate queues, so that a mistake is rejected at once with the possible values. Returns a
/// notice for each value that the kernel changes.
pub(crate) fn validate_settings(options: &Options<'_>, config: &QueueConfig) -> Result<Vec<String>, Error> {
    let mut notices = Vec::new();
    // By scheduler, in the order of writing.
    let mut requested: Vec<&Tunable> = options.comparison.tunables.iter().collect();
    requested.sort_by_key(|tunable| &tunable.scheduler);
    for same_scheduler in requested.chunk_by(|a, b| a.scheduler == b.scheduler) {
        let queue = schedulers::queue_under(&same_scheduler[0].scheduler, config).about(Field::Tunables)?;
        for tunable in same_scheduler {
            notices.extend(set(options, Field::Tunables, &queue, tunable)?);
        }
    }
    Ok(notices)
}

/// Sets a tunable of a queue's scheduler. Returns a notice if the kernel reads a different value.
pub(crate) fn set(
    options: &Options<'_>,
    field: Field,
    queue: &AnyQueue<Local>,
    requested: &Tunable,
) -> Result<Option<String>, Error> {
    let Tunable { name, text, .. } = requested;
    let refuse = |problem: String| Err(options.refuse(field, requested, problem));
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
            let setting = options.given(field, requested);
            Some(format!("{setting}: the kernel reads this as {value}."))
        }
        _ => None,
    })
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
