//! What log files hold, if whoever runs the job wants some.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::values::TimeUnit;

pub(super) const OPTIONS: &[OptionSpec] = &[OptionSpec::new(
    "log_avg_msec",
    "0",
    Setter::Time { unit: TimeUnit::Milliseconds, set: |s, v| s.log_window = v },
    "Average log entries over this time instead of writing each I/O",
)];
