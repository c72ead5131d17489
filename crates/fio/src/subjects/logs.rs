//! What log files hold, if whoever runs the job wants some.

use super::Subject;
use crate::options::{OptionSpec, Setter};
use crate::values::TimeUnit;

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, land: |_, _| Ok(()), fields: &[] };

const ROWS: &[OptionSpec] = &[
    OptionSpec::new(
        "log_avg_msec",
        "0",
        Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.process.log_settings.window = v },
        "Average log entries over this time instead of writing each I/O",
    ),
    OptionSpec::new(
        "log_max_value",
        "0",
        Setter::Bool(|s, on| s.process.log_settings.is_maximum = on),
        "Of latencies log the largest of a window, not the mean",
    ),
    OptionSpec::new(
        "log_window_value",
        "average",
        Setter::Choice { of: &["average", "maximum"], set: |s, i| s.process.log_settings.is_maximum = i == 1 },
        "As log_max_value",
    ),
    OptionSpec::new(
        "log_offset",
        "0",
        Setter::Bool(|s, on| s.process.log_settings.offsets = on),
        "Log the offset of each I/O, too",
    ),
    OptionSpec::new(
        "log_prio",
        "0",
        Setter::Bool(|s, on| s.process.log_settings.priorities = on),
        "Log the whole priority of each I/O, not only whether it is of the real-time class",
    ),
    OptionSpec::new(
        "log_hist_msec",
        "0",
        Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.process.log_settings.histogram_window = v },
        "Log histograms of completion latencies over this time; 0 for none",
    ),
    OptionSpec::new(
        "log_hist_coarseness",
        "0",
        Setter::Int { min: 0, max: 6, set: |s, v| s.process.log_settings.histogram_coarseness = v as u8 },
        "Put 2 to this power of a histogram's bins together",
    ),
];
