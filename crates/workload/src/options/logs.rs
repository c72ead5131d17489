//! What log files hold, if whoever runs the job wants some.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::values::TimeUnit;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "log_avg_msec",
        "0",
        Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.log.window = v },
        "Average log entries over this time instead of writing each I/O",
    ),
    OptionSpec::new(
        "log_max_value",
        "0",
        Setter::Bool(|s, on| s.log.is_maximum = on),
        "Of latencies log the largest of a window, not the mean",
    ),
    OptionSpec::new(
        "log_window_value",
        "average",
        Setter::Choice { of: &["average", "maximum"], set: |s, i| s.log.is_maximum = i == 1 },
        "As log_max_value",
    ),
    OptionSpec::new("log_offset", "0", Setter::Bool(|s, on| s.log.offsets = on), "Log the offset of each I/O, too"),
    OptionSpec::new(
        "log_prio",
        "0",
        Setter::Bool(|s, on| s.log.priorities = on),
        "Log the whole priority of each I/O, not only whether it is of the real-time class",
    ),
    OptionSpec::new(
        "log_hist_msec",
        "0",
        Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.log.histogram_window = v },
        "Log histograms of completion latencies over this time; 0 for none",
    ),
    OptionSpec::new(
        "log_hist_coarseness",
        "0",
        Setter::Int { min: 0, max: 6, set: |s, v| s.log.histogram_coarseness = v as u8 },
        "Put 2 to this power of a histogram's bins together",
    ),
];
