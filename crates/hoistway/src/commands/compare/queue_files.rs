//! `--queue KEY=VALUE`: files of `/sys/block/DEV/queue/` for every device of a comparison.

use anyhow::{Context, Result, bail};
use hoistway_blk::{AttributeError, Effects, Front, Instant, Local, QueueConfig, WRITABLE_ATTRIBUTES};
use hoistway_sim::QueueSettings;

/// Files whose place is another option.
const ELSEWHERE: [(&str, &str); 1] = [("scheduler", "use --schedulers")];

/// What may be written.
fn expected() -> String {
    let files = WRITABLE_ATTRIBUTES.into_iter().filter(|file| ELSEWHERE.iter().all(|(other, _)| other != file));
    files.collect::<Vec<_>>().join(", ")
}

/// Reads the settings and adds them to `queue`. `nr_requests` is that of `--nr-requests`.
pub(super) fn parse(wanted: &[String], nr_requests: Option<&str>, queue: &mut QueueSettings) -> Result<()> {
    if let Some(text) = nr_requests {
        if wanted.iter().any(|setting| setting.starts_with("nr_requests=")) {
            bail!("--nr-requests {text}: --queue sets nr_requests too (expected one of them)");
        }
        let number = text.parse::<u32>();
        queue.nr_requests = Some(number.with_context(|| format!("--nr-requests {text}: expected a whole number"))?);
    }
    for setting in wanted {
        let Some((file, text)) = setting.split_once('=') else {
            bail!("--queue {setting}: expected KEY=VALUE, such as nr_requests=64");
        };
        if let Some((_, why)) = ELSEWHERE.iter().find(|(other, _)| *other == file) {
            bail!("--queue {setting}: {why}");
        }
        if file.starts_with("iosched/") {
            bail!("--queue {setting}: use --set SCHED.TUNABLE=VALUE");
        }
        if file == "nr_requests" {
            // Request slots are made with the queue, so it has to be known before.
            let number = text.parse::<u32>();
            queue.nr_requests = Some(number.with_context(|| format!("--queue {setting}: expected a whole number"))?);
        } else {
            queue.attributes.push((file.to_owned(), text.to_owned()));
        }
    }
    Ok(())
}

/// Tries the settings on a queue of each scheduler, so that a mistake is told at once and with what would be right.
/// Answers with a notice for each value that the kernel takes for another.
pub(super) fn try_out(queue: &QueueSettings, config: &QueueConfig, schedulers: &[String]) -> Result<Vec<String>> {
    let mut notices = Vec::new();
    for scheduler in schedulers {
        let config = QueueConfig { kernel: config.schedulers.kernel_under(config.kernel, scheduler), ..config.clone() };
        let now = config.kernel.generation().hz.now(Instant::ZERO);
        let mut front: Front<Local> = Front::new(&config, scheduler).with_context(|| {
            format!("--queue nr_requests with {scheduler} (fewer, or other --schedulers, are possible)")
        })?;
        for (file, text) in &queue.attributes {
            let setting = format!("--queue {file}={text}");
            match front.set_attribute(now, file, text, &mut Effects::new()) {
                Ok(()) => {}
                Err(AttributeError::Unknown) => {
                    bail!("{setting}: no such file (expected one of {})", expected());
                }
                Err(why) => bail!("{setting}: {why} with {scheduler}"),
            }
            let shown = front.attribute(file)?;
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
