//! Files of `/sys/block/DEV/queue/` that are written while the loads run.

use hoistway_blk::{
    Answer, AttributeError, Caller, CpuId, Driver, Instant, Local, Nanos, NoMeter, NoProbe, Now, QueueConfig, Refusal,
    Registry, Rq, WRITABLE_ATTRIBUTES,
};
use hoistway_legacy::Front;
use hoistway_sim::Write;

use crate::error::{About as _, Error, Field};
use crate::schedulers::queue_under;
use crate::surroundings::Asked;

/// The writes, in the order of time.
pub(crate) fn ordered(asked: &Asked<'_>, known: &Registry) -> Result<Vec<Write>, Error> {
    let mut writes = Vec::new();
    for write in &asked.comparison.writes {
        let write = Write {
            at: Nanos(write.at_ns),
            only_under: write.under.clone(),
            file: write.file.clone(),
            text: write.text.clone(),
        };
        let refuse = |problem: String| Err(asked.refuse(Field::Writes, told(&write), problem));
        if let Some(unknown) = write.only_under.as_ref().filter(|name| known.find(name).is_none()) {
            let known = known.names().join(", ");
            return refuse(format!("unknown scheduler \"{unknown}\" (expected one of {known})"));
        }
        if !write.file.starts_with("iosched/") && !WRITABLE_ATTRIBUTES.contains(&write.file.as_str()) {
            let known = WRITABLE_ATTRIBUTES.join(", ");
            return refuse(format!("no such file (expected SCHED.TUNABLE, or one of {known})"));
        }
        writes.push(write);
    }
    writes.sort_by_key(|write| write.at);
    Ok(writes)
}

/// Nothing is written after the end of the load, if that is known.
pub(crate) fn check_times(asked: &Asked<'_>, writes: &[Write], end_ns: Option<u64>) -> Result<(), Error> {
    let late = end_ns.and_then(|end| Some((end, writes.iter().find(|write| write.at.0 >= end)?)));
    match late {
        Some((end, write)) => {
            let problem = format!("the load has ended after {} (expected a time before that)", Nanos(end));
            Err(asked.refuse(Field::Writes, told(write), problem))
        }
        None => Ok(()),
    }
}

fn told(Write { at, file, text, .. }: &Write) -> String {
    format!("{at}:{file}={text}")
}

/// Tries the writes one after the other on a queue of each scheduler, so that a mistake is told at once.
pub(crate) fn try_out(
    asked: &Asked<'_>,
    writes: &[Write],
    config: &QueueConfig,
    schedulers: &[String],
) -> Result<(), Error> {
    for scheduler in schedulers {
        let front = queue_under(scheduler, config).about(Field::Writes)?;
        for write in writes {
            let applies = write.only_under.as_ref().is_none_or(|name| name == front.scheduler());
            let problem = match if applies { try_one(&front, &write.file, &write.text) } else { Ok(()) } {
                Ok(()) => continue,
                Err(AttributeError::Invalid) if write.file == "scheduler" => {
                    let possible = front.attribute("scheduler").about(Field::Writes)?.replace(['[', ']'], "");
                    let possible = possible.split_whitespace().collect::<Vec<_>>().join(", ");
                    let others = asked.name(Field::Schedulers);
                    format!("{scheduler} cannot be changed to that (expected {possible}; other {others} are possible)")
                }
                Err(why) => format!("{why} in the run that begins with {scheduler}"),
            };
            return Err(asked.refuse(Field::Writes, told(write), problem));
        }
    }
    Ok(())
}

/// Writes to a queue that is not in use.
fn try_one(front: &Front<Local>, file: &str, text: &str) -> Result<(), AttributeError> {
    let now = front.generation().hz.now(Instant::ZERO);
    let (mut caller, mut driver, mut probe) = (Caller::new(), Idle, NoProbe);
    // An empty queue changes at once.
    let mut cx = caller.cx::<(Idle, NoProbe)>(now, CpuId(0), &mut driver, &mut probe, &NoMeter);
    front.begin_change(&mut cx, file, text).map(|_| ())
}

/// A device that nobody uses.
struct Idle;

impl Driver for Idle {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        Answer::Refused(rq, Refusal::Busy)
    }
}
