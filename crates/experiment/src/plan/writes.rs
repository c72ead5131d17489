//! Writes to `/sys/block/DEV/queue/` while the load runs.

use hoistway_blk::caller::Caller;
use hoistway_blk::drive::{Answer, Driver, Refusal};
use hoistway_blk::ground::{CpuId, Instant, Local, Nanos, NoMeter, Now};
use hoistway_blk::queue::QueueConfig;
use hoistway_blk::request::Rq;
use hoistway_blk::schedulers::Registry;
use hoistway_blk::sysfs::{AttributeError, WRITABLE_ATTRIBUTES};
use hoistway_blk::watch::NoProbe;
use hoistway_legacy::AnyQueue;
use hoistway_sim::{Fate, Write};

use crate::comparison::environment::Options;
use crate::comparison::error::{About as _, Error};
use crate::comparison::fields::Field;
use crate::plan::schedulers::queue_under;
use crate::plan::trial;

/// The writes, ordered by time, to queues that start with one of these schedulers.
pub(crate) fn ordered(options: &Options<'_>, known: &Registry, schedulers: &[String]) -> Result<Vec<Write>, Error> {
    let mut writes = Vec::new();
    for write in &options.comparison.writes {
        let write = Write {
            at: Nanos(write.at_ns),
            only_under: write.under.clone(),
            file: write.file.clone(),
            text: write.text.clone(),
        };
        let refuse = |problem: String| Err(options.refuse(Field::TimedWrites, write_text(&write), problem));
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
    let active: Vec<&str> = schedulers.iter().map(String::as_str).chain(switched_to(&writes)).collect();
    let is_never_active = |write: &&Write| write.only_under.as_ref().is_some_and(|name| !active.contains(&&**name));
    match writes.iter().find(is_never_active) {
        Some(write) => {
            let active = active.join(", ");
            Err(options.refuse(
                Field::TimedWrites,
                write_text(write),
                format!("never active (expected one of {active})"),
            ))
        }
        None => Ok(writes),
    }
}

/// The schedulers that the writes switch to.
pub(crate) fn switched_to(writes: &[Write]) -> impl Iterator<Item = &str> {
    writes.iter().filter(|write| write.file == "scheduler").map(|write| write.text.trim())
}

/// Checks that no write comes after the end of the load, if that is known.
pub(crate) fn check_times(options: &Options<'_>, writes: &[Write], end_ns: Option<u64>) -> Result<(), Error> {
    let late = end_ns.and_then(|end| Some((end, writes.iter().find(|write| write.at.0 >= end)?)));
    match late {
        Some((end, write)) => {
            let problem = format!("the load ends after {} (expected an earlier time)", Nanos(end));
            Err(options.refuse(Field::TimedWrites, write_text(write), problem))
        }
        None => Ok(()),
    }
}

/// A write in the syntax of the command line: `300ms:bfq.slice_idle=0`.
pub(crate) fn write_text(Write { at, only_under, file, text }: &Write) -> String {
    let at = at.to_string().replace(' ', "");
    match (only_under, file.strip_prefix("iosched/")) {
        (Some(scheduler), Some(tunable)) => format!("{at}:{scheduler}.{tunable}={text}"),
        _ => format!("{at}:{file}={text}"),
    }
}

/// Notices about writes that were not made in all runs, because the load had ended or another scheduler was active. `fates`
/// are the results of each run, by its label.
pub(crate) fn skipped_write_notices(options: &Options<'_>, writes: &[Write], fates: &[(&str, &[Fate])]) -> Vec<String> {
    let name = options.name(Field::TimedWrites);
    let notice = |(index, write): (usize, &Write)| {
        let labels = |fate: Fate| {
            let mut labels: Vec<&str> =
                fates.iter().filter(|(_, fates)| fates.get(index) == Some(&fate)).map(|(label, _)| *label).collect();
            labels.dedup();
            labels
        };
        let [late, other] = [Fate::TooLate, Fate::OtherScheduler].map(labels);
        let is_done = fates.iter().any(|(_, fates)| fates.get(index) == Some(&Fate::Written));
        let why = match (&late[..], &other[..]) {
            // A write to a tunable of one scheduler is expected to be skipped under the others.
            ([], _) if is_done => return None,
            ([], []) => return None,
            (_, []) if !is_done => "never written: the load had ended".to_owned(),
            ([], _) => "never written: another scheduler was active at that time".to_owned(),
            (late, _) => format!("not written with {}: the load had ended", late.join(", ")),
        };
        Some(format!("{name} {}: {why}.", write_text(write)))
    };
    writes.iter().enumerate().filter_map(notice).collect()
}

/// Tries the writes in order on a queue of each scheduler, so that a mistake is rejected at once.
pub(crate) fn validate_settings(
    options: &Options<'_>,
    writes: &[Write],
    config: &QueueConfig,
    schedulers: &[String],
) -> Result<(), Error> {
    for scheduler in schedulers {
        let trial_queue = queue_under(scheduler, config).about(Field::TimedWrites)?;
        for write in writes {
            let applies = write.only_under.as_ref().is_none_or(|name| name == trial_queue.scheduler());
            let problem = match if applies { try_write(&trial_queue, &write.file, &write.text) } else { Ok(()) } {
                Ok(()) => continue,
                Err(AttributeError::Invalid) if write.file == "scheduler" => {
                    let possible =
                        trial_queue.attribute("scheduler").about(Field::TimedWrites)?.replace(['[', ']'], "");
                    let possible = possible.split_whitespace().collect::<Vec<_>>().join(", ");
                    let others = options.name(Field::Schedulers);
                    format!("{scheduler} cannot be changed to that (expected {possible}; other {others} are possible)")
                }
                Err(why) => match write.file.strip_prefix("iosched/") {
                    Some(tunable) if why == AttributeError::Unknown => {
                        trial::unknown_tunable_error(&trial_queue, tunable)
                    }
                    _ => format!("{why} in the run that starts with {scheduler}"),
                },
            };
            return Err(options.refuse(Field::TimedWrites, write_text(write), problem));
        }
    }
    Ok(())
}

/// Makes a write to a queue that is not in use.
fn try_write(trial_queue: &AnyQueue<Local>, file: &str, text: &str) -> Result<(), AttributeError> {
    let now = trial_queue.generation().hz.now(Instant::ZERO);
    let (mut caller, mut driver, mut probe) = (Caller::new(), Idle, NoProbe);
    // An empty queue is switched at once.
    let mut cx = caller.cx::<(Idle, NoProbe)>(now, CpuId(0), &mut driver, &mut probe, &NoMeter);
    trial_queue.begin_change(&mut cx, file, text).map(|_| ())
}

/// An idle device.
struct Idle;

impl Driver for Idle {
    fn queue_rq(&mut self, _: Now, rq: Rq, _: bool) -> Answer {
        Answer::Refused(rq, Refusal::Busy)
    }
}
