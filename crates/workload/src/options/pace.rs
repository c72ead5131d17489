//! Think times and rates.

use super::setter::{Setter, U32_MAX};
use super::spec::OptionSpec;
use crate::settings::Settings;
use crate::values::{PerDirection, Refusal, TimeUnit, bytes, per_direction, whole};
use crate::workload::{RateProcess, ThinkBlocks};

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "thinktime",
        "0",
        Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.think_time = v },
        "Pause after each thinktime_blocks I/Os",
    ),
    OptionSpec::new(
        "thinktime_spin",
        "0",
        Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.think_spin = v },
        "The part of thinktime that keeps the CPU busy",
    ),
    OptionSpec::new(
        "thinktime_blocks",
        "1",
        Setter::Int { min: 1, max: U32_MAX, set: |s, v| s.think_blocks = v },
        "I/Os between two pauses",
    ),
    OptionSpec::new(
        "thinktime_blocks_type",
        "complete",
        Setter::Choice {
            of: &["complete", "issue"],
            set: |s, i| s.think_blocks_type = [ThinkBlocks::Completed, ThinkBlocks::Issued][i & 1],
        },
        "Whether completed or issued I/Os are counted for thinktime_blocks",
    ),
    OptionSpec::new(
        "thinktime_iotime",
        "0",
        Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.think_io_time = v },
        "Time of I/O between two pauses; then thinktime_blocks counts only if it is given",
    ),
    OptionSpec::new(
        "rate_ignore_thinktime",
        "0",
        Setter::Bool(|s, on| s.rate_ignore_thinktime = on),
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
            set: |s, i| s.rate_process = [RateProcess::Linear, RateProcess::Poisson][i & 1],
        },
        "Whether the gaps of a rate are even or exponentially distributed",
    ),
    OptionSpec::new(
        "flow",
        "0",
        Setter::Int { min: 0, max: 1000, set: |s, v| s.flow = v },
        "Weight of the job among those of its flow_id: their I/Os are in these proportions; 0 for no part in it",
    ),
    OptionSpec::new(
        "flow_id",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.flow_id = v },
        "Which jobs are balanced against each other",
    ),
    OptionSpec::new(
        "flow_sleep",
        "0",
        Setter::Int { min: 0, max: U32_MAX, set: |s, v| s.flow_sleep_us = v },
        "How long, in us, a job that is ahead of its share sleeps; with 0 it goes on as soon as it may",
    ),
];

fn rate(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let base = s.kb_base;
    s.rate_bytes = limits(text, |v| bytes(v, base))?;
    Ok(())
}

fn rate_iops(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.rate_ios = limits(text, |v| whole(v, 0, 1_000_000_000).map(|v| v as u64))?;
    Ok(())
}

/// A list of limits in which a missing first value means no limit.
fn limits(text: &str, parse: impl Fn(&str) -> Result<u64, Refusal>) -> Result<PerDirection<u64>, Refusal> {
    Ok(per_direction(text, parse)?.map(|limit| limit.unwrap_or(0)))
}
