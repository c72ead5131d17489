//! Options of log files, if the caller writes them.

use super::Subject;
use super::{OptionSpec, Setter, row};
use crate::values::TimeUnit;

pub(super) const SUBJECT: Subject = Subject { rows: ROWS, apply: |_, _| Ok(()), fields: &[] };

const ROWS: &[OptionSpec] = &[
    row(
        "log_avg_msec",
        "0",
        Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.process.log_settings.window = v },
    )
    .doc("Average log entries over this time instead of writing each I/O"),
    row("log_max_value", "0", Setter::Bool(|s, on| s.process.log_settings.is_maximum = on))
        .doc("Log the largest latency of each window instead of the mean"),
    row(
        "log_window_value",
        "average",
        Setter::Choice { words: &["average", "maximum"], set: |s, i| s.process.log_settings.is_maximum = i == 1 },
    )
    .doc("Same as log_max_value"),
    row("log_offset", "0", Setter::Bool(|s, on| s.process.log_settings.offsets = on))
        .doc("Also log the offset of each I/O"),
    row("log_prio", "0", Setter::Bool(|s, on| s.process.log_settings.priorities = on))
        .doc("Log the whole priority of each I/O, not only whether it is of the real-time class"),
    row(
        "log_hist_msec",
        "0",
        Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.process.log_settings.histogram_window = v },
    )
    .doc("Log histograms of completion latencies over this time; 0 for none"),
    row(
        "log_hist_coarseness",
        "0",
        Setter::Int { min: 0, max: 6, set: |s, v| s.process.log_settings.histogram_coarseness = v as u8 },
    )
    .doc("Merge 2 to this power of a histogram's bins"),
];
