//! Latencies that decide how deep a job goes, and when it fails.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::settings::Settings;
use crate::values::{Refusal, TimeUnit, decimal, per_direction, time};
use hoistway_blk::Nanos;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "latency_target",
        "0",
        Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.latency_target = v },
        "Search the largest depth, up to iodepth, at which enough I/Os take no longer than this",
    ),
    OptionSpec::new(
        "latency_window",
        "0",
        Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.latency_window = v },
        "How long each depth of that search is tried",
    ),
    OptionSpec::new(
        "latency_percentile",
        "100",
        Setter::Form { form: "a percentage from 0 to 100", set: percentile },
        "How many percent of the I/Os must be within latency_target; with 100 the job fails at the first that is not",
    ),
    OptionSpec::new(
        "latency_run",
        "0",
        Setter::Bool(|s, on| s.latency_run = on),
        "Go on when the depth is found, and follow it",
    ),
    OptionSpec::new(
        "max_latency",
        "0",
        Setter::Form { form: "read,write,trim: times in us, or with a unit d, h, m, s, ms, us", set: max_latency },
        "The job fails (ETIMEDOUT) at the first I/O that takes longer; 0 for never",
    ),
];

fn percentile(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let percent = decimal(text)?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(Refusal::new("out of range").hinting("expected a percentage from 0 to 100"));
    }
    s.latency_percentile = percent;
    Ok(())
}

fn max_latency(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let limits = per_direction(text, |text| time(text, TimeUnit::Microseconds))?;
    s.max_latency = limits.map(|limit| limit.unwrap_or(Nanos::ZERO)).0;
    Ok(())
}
