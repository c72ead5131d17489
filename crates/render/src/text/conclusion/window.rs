//! What was measured, and what was left out.

use hoistway_answer::document::{MeasuredWindow, Unsteady};
use hoistway_measure::settling::SettlingFigure;
use hoistway_measure::units;

/// The measured window, if it is not that of fio, and what the start is like.
pub(crate) fn sentence(window: &MeasuredWindow) -> String {
    let MeasuredWindow { from_seconds, until_seconds, own_until_seconds, .. } = window;
    let [from, until, own] = [from_seconds, until_seconds, own_until_seconds].map(|seconds| units::seconds(*seconds));
    let settled = window.unsteady.iter().filter(|unsteady| unsteady.seconds.is_some());
    let most = settled.max_by(|a, b| a.difference.abs().total_cmp(&b.difference.abs()));
    match most {
        Some(unsteady) => format!(
            "In the first {} {} is unlike later ({}), so the figures are from {from} to {until} of a longer run; \
             --from-start gives those of the load's own {own}.",
            units::seconds(unsteady.seconds.unwrap_or_default()),
            name(unsteady),
            unlike(unsteady),
        ),
        None => format!(
            "The figures are from {from} to {until}, while all jobs run; --from-start gives each job's own time."
        ),
    }
}

/// What had not settled in the longer runs.
pub(crate) fn doubt(window: &MeasuredWindow) -> Option<String> {
    let unsettled = window.unsteady.iter().find(|unsteady| unsteady.seconds.is_none())?;
    let until = units::seconds(window.until_seconds);
    Some(format!("{} had not settled after {until} ({})", name(unsettled), unlike(unsettled)))
}

fn name(unsteady: &Unsteady) -> String {
    format!("{} under {}", unsteady.job, unsteady.scheduler)
}

fn unlike(unsteady: &Unsteady) -> String {
    let figure = match unsteady.figure {
        SettlingFigure::Iops => "IOPS",
        SettlingFigure::MeanLatency => "latency",
    };
    format!("{figure} {}", units::difference(unsteady.difference))
}
