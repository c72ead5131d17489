//! The tunables of a comparison: `--set`.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use hoistway_blk::{Effects, Front, Instant, Local, QueueConfig, Registry};

pub(super) type Settings = BTreeMap<String, Vec<(String, String)>>;

pub(super) fn parse(wanted: &[String], schedulers: &[String], known: &Registry) -> Result<Settings> {
    let mut settings = Settings::new();
    for setting in wanted {
        let parsed = setting.split_once('=').and_then(|(name, value)| {
            let (scheduler, tunable) = name.split_once('.')?;
            Some((scheduler, tunable, value))
        });
        let Some((scheduler, tunable, value)) = parsed else {
            bail!("--set {setting}: expected SCHED.TUNABLE=VALUE, such as mq-deadline.fifo_batch=1");
        };
        if known.find(scheduler).is_none() {
            bail!("--set {setting}: unknown scheduler \"{scheduler}\" (expected one of {})", known.names().join(", "));
        }
        if !schedulers.iter().any(|known| known == scheduler) {
            bail!("--set {setting}: {scheduler} is not among the schedulers that are compared");
        }
        settings.entry(scheduler.to_owned()).or_default().push((tunable.to_owned(), value.to_owned()));
    }
    Ok(settings)
}

/// Tries the settings on queues of their own, so that a mistake is told at once and with what would be right. Answers
/// with a notice for each value that the kernel takes for another.
pub(super) fn try_out(settings: &Settings, config: &QueueConfig) -> Result<Vec<String>> {
    let now = config.kernel.generation().hz.now(Instant::ZERO);
    let mut notices = Vec::new();
    for (scheduler, wanted) in settings {
        let queue: Front<Local> = Front::new(config, scheduler)?;
        let tunables = queue.tunables();
        for (name, text) in wanted {
            let setting = format!("--set {scheduler}.{name}={text}");
            let Some(tunable) = tunables.iter().find(|tunable| tunable.name == name) else {
                if tunables.is_empty() {
                    bail!("{setting}: {scheduler} has no tunables");
                }
                let known: Vec<&str> = tunables.iter().map(|tunable| tunable.name).collect();
                bail!("{setting}: {scheduler} has no tunable \"{name}\" (expected one of {})", known.join(", "));
            };
            if let Err(error) = queue.set_tunable(now, name, text, &mut Effects::new()) {
                bail!("{setting}: {error}; expected {} to {} ({})", tunable.min, tunable.max, tunable.unit);
            }
            match queue.tunable(name) {
                Ok(value) if value.to_string() != *text => {
                    notices.push(format!("{setting}: the kernel takes this for {value}."));
                }
                _ => {}
            }
        }
    }
    Ok(notices)
}
