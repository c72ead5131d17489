//! Think times, rates and balance.

use hoistway_blk::Nanos;
use hoistway_load::{Flow, Process, Rate, RateLimits, RateProcess, Think, ThinkBlocks};

use super::{Settings, Subject};
use crate::JobFileError;
use crate::job::Job;
use crate::options::{OptionSpec, Setter, U32_MAX};
use crate::values::{PerDirection, Refusal, TimeUnit, bytes, per_direction, whole};

#[derive(Clone, Debug)]
pub(crate) struct Pace {
    think_time: Nanos,
    think_spin: Nanos,
    think_blocks: i64,
    think_counting: ThinkBlocks,
    think_io_time: Nanos,
    rate_ignore_thinktime: bool,
    rate_bytes: PerDirection<u64>,
    rate_ios: PerDirection<u64>,
    rate_process: RateProcess,
    pub(crate) flow: i64,
    pub(crate) flow_id: i64,
    flow_sleep_us: i64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            think_time: Nanos::ZERO,
            think_spin: Nanos::ZERO,
            think_blocks: 1,
            think_counting: ThinkBlocks::Completed,
            think_io_time: Nanos::ZERO,
            rate_ignore_thinktime: false,
            rate_bytes: PerDirection([0; 3]),
            rate_ios: PerDirection([0; 3]),
            rate_process: RateProcess::Linear,
            flow: 0,
            flow_id: 0,
            flow_sleep_us: 0,
        }
    }
}

pub(super) const SUBJECT: Subject =
    Subject { rows: ROWS, land, fields: &[("pace.flow", |_| "flow"), ("pace.think", |_| "thinktime")] };

const ROWS: &[OptionSpec] = &[
    OptionSpec::new(
        "thinktime",
        "0",
        Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.pace.think_time = v },
        "Pause after each thinktime_blocks I/Os",
    ),
    OptionSpec::new(
        "thinktime_spin",
        "0",
        Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.pace.think_spin = v },
        "The part of thinktime that keeps the CPU busy",
    ),
    OptionSpec::new(
        "thinktime_blocks",
        "1",
        Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.pace.think_blocks = v },
        "I/Os between two pauses",
    ),
    OptionSpec::new(
        "thinktime_blocks_type",
        "complete",
        Setter::Choice {
            of: &["complete", "issue"],
            set: |s, i| s.pace.think_counting = [ThinkBlocks::Completed, ThinkBlocks::Issued][i & 1],
        },
        "Whether completed or issued I/Os are counted for thinktime_blocks",
    ),
    OptionSpec::new(
        "thinktime_iotime",
        "0",
        Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.pace.think_io_time = v },
        "Time of I/O between two pauses; then thinktime_blocks counts only if it is given",
    ),
    OptionSpec::new(
        "rate_ignore_thinktime",
        "0",
        Setter::Bool(|s, on| s.pace.rate_ignore_thinktime = on),
        "Let a rate go on after a pause as if it had not been, instead of making up for it",
    ),
    OptionSpec::new(
        "rate",
        "",
        Setter::Form { form: "read,write,trim: bytes per second such as 10m", set: rate },
        "Most bytes per second, for each clone",
    ),
    OptionSpec::new(
        "rate_iops",
        "",
        Setter::Form { form: "read,write,trim: I/Os per second", set: rate_iops },
        "Most I/Os per second, for each clone",
    ),
    OptionSpec::new(
        "rate_process",
        "linear",
        Setter::Choice {
            of: &["linear", "poisson"],
            set: |s, i| s.pace.rate_process = [RateProcess::Linear, RateProcess::Poisson][i & 1],
        },
        "Whether the gaps of a rate are even or exponentially distributed",
    ),
    OptionSpec::new(
        "flow",
        "0",
        Setter::Int { min: 0, max: 1000, set: |s, v| s.pace.flow = v },
        "Weight of the job among those of its flow_id: their I/Os are in these proportions; 0 for no part in it",
    ),
    OptionSpec::new(
        "flow_id",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.pace.flow_id = v },
        "Which jobs are balanced against each other",
    ),
    OptionSpec::new(
        "flow_sleep",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.pace.flow_sleep_us = v },
        "How long, in us, a job that is ahead of its share sleeps; with 0 it goes on as soon as it may",
    ),
];

fn land(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.pace;
    let limits = match (s.rate_bytes.0, s.rate_ios.0) {
        ([0, 0, 0], [0, 0, 0]) => None,
        (bytes, [0, 0, 0]) => Some(RateLimits::Bytes(bytes)),
        ([0, 0, 0], ios) => Some(RateLimits::Ios(ios)),
        _ => {
            return Err(job.error("rate_iops", "rate and rate_iops exclude each other").hinting("use one of them"));
        }
    };
    if s.think_spin > s.think_time {
        return Err(job.error("thinktime_spin", "the spin is longer than thinktime"));
    }
    // As in fio, a pause by time is one by I/Os only if that is asked for, too.
    let by_ios = s.think_io_time == Nanos::ZERO || job.is_given("thinktime_blocks");
    process.pace.think = (s.think_time > Nanos::ZERO).then(|| Think {
        sleep: Nanos(s.think_time.0 - s.think_spin.0),
        spin: s.think_spin,
        blocks: if by_ios { s.think_blocks as u32 } else { 0 },
        io_time: s.think_io_time,
        is_lost_to_rate: s.rate_ignore_thinktime,
        counting: s.think_counting,
    });
    process.pace.rate = limits.map(|limits| Rate { limits, process: s.rate_process });
    process.pace.flow = (s.flow > 0).then(|| Flow {
        id: s.flow_id as u32,
        weight: s.flow as u32,
        sleep: Nanos(s.flow_sleep_us.unsigned_abs() * 1000),
    });
    if s.rate_process == RateProcess::Poisson && limits.is_none() {
        job.tell_unless_replay("rate_process has no effect without rate or rate_iops.");
    }
    let of_thinktime =
        ["thinktime_spin", "thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime", "rate_ignore_thinktime"];
    for option in of_thinktime.into_iter().filter(|option| process.pace.think.is_none() && job.is_given(option)) {
        job.tell_unless_replay(&format!("{option} has no effect without thinktime."));
    }
    if s.flow == 0 && (job.is_given("flow_id") || job.is_given("flow_sleep")) {
        job.tell_unless_replay("flow_id and flow_sleep have no effect without flow.");
    }
    Ok(())
}

fn rate(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.files.kb_base;
    s.pace.rate_bytes = limits(text, |v| bytes(v, base))?;
    Ok(())
}

fn rate_iops(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.pace.rate_ios = limits(text, |v| whole(v, 0, 1_000_000_000).map(|v| v as u64))?;
    Ok(())
}

/// A list of limits in which a missing first value means no limit.
fn limits(text: &str, parse: impl Fn(&str) -> Result<u64, Refusal>) -> Result<PerDirection<u64>, Refusal> {
    Ok(per_direction(text, parse)?.map(|limit| limit.unwrap_or(0)))
}
