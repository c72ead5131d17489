//! Options of think time, rate limits and balance between jobs (`flow`).

use hoistway_blk::ground::Nanos;
use hoistway_load::{Flow, Process, Rate, RateLimits, RateProcess, Think, ThinkBlocks};

use super::Job;
use super::{OptionSpec, Setter, U32_MAX, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::values::{Refusal, TimeUnit, bytes, per_direction, whole};

#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    think: Think,
    rate_bytes: [u64; 3],
    rate_ios: [u64; 3],
    rate_process: RateProcess,
    flow: Flow,
}

pub(super) const SUBJECT: Subject =
    Subject { rows: ROWS, apply, fields: &[("pace.flow", |_| "flow"), ("pace.think", |_| "thinktime")] };

const ROWS: &[OptionSpec] = &[
    row("thinktime", "0", Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.pace.think.sleep = v })
        .doc("Pause after each thinktime_blocks I/Os"),
    row("thinktime_spin", "0", Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.pace.think.spin = v })
        .doc("The part of thinktime that keeps the CPU busy"),
    row("thinktime_blocks", "1", Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.pace.think.blocks = v as u32 })
        .doc("I/Os between two pauses"),
    row(
        "thinktime_blocks_type",
        "complete",
        Setter::Choice {
            words: &["complete", "issue"],
            set: |s, i| s.pace.think.counting = [ThinkBlocks::Completed, ThinkBlocks::Issued][i & 1],
        },
    )
    .doc("Whether completed or issued I/Os are counted for thinktime_blocks"),
    row("thinktime_iotime", "0", Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.pace.think.io_time = v })
        .doc("Time of I/O between two pauses; thinktime_blocks then counts only if it is also given"),
    row("rate_ignore_thinktime", "0", Setter::Bool(|s, on| s.pace.think.is_lost_to_rate = on))
        .doc("Do not catch up with the rate after a pause"),
    row("rate", "", Setter::Form { form: "read,write,trim: bytes per second such as 10m", set: rate })
        .doc("Maximum bytes per second, for each clone"),
    row("rate_iops", "", Setter::Form { form: "read,write,trim: I/Os per second", set: rate_iops })
        .doc("Maximum I/Os per second, for each clone"),
    row(
        "rate_process",
        "linear",
        Setter::Choice {
            words: &["linear", "poisson"],
            set: |s, i| s.pace.rate_process = [RateProcess::Linear, RateProcess::Poisson][i & 1],
        },
    )
    .doc("Whether the gaps of a rate are even or exponentially distributed"),
    row("flow", "0", Setter::Int { min: 0, max: 1000, set: |s, v| s.pace.flow.weight = v as u32 })
        .doc("Weight of the job among those with its flow_id, whose I/Os have these proportions; 0 to take no part"),
    row("flow_id", "0", Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.pace.flow.id = v as u32 })
        .doc("Which jobs are balanced against each other"),
    row(
        "flow_sleep",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.pace.flow.sleep = Nanos::from_micros(v.unsigned_abs()) },
    )
    .doc("Time, in us, that a job ahead of its share sleeps; with 0 it continues as soon as allowed"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let Pace { mut think, rate_bytes, rate_ios, rate_process, flow } = job.settings.pace;
    let limits = match (rate_bytes, rate_ios) {
        ([0, 0, 0], [0, 0, 0]) => None,
        (bytes, [0, 0, 0]) => Some(RateLimits::Bytes(bytes)),
        ([0, 0, 0], ios) => Some(RateLimits::Ios(ios)),
        _ => {
            return Err(job.error("rate_iops", "rate and rate_iops exclude each other").with_hint("use one of them"));
        }
    };
    process.pace.rate = limits.map(|limits| Rate { limits, process: rate_process });
    if limits.is_none() && rate_process == RateProcess::Poisson {
        job.add_notice_of_unused_options(&["rate_process"], "without rate or rate_iops");
    }
    // `think.sleep` still holds the whole pause.
    let Some(sleep_ns) = think.sleep.0.checked_sub(think.spin.0) else {
        return Err(job.error("thinktime_spin", "the spin is longer than thinktime"));
    };
    if think.sleep > Nanos::ZERO {
        // As in fio, if pauses go by time, pauses by number of I/Os must be requested explicitly.
        if think.io_time > Nanos::ZERO && !job.is_given("thinktime_blocks") {
            think.blocks = 0;
        }
        think.sleep = Nanos(sleep_ns);
        process.pace.think = Some(think);
    } else {
        let unused = [
            "thinktime_spin",
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_iotime",
            "rate_ignore_thinktime",
        ];
        job.add_notice_of_unused_options(&unused, "without thinktime");
    }
    if flow.weight > 0 {
        process.pace.flow = Some(flow);
    } else {
        job.add_notice_of_unused_options(&["flow_id", "flow_sleep"], "without flow");
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

/// Parses a list of limits; a missing first value means no limit.
fn limits(text: &str, parse: impl Fn(&str) -> Result<u64, Refusal>) -> Result<[u64; 3], Refusal> {
    Ok(per_direction(text, parse)?.map(|limit| limit.unwrap_or(0)))
}
