//! A block device that is being served.

use std::thread::JoinHandle;

use crate::ground::stop::Stop;

/// A block device of this machine, with the thread that removes it.
pub(crate) struct ServedDevice {
    /// Its export.
    pub(crate) export: String,
    /// Its path.
    pub(crate) place: String,
    /// Makes the thread remove it.
    pub(crate) stop: Stop,
    /// Removes it.
    pub(crate) thread: JoinHandle<()>,
}
