//! Jobs that end when their results are steady.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::settings::Settings;
use crate::values::{Refusal, TimeUnit, decimal};
use crate::workload::{Steadiness, SteadyFigure};

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "steadystate",
        "iops_slope:0.01%",
        Setter::Form {
            form: "iops | iops_slope | bw | bw_slope, a colon, and a limit such as 2 or 0.3%",
            set: criterion,
        },
        "What must be below which limit for the job to end, with steadystate_duration: the largest distance from the \
         mean, or the slope, of samples of a second",
    )
    .alias(&["ss"]),
    OptionSpec::new(
        "steadystate_duration",
        "0",
        Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.steady_duration = v },
        "How long results must be steady; 0 switches it off",
    )
    .alias(&["ss_dur"]),
    OptionSpec::new(
        "steadystate_ramp_time",
        "0",
        Setter::Time { unit: TimeUnit::Seconds, set: |s, v| s.steady_ramp = v },
        "Time before the first sample",
    )
    .alias(&["ss_ramp"]),
];

fn criterion(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let expected = "expected iops, iops_slope, bw or bw_slope, a colon, and a limit such as 2 or 0.3%";
    let refused = |message: &str| Refusal::new(message).hinting(expected);
    let Some((figure, limit)) = text.split_once(':') else { return Err(refused("there is no limit")) };
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
    s.steadiness = Steadiness { figure, is_slope, limit, is_percent };
    Ok(())
}
