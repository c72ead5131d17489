//! A write to a file of `queue/`, and why there is none.

/// A file that will be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    /// Below `queue/`.
    pub file: String,
    /// What it shows.
    pub before: String,
    /// What is written.
    pub value: String,
}

impl Write {
    /// Whether the file shows what was written.
    pub(super) fn is_shown_as(&self, shown: &str) -> bool {
        // The word for the default, whatever that is.
        let is_default = self.file == "wbt_lat_usec" && self.value == "-1";
        is_default || shown == self.value || shown.parse::<u64>().is_ok_and(|number| self.value.parse() == Ok(number))
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// No request reaches it.
    #[error("{0}: has no queue of requests, so that no scheduler acts there (expected one of the disks below it: {1})")]
    NoQueue(String, String),
    /// The kernel does not have the scheduler.
    #[error("{device}: the kernel offers {offered} (expected {scheduler} among them: load its module)")]
    NoScheduler {
        /// The device.
        device: String,
        /// The scheduler that is wanted.
        scheduler: String,
        /// Those that there are.
        offered: String,
    },
    /// A name is none.
    #[error("\"{0}\" is no file of queue/ (expected one such as nr_requests or iosched/read_expire)")]
    NoFile(String),
    /// Nothing distinguishes the device from others.
    #[error("{0}: udev's database has no serial number of it (expected --by-name, or --persist none)")]
    NoSerial(String),
    /// tuned has no profile.
    #[error(
        "{0}: /etc/tuned/active_profile names no profile to be included (expected tuned with one, or --persist udev)"
    )]
    NoTuned(String),
}
