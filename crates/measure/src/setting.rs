//! A setting: a scheduler with its writes to files of `queue/`, the same from an option to a stored run and to a disk.
//!
//! Used by: crates `sim`, `answer`, `experiment`.
//! Tests: `crates/measure/tests/setting.rs`, `crates/answer/tests/integrity.rs`, `crates/experiment/tests/variants.rs`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The folder of a scheduler's tunables below `queue/`.
const TUNABLES: &str = "iosched/";

/// What the names of files of cgroups begin with; no file of `queue/` has a name with this dot.
const CGROUP_FILES: &str = "io.";

/// A file that is written before all others: switching the number of requests sets other files to their defaults.
const REQUESTS: &str = "nr_requests";

/// A scheduler and the writes to `/sys/block/DEV/queue/` that go with it, and those to files of cgroups, named as options vary them. Files
/// that are not written keep the kernel's defaults.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Setting {
    /// The scheduler.
    pub scheduler: String,
    /// Files as sysfs names them, such as `nr_requests` and `iosched/fifo_batch`, and their texts, in the order of writing: tunables
    /// after other files, which may change them, and files of cgroups, such as `io.cost.qos.max`, last.
    pub writes: Vec<(String, String)>,
}

/// A setting in documents, where tunables have their plain names.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    scheduler: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tunables: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    queue_files: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    cgroup_files: BTreeMap<String, String>,
}

impl Setting {
    /// A scheduler with its default settings.
    #[must_use]
    pub fn untouched(scheduler: &str) -> Self {
        Self { scheduler: scheduler.to_owned(), writes: Vec::new() }
    }

    /// The file of a tunable.
    #[must_use]
    pub fn file_of(tunable: &str) -> String {
        format!("{TUNABLES}{tunable}")
    }

    /// The plain name of a file: of a tunable without its folder.
    #[must_use]
    pub fn plain_name(file: &str) -> &str {
        file.strip_prefix(TUNABLES).unwrap_or(file)
    }

    /// Whether a file is a tunable.
    #[must_use]
    pub fn is_tunable(file: &str) -> bool {
        file.starts_with(TUNABLES)
    }

    /// Whether it is a setting in a file of cgroups, such as `io.cost.qos.max` or `io.latency.pods/db.target`.
    #[must_use]
    pub fn is_cgroup_file(file: &str) -> bool {
        file.starts_with(CGROUP_FILES)
    }

    /// Whether the scheduler has its default settings.
    #[must_use]
    pub fn is_kernel_default(&self) -> bool {
        self.writes.is_empty()
    }

    /// Adds a write in its place; a file that is written already gets the new text.
    pub fn write(&mut self, file: &str, text: &str) {
        if let Some((_, known)) = self.writes.iter_mut().find(|(known, _)| known == file) {
            text.clone_into(known);
            return;
        }
        let place = if file == REQUESTS {
            0
        } else if Self::is_cgroup_file(file) {
            self.writes.len()
        } else if Self::is_tunable(file) {
            self.queue_files().count() + self.tunables().count()
        } else {
            self.queue_files().count()
        };
        self.writes.insert(place, (file.to_owned(), text.to_owned()));
    }

    /// The setting with this write.
    #[must_use]
    pub fn with(mut self, file: &str, text: &str) -> Self {
        self.write(file, text);
        self
    }

    /// The text that is written to a file; `None` if the file keeps its default.
    #[must_use]
    pub fn text(&self, file: &str) -> Option<&str> {
        self.writes.iter().find(|(known, _)| known == file).map(|(_, text)| text.as_str())
    }

    /// The number of requests; `None` if it keeps its default, or is not a number.
    #[must_use]
    pub fn nr_requests(&self) -> Option<u32> {
        self.text(REQUESTS)?.trim().parse().ok()
    }

    /// The tunables by their plain names.
    pub fn tunables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.writes.iter().filter_map(|(file, text)| Some((file.strip_prefix(TUNABLES)?, text.as_str())))
    }

    /// The other files of `queue/`.
    pub fn queue_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let others = self.writes.iter().filter(|(file, _)| !Self::is_tunable(file) && !Self::is_cgroup_file(file));
        others.map(|(file, text)| (file.as_str(), text.as_str()))
    }

    /// The settings in files of cgroups.
    pub fn cgroup_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.writes.iter().filter(|(file, _)| Self::is_cgroup_file(file));
        files.map(|(file, text)| (file.as_str(), text.as_str()))
    }

    /// All values as they are shown: the tunables, then the other files of `queue/`, then those of cgroups.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tunables().chain(self.queue_files()).chain(self.cgroup_files())
    }
}

/// The row's label in a comparison: `mq-deadline fifo_batch=4 nr_requests=64`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheduler)?;
        self.values().try_for_each(|(name, text)| write!(f, " {name}={text}"))
    }
}

impl Ord for Setting {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_tunables = || self.tunables().cmp(other.tunables());
        let by_files = || self.queue_files().cmp(other.queue_files());
        let by_cgroups = || self.cgroup_files().cmp(other.cgroup_files());
        self.scheduler.cmp(&other.scheduler).then_with(by_tunables).then_with(by_files).then_with(by_cgroups)
    }
}

impl PartialOrd for Setting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<Stored> for Setting {
    fn from(Stored { scheduler, tunables, queue_files, cgroup_files }: Stored) -> Self {
        let tunables = tunables.into_iter().map(|(name, text)| (Setting::file_of(&name), text));
        Self { scheduler, writes: queue_files.into_iter().chain(tunables).chain(cgroup_files).collect() }
    }
}

impl From<Setting> for Stored {
    fn from(setting: Setting) -> Self {
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        Self {
            tunables: setting.tunables().map(owned).collect(),
            queue_files: setting.queue_files().map(owned).collect(),
            cgroup_files: setting.cgroup_files().map(owned).collect(),
            scheduler: setting.scheduler,
        }
    }
}
