//! What latencies a job must keep.

use hoistway_blk::Nanos;

use super::JobContext;
use crate::JobFileError;
use crate::settings::Settings;
use crate::workload::LatencyTarget;

/// The search for a depth, if the job asks for one.
pub(crate) fn latency_target(context: &JobContext<'_>) -> Result<Option<LatencyTarget>, JobFileError> {
    let s = context.settings;
    if s.latency_target == Nanos::ZERO {
        return Ok(None);
    }
    if s.latency_window == Nanos::ZERO {
        let error = context.error("latency_target", "the search for a depth needs latency_window");
        return Err(error.hinting("say how long each depth is tried: latency_window=5s"));
    }
    Ok(Some(LatencyTarget {
        target: s.latency_target,
        window: s.latency_window,
        percentile: s.latency_percentile,
        goes_on: s.latency_run,
    }))
}

/// The latencies at which the job fails. Tried with fio 3.33: a target for all I/Os is one, too.
pub(crate) fn max_latency(s: &Settings) -> [Nanos; 3] {
    let is_for_all = s.latency_target > Nanos::ZERO && s.latency_percentile >= 100.0;
    if is_for_all { [s.latency_target; 3] } else { s.max_latency }
}
