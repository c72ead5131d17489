//! Writes to files of `queue/`, and why they are impossible.

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
        // -1 sets the default, whatever its value is.
        let is_default = self.file == "wbt_lat_usec" && self.value == "-1";
        is_default || shown == self.value || shown.parse::<u64>().is_ok_and(|number| self.value.parse() == Ok(number))
    }
}

/// Why no plan is possible.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// The device has no requests.
    #[error("{0}: has no queue of requests, so that no scheduler acts there (expected {1})")]
    NoQueue(String, String),
    /// The kernel has neither the scheduler nor its module.
    #[error(
        "{device}: the kernel offers {offered} and has no module of {scheduler} (expected a scheduler that it has)"
    )]
    NoScheduler {
        /// The device.
        device: String,
        /// The requested scheduler.
        scheduler: String,
        /// The available ones.
        offered: String,
    },
    /// There is no file with this name.
    #[error("\"{0}\" is no file of queue/ (expected one such as nr_requests or iosched/read_expire)")]
    NoFile(String),
    /// The device has no serial number or other unique property.
    #[error("{0}: udev's database has no serial number of it (expected --by-name, or --persist none)")]
    NoSerial(String),
    /// tuned has no profile.
    #[error(
        "{0}: /etc/tuned/active_profile names no profile to be included (expected tuned with one, or --persist udev)"
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
