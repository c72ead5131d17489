//! Options of steady state: end a job when its results are steady.

use hoistway_blk::ground::Nanos;
use hoistway_load::{Process, Steadiness, SteadyFigure, SteadyState};

use super::Job;
use super::{OptionSpec, Setter, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::values::{Refusal, TimeUnit, decimal};

#[derive(Clone, Debug, Default)]
pub(crate) struct Steady {
    steadiness: Steadiness,
    /// Zero for never.
    duration: Nanos,
    ramp: Nanos,
}

pub(super) const SUBJECT: Subject =
    Subject { rows: ROWS, apply, fields: &[("steady_state", |_| "steadystate_duration")] };

const ROWS: &[OptionSpec] = &[
    row(
        "steadystate",
        "iops_slope:0.01%",
        Setter::Form {
            form: "iops | iops_slope | bw | bw_slope, a colon, and a limit such as 2 or 0.3%",
            set: criterion,
        },
    )
    .doc(
        "Criterion and limit for ending the job, with steadystate_duration: the largest distance from the \
         mean, or the slope, of one-second samples",
    )
    .alias(&["ss"]),
    row("steadystate_duration", "0", Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.steady.duration = v })
        .doc("How long results must be steady; 0 disables it")
        .alias(&["ss_dur"]),
    row("steadystate_ramp_time", "0", Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.steady.ramp = v })
        .doc("Time before the first sample")
        .alias(&["ss_ramp"]),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let Steady { steadiness, duration, ramp } = job.settings.steady;
    if duration > Nanos::ZERO {
        let seconds = u32::try_from(duration.0 / 1_000_000_000).unwrap_or(u32::MAX);
        process.steady_state = Some(SteadyState { steadiness, seconds, ramp });
    } else {
        job.add_notice_of_unused_options(&["steadystate", "steadystate_ramp_time"], "without steadystate_duration");
    }
    Ok(())
}

fn criterion(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let expected = "expected iops, iops_slope, bw or bw_slope, a colon, and a limit such as 2 or 0.3%";
    let refused = |message: &str| Refusal::new(message).with_hint(expected);
    let Some((figure, limit)) = text.split_once(':') else { return Err(refused("the limit is missing")) };
    let (figure, is_slope) = match figure {
        "iops" => (SteadyFigure::Ios, false),
        "iops_slope" => (SteadyFigure::Ios, true),
        "bw" => (SteadyFigure::Bytes, false),
        "bw_slope" => (SteadyFigure::Bytes, true),
        _ => return Err(refused("not a criterion")),
    };
    let (limit, is_percent) = match limit.strip_suffix('%') {
        Some(limit) => (limit, true),
        None => (limit, false),
    };
    let limit = decimal(limit).map_err(|_| refused("the limit is not a number"))?;
    s.steady.steadiness = Steadiness { figure, is_slope, limit, is_percent };
    Ok(())
}
