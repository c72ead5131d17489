//! `--at TIME:KEY=VALUE`: files of `/sys/block/DEV/queue/` that are written while the loads run.

use anyhow::{Context, Result, bail};
use hoistway_blk::{
    Answer, AttributeError, Caller, CpuId, Driver, Front, Instant, Local, NoMeter, NoProbe, Now, QueueConfig, Refusal,
    Registry, Rq, WRITABLE_ATTRIBUTES,
};
use hoistway_sim::Write;

use super::arguments::parse_time;

/// Reads the writes, in the order of time.
pub(super) fn parse(wanted: &[String], known: &Registry) -> Result<Vec<Write>> {
    let mut writes = wanted.iter().map(|text| one(text, known)).collect::<Result<Vec<Write>>>()?;
    writes.sort_by_key(|write| write.at);
    Ok(writes)
}

fn one(text: &str, known: &Registry) -> Result<Write> {
    let parts = text.split_once(':').and_then(|(at, rest)| Some((at, rest.split_once('=')?)));
    let Some((at, (key, value))) = parts else {
        bail!("--at {text}: expected TIME:KEY=VALUE, such as 10s:scheduler=bfq or 10s:bfq.slice_idle=0");
    };
    let at = parse_time(at).map_err(anyhow::Error::msg).with_context(|| format!("--at {text}"))?;
    let value = value.to_owned();
    if let Some((scheduler, tunable)) = key.split_once('.') {
        if known.find(scheduler).is_none() {
            bail!("--at {text}: unknown scheduler \"{scheduler}\" (expected one of {})", known.names().join(", "));
        }
        return Ok(Write {
            at,
            only_under: Some(scheduler.to_owned()),
            file: format!("iosched/{tunable}"),
            text: value,
        });
    }
    if !WRITABLE_ATTRIBUTES.contains(&key) {
        let known = WRITABLE_ATTRIBUTES.join(", ");
        bail!("--at {text}: no such file (expected SCHED.TUNABLE, or one of {known})");
    }
    Ok(Write { at, only_under: None, file: key.to_owned(), text: value })
}

/// Tries the writes one after the other on a queue of each scheduler, so that a mistake is told at once.
pub(super) fn try_out(writes: &[Write], config: &QueueConfig, schedulers: &[String]) -> Result<()> {
    for scheduler in schedulers {
        let config = QueueConfig { kernel: config.schedulers.kernel_under(config.kernel, scheduler), ..config.clone() };
        let mut front: Front<Local> = Front::new(&config, scheduler)?;
        for write in writes {
            let (file, text) = (&write.file, &write.text);
            let applies = write.only_under.as_ref().is_none_or(|name| name == front.scheduler());
            match if applies { try_one(&mut front, file, text) } else { Ok(()) } {
                Ok(()) => {}
                Err(AttributeError::Invalid) if file == "scheduler" => bail!(
                    "--at {}:scheduler={text}: {scheduler} cannot be changed to that (expected {}; other --schedulers \
                     are possible)",
                    write.at,
                    front
                        .attribute("scheduler")?
                        .split_whitespace()
                        .collect::<Vec<_>>()
                        .join(", ")
                        .replace(['[', ']'], "")
                ),
                Err(why) => bail!("--at {}:{file}={text}: {why} in the run that begins with {scheduler}", write.at),
            }
        }
    }
    Ok(())
}

/// Writes to a queue that is not in use.
fn try_one(front: &mut Front<Local>, file: &str, text: &str) -> Result<(), AttributeError> {
    let now = front.generation().hz.now(Instant::ZERO);
    let (mut caller, mut idle, mut probe) = (Caller::new(), Idle, NoProbe);
    // An empty queue changes at once.
    let mut cx = caller.cx::<(Idle, NoProbe)>(now, CpuId(0), &mut idle, &mut probe, &NoMeter);
    front.begin_change(&mut cx, file, text).map(|_| ())
}

/// A device that nobody uses.
struct Idle;

impl Driver for Idle {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        Answer::Refused(rq, Refusal::Busy)
    }
}
