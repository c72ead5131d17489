//! Files of `/sys/block/DEV/queue/` that are written to every device of a comparison before the load runs.

use hoistway_blk::{AttributeError, Effects, Instant, QueueConfig, WRITABLE_ATTRIBUTES};
use hoistway_sim::QueueSettings;

use crate::comparison::QueueFile;
use crate::error::{About as _, Error, Field};
use crate::schedulers::queue_under;
use crate::surroundings::Asked;

/// What may be written.
fn expected() -> String {
    // The scheduler is a field of its own.
    WRITABLE_ATTRIBUTES.into_iter().filter(|&file| file != "scheduler").collect::<Vec<_>>().join(", ")
}

/// Adds the settings to `queue`.
pub(crate) fn add(asked: &Asked<'_>, queue: &mut QueueSettings) -> Result<(), Error> {
    for QueueFile { file, text } in &asked.comparison.queue_files {
        let refuse = |problem: String| asked.refuse(Field::QueueFiles, format_args!("{file}={text}"), problem);
        if file == "scheduler" {
            return Err(refuse(format!("use {}", asked.name(Field::Schedulers))));
        }
        if file.starts_with("iosched/") {
            return Err(refuse(format!("use {}", asked.given(Field::Tunables, "SCHED.TUNABLE=VALUE"))));
        }
        if file == "nr_requests" {
            // Request slots are made with the queue, so it has to be known before.
            queue.nr_requests = Some(text.parse().map_err(|_| refuse("expected a whole number".to_owned()))?);
        } else {
            queue.attributes.push((file.clone(), text.clone()));
        }
    }
    Ok(())
}

/// Tries the settings on a queue of each scheduler, so that a mistake is told at once and with what would be right.
/// Answers with a notice for each value that the kernel takes for another.
pub(crate) fn try_out(
    asked: &Asked<'_>,
    queue: &QueueSettings,
    config: &QueueConfig,
    schedulers: &[String],
) -> Result<Vec<String>, Error> {
    let mut notices = Vec::new();
    for scheduler in schedulers {
        let front = queue_under(scheduler, config).map_err(|error| {
            let others = asked.name(Field::Schedulers);
            let what = format!("nr_requests with {scheduler} (fewer, or other {others}, are possible)");
            asked.refuse(Field::QueueFiles, what, error)
        })?;
        let now = front.generation().hz.now(Instant::ZERO);
        for (file, text) in &queue.attributes {
            let setting = asked.given(Field::QueueFiles, format_args!("{file}={text}"));
            let refuse = |problem: String| Err(Error::new(Field::QueueFiles, format_args!("{setting}: {problem}")));
            match front.set_attribute(now, file, text, &mut Effects::new()) {
                Ok(()) => {}
                Err(AttributeError::Unknown) => {
                    return refuse(format!("no such file (expected one of {})", expected()));
                }
                Err(why) => return refuse(format!("{why} with {scheduler}")),
            }
            let shown = front.attribute(file).about(Field::QueueFiles)?;
            if shown.trim() != text.trim() {
                let notice = format!("{setting}: the kernel takes this for \"{}\".", shown.trim());
                if !notices.contains(&notice) {
                    notices.push(notice);
                }
            }
        }
    }
    Ok(notices)
}
