//! Writes to `/sys/block/DEV/queue/` of every device of a comparison before the load runs.

use hoistway_blk::drive::Effects;
use hoistway_blk::ground::Instant;
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::sysfs::{AttributeError, WRITABLE_ATTRIBUTES};
use hoistway_sim::QueueSettings;

use crate::comparison::QueueFile;
use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::nearest;
use crate::plan::schedulers::queue_under;

/// The files that can be written; the scheduler is a separate field.
fn files() -> impl Iterator<Item = &'static str> {
    WRITABLE_ATTRIBUTES.into_iter().filter(|&file| file != "scheduler")
}

/// Adds the settings to `queue`.
pub(crate) fn add(options: &Options<'_>, queue: &mut QueueSettings) -> Result<(), Error> {
    let requested = &options.comparison.queue_files;
    for (index, setting) in requested.iter().enumerate() {
        let QueueFile { file, text } = setting;
        if let Some(before) = requested[..index].iter().find(|before| before.file == *file) {
            let before = options.given(Field::QueueFiles, format_args!("{file}={}", before.text));
            let problem = format!("{before} was already given (expected one value for each file)");
            return Err(options.refuse(Field::QueueFiles, format_args!("{file}={text}"), problem));
        }
        write(options, &FileWrite { field: Field::QueueFiles, given: format!("{file}={text}"), file, text }, queue)?;
    }
    Ok(())
}

/// A write to a file, and the option that asked for it.
pub(crate) struct FileWrite<'a> {
    pub(crate) field: Field,
    /// The value of the option, as shown in messages.
    pub(crate) given: String,
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

/// Adds a setting to `queue`.
pub(crate) fn write(options: &Options<'_>, file_write: &FileWrite<'_>, queue: &mut QueueSettings) -> Result<(), Error> {
    let FileWrite { field, given, file, text } = file_write;
    let refuse = |problem: String| options.refuse(*field, given, problem);
    if *file == "scheduler" {
        return Err(refuse(format!("use {}", options.name(Field::Schedulers))));
    }
    if file.starts_with("iosched/") {
        return Err(refuse(format!("use {}", options.given(Field::Tunables, "SCHED.TUNABLE=VALUE"))));
    }
    if *file == "nr_requests" {
        // Request slots are allocated with the queue, so their number must be known before.
        queue.nr_requests = Some(text.parse().map_err(|_| refuse("expected a whole number".to_owned()))?);
    } else {
        queue.attributes.push(((*file).to_owned(), (*text).to_owned()));
    }
    Ok(())
}

/// Tries the settings of a comparison on a queue of each scheduler, so that a mistake is rejected at once with the possible
/// values. Returns a notice for each value that the kernel changes.
pub(crate) fn validate_settings(
    options: &Options<'_>,
    queue: &QueueSettings,
    config: &QueueConfig,
    schedulers: &[String],
) -> Result<Vec<String>, Error> {
    let given = |file: &str, text: &str| format!("{file}={text}");
    validate_field(options, Field::QueueFiles, &given, queue, config, schedulers)
}

/// Like [`validate_settings`], for settings from another field; `given` is their text in messages.
pub(crate) fn validate_field(
    options: &Options<'_>,
    field: Field,
    given: &dyn Fn(&str, &str) -> String,
    queue: &QueueSettings,
    config: &QueueConfig,
    schedulers: &[String],
) -> Result<Vec<String>, Error> {
    let mut notices = Vec::new();
    // A file that only some schedulers reject, such as `async_depth` under none, is written for the others.
    let mut accepted = vec![false; queue.attributes.len()];
    let mut refused: Vec<(usize, &str, AttributeError)> = Vec::new();
    for scheduler in schedulers {
        let trial_queue = queue_under(scheduler, config).map_err(|error| {
            let others = options.name(Field::Schedulers);
            let requests = config.nr_requests.map_or_else(String::new, |requests| requests.to_string());
            let given = given("nr_requests", &requests);
            options.refuse(field, given, format_args!("{error} (expected fewer with {scheduler}, or other {others})"))
        })?;
        let now = trial_queue.generation().hz.now(Instant::ZERO);
        for (index, (file, text)) in queue.attributes.iter().enumerate() {
            let setting = options.given(field, given(file, text));
            let refuse = |problem: String| Err(Error::new(field, format_args!("{setting}: {problem}")));
            match trial_queue.set_attribute(now, file, text, &mut Effects::new()) {
                Ok(()) => accepted[index] = true,
                Err(AttributeError::Unknown) => {
                    let (hint, known) = (nearest::hint(file, files()), files().collect::<Vec<_>>().join(", "));
                    return refuse(format!("no such file ({hint}expected one of {known})"));
                }
                Err(error) => {
                    refused.push((index, scheduler, error));
                    continue;
                }
            }
            let shown = trial_queue.attribute(file).about(field)?;
            if shown.trim() != text.trim() {
                let notice = format!("{setting}: the kernel reads this as \"{}\".", shown.trim());
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
    }
    for (index, scheduler, error) in refused {
        let (file, text) = &queue.attributes[index];
        let setting = options.given(field, given(file, text));
        if !accepted[index] {
            return Err(Error::new(field, format_args!("{setting}: {error} with {scheduler}")));
        }
        notices.push(format!("{setting}: not written with {scheduler}, where the kernel refuses it ({error})."));
    }
    Ok(notices)
}
