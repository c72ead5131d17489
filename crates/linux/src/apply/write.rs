//! Planned writes to files of `queue/`, and why a plan is impossible.

/// A file to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Path below `queue/`.
    pub file: String,
    /// Its current value.
    pub before: String,
    /// The value to write.
    pub value: String,
}

impl Write {
    /// Whether the file shows the written value.
    pub(super) fn is_shown_as(&self, shown: &str) -> bool {
        // -1 sets the default, so the file shows another value.
        let is_default = self.file == "wbt_lat_usec" && self.value == "-1";
        is_default || shown == self.value || shown.parse::<u64>().is_ok_and(|number| self.value.parse() == Ok(number))
    }
}

/// Why no plan is possible.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// The device has no requests.
    #[error("{0}: has no request queue, so no scheduler applies (expected {1})")]
    NoQueue(String, String),
    /// The kernel has neither the scheduler nor its module.
    #[error("{device}: no scheduler or module {scheduler} in this kernel (expected one of {offered})")]
    NoScheduler {
        /// The device.
        device: String,
        /// The requested scheduler.
        scheduler: String,
        /// The available ones.
        offered: String,
    },
    /// There is no file with this name.
    #[error("\"{0}\" is not a file in queue/ with a plain value (expected one such as nr_requests=64)")]
    NoFile(String),
    /// The device has no serial number or other unique property.
    #[error("{0}: has no serial number in udev's database (expected --by-name, or --persist none)")]
    NoSerial(String),
    /// tuned has no profile.
    #[error(
        "{0}: /etc/tuned/active_profile names no profile to include (expected an active tuned profile, or --persist udev)"
    )]
    NoTuned(String),
    /// tuned's active profile was made for another device.
    #[error(
        "{device}: tuned's active profile {profile} was made for another device (expected --persist udev, or hoistway apply --undo first)"
    )]
    OtherTuned {
        /// The device.
        device: String,
        /// The active profile.
        profile: String,
    },
}
