//! Tunables of schedulers that are set for a whole comparison.

use std::collections::BTreeMap;

use hoistway_blk::{Effects, Instant, QueueConfig, Registry};

use crate::comparison::Tunable;
use crate::error::{About as _, Error, Field};
use crate::nearest;
use crate::schedulers;
use crate::surroundings::Asked;

/// Names and texts, by scheduler.
pub(crate) type Settings = BTreeMap<String, Vec<(String, String)>>;

pub(crate) fn settings(asked: &Asked<'_>, schedulers: &[String], known: &Registry) -> Result<Settings, Error> {
    let mut settings = Settings::new();
    for tunable in &asked.comparison.tunables {
        let Tunable { scheduler, name, text } = tunable;
        let refuse = |problem: String| asked.refuse(Field::Tunables, told(tunable), problem);
        if known.find(scheduler).is_none() {
            let known = known.names().join(", ");
            return Err(refuse(format!("unknown scheduler \"{scheduler}\" (expected one of {known})")));
        }
        if !schedulers.contains(scheduler) {
            return Err(refuse(format!("{scheduler} is not among the schedulers that are compared")));
        }
        let of_scheduler = settings.entry(scheduler.clone()).or_default();
        if let Some((_, before)) = of_scheduler.iter().find(|(known, _)| known == name) {
            return Err(refuse(format!("it was set to {before} before (expected one value for each tunable)")));
        }
        of_scheduler.push((name.clone(), text.clone()));
    }
    Ok(settings)
}

fn told(Tunable { scheduler, name, text }: &Tunable) -> String {
    format!("{scheduler}.{name}={text}")
}

/// Tries the settings on queues of their own, so that a mistake is told at once and with what would be right. Answers
/// with a notice for each value that the kernel takes for another.
pub(crate) fn try_out(asked: &Asked<'_>, config: &QueueConfig) -> Result<Vec<String>, Error> {
    let mut notices = Vec::new();
    // By scheduler, as they are set.
    let mut wanted: Vec<&Tunable> = asked.comparison.tunables.iter().collect();
    wanted.sort_by_key(|tunable| &tunable.scheduler);
    for of_one in wanted.chunk_by(|a, b| a.scheduler == b.scheduler) {
        let scheduler = &of_one[0].scheduler;
        let queue = schedulers::queue_under(scheduler, config).about(Field::Tunables)?;
        let now = queue.generation().hz.now(Instant::ZERO);
        let tunables = queue.tunables();
        for wanted in of_one {
            let refuse = |problem: String| Err(asked.refuse(Field::Tunables, told(wanted), problem));
            let (name, text) = (wanted.name.as_str(), wanted.text.as_str());
            let Some(tunable) = tunables.iter().find(|tunable| tunable.name == name) else {
                if tunables.is_empty() {
                    return refuse(format!("{scheduler} has no tunables"));
                }
                let known: Vec<&str> = tunables.iter().map(|tunable| tunable.name).collect();
                let (hint, known) = (nearest::hint(name, known.iter().copied()), known.join(", "));
                return refuse(format!("{scheduler} has no tunable \"{name}\" ({hint}expected one of {known})"));
            };
            if let Err(error) = queue.set_tunable(now, name, text, &mut Effects::new()) {
                return refuse(format!("{error}; expected {} to {} ({})", tunable.min, tunable.max, tunable.unit));
            }
            match queue.tunable(name) {
                Ok(value) if value.to_string() != *text => {
                    let setting = asked.given(Field::Tunables, told(wanted));
                    notices.push(format!("{setting}: the kernel takes this for {value}."));
                }
                _ => {}
            }
        }
    }
    Ok(notices)
}
