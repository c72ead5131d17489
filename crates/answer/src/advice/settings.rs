//! Queue settings of a device, and the shell commands and udev rules that write them.

use serde_json::{Map, Value};

use crate::document::Run;

/// The scheduler and the `queue/` files of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Its scheduler.
    pub(super) scheduler: String,
    /// The scheduler of the guests' disks, if the load ran in guests.
    pub(super) guest_scheduler: Option<String>,
    /// Files below `queue/` and their contents, in the order in which they are to be written: `nr_requests` before
    /// tunables that depend on it.
    pub(super) files: Vec<(String, String)>,
}

impl Settings {
    /// The settings of a run.
    pub(super) fn of(run: &Run, is_in_guests: bool) -> Self {
        let (guest_scheduler, scheduler) = match run.scheduler.split_once("-over-") {
            Some((guest, host)) if is_in_guests => (Some(guest.to_owned()), host.to_owned()),
            _ => (None, run.scheduler.clone()),
        };
        let of_queue = texts(&run.queue_files).map(|(name, text)| (name.to_owned(), text));
        let of_scheduler = texts(&run.tunables).map(|(name, text)| (format!("iosched/{name}"), text));
        let files = of_queue.chain(of_scheduler).collect();
        Self { scheduler, guest_scheduler, files }
    }

    /// The content of a file; `None` if it keeps its default.
    pub(super) fn file(&self, file: &str) -> Option<&str> {
        self.files.iter().find(|(name, _)| name == file).map(|(_, text)| text.as_str())
    }

    /// The shell command that writes the scheduler.
    pub(super) fn write_scheduler(&self, device: &str) -> String {
        write(device, "scheduler", &self.scheduler)
    }

    /// The shell commands that write the other files.
    pub(super) fn write_files(&self, device: &str) -> impl Iterator<Item = String> {
        self.files.iter().map(move |(file, text)| write(device, file, text))
    }

    /// The lines of a udev rule, one for each file: udev applies them in this order.
    pub(super) fn rule(&self, device: &str) -> Vec<String> {
        let scheduler = ("scheduler".to_owned(), self.scheduler.clone());
        let line = |(file, text): &(String, String)| {
            format!(r#"ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{device}", ATTR{{queue/{file}}}="{text}""#)
        };
        std::iter::once(&scheduler).chain(&self.files).map(line).collect()
    }
}

fn texts(map: &Map<String, Value>) -> impl Iterator<Item = (&str, String)> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// The path of a file of `queue/`.
pub(super) fn path(device: &str, file: &str) -> String {
    format!("/sys/block/{device}/queue/{file}")
}

/// The shell command that writes a file of `queue/`.
pub(super) fn write(device: &str, file: &str, text: &str) -> String {
    format!("echo {text} > {}", path(device, file))
}
