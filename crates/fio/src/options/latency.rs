//! Options of latency limits: `latency_target` searches a depth, `max_latency` fails the job.

use hoistway_blk::ground::Nanos;
use hoistway_load::Process;

use super::Job;
use super::{OptionSpec, Setter, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::values::{Refusal, TimeUnit, decimal, per_direction, time};

pub(super) const SUBJECT: Subject = Subject {
    rows: ROWS,
    apply,
    fields: &[("latency.target", |_| "latency_target"), ("latency.max", |_| "max_latency")],
};

const ROWS: &[OptionSpec] = &[
    row("latency_target", "0", Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.latency.target = v })
        .doc("Search for the largest depth, up to iodepth, at which enough I/Os take no longer than this"),
    row("latency_window", "0", Setter::Time { unit: TimeUnit::Microseconds, set: |s, v| s.latency.window = v })
        .doc("How long the search tries each depth"),
    row("latency_percentile", "100", Setter::Form { form: "a percentage from 0 to 100", set: percentile })
        .doc("Percentage of I/Os that must be within latency_target; with 100 the job fails at the first one above it"),
    row("latency_run", "0", Setter::Bool(|s, on| s.latency.goes_on = on))
        .doc("Continue after the depth is found, and keep adapting it"),
    row(
        "max_latency",
        "0",
        Setter::Form { form: "read,write,trim: times in us, or with a unit d, h, m, s, ms, us", set: max_latency },
    )
    .doc("Fail the job (ETIMEDOUT) at the first I/O that takes longer; 0 for never"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let search = job.settings.latency;
    if search.target == Nanos::ZERO {
        job.add_notice_of_unused_options(
            &["latency_window", "latency_percentile", "latency_run"],
            "without latency_target",
        );
        return Ok(());
    }
    process.latency.target = Some(search);
    if search.percentile >= 100.0 {
        // Tried with fio 3.33: a target for 100 % of the I/Os also acts as a limit.
        process.latency.max = [search.target; 3];
        job.add_notice_unless_replay(
            "latency_target with latency_percentile=100: as in fio 3.33, the job fails at the first I/O above it.",
        );
    }
    Ok(())
}

fn percentile(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let percent = decimal(text)?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(Refusal::new("out of range").with_hint("expected a percentage from 0 to 100"));
    }
    s.latency.percentile = percent;
    Ok(())
}

fn max_latency(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let limits = per_direction(text, |text| time(text, TimeUnit::Microseconds))?;
    s.process.latency.max = limits.map(|limit| limit.unwrap_or(Nanos::ZERO));
    Ok(())
}
