//! The journal of a change: the values before and after.

use serde::{Deserialize, Deserializer, Serialize};

use super::snapshot::Snapshot;

/// The name and version of the journal format.
pub(super) const FORMAT: &str = "hoistway-journal/1";

/// The progress of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Files are being written or restored: any of them may have been.
    HalfDone,
    /// All were written and read back.
    Applied,
}

/// A file of `queue/` to write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) value: String,
}

/// A file to create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    /// Path without a leading slash.
    pub(super) path: String,
    pub(super) content: String,
    /// Its content before, if it existed.
    pub(super) before: Option<String>,
    /// Whether its folder is created, too.
    #[serde(default)]
    pub(super) makes_folder: bool,
}

/// A change of one device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    pub(super) format: String,
    pub(super) state: State,
    pub(super) device: String,
    pub(super) entries: Vec<Entry>,
    pub(super) before: Snapshot,
    /// Empty until everything is written.
    pub(super) after: Snapshot,
    #[serde(deserialize_with = "all_made")]
    pub(super) made: Vec<Made>,
}

/// A list; journals of earlier versions have a single file, or null.
fn all_made<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Made>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        All(Vec<Made>),
        One(Option<Made>),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::All(all) => all,
        Written::One(one) => one.into_iter().collect(),
    })
}

impl Journal {
    pub(super) fn to_json(&self) -> String {
        // Cannot fail: the journal contains only strings and lists.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Parses a journal; an error says what is wrong with it.
    pub(super) fn from_json(text: &str) -> Result<Self, String> {
        let journal: Journal = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if journal.format != FORMAT {
            return Err(format!("its format is \"{}\"", journal.format));
        }
        let is_name = |text: &str| !text.is_empty() && !text.starts_with(['/', '.']) && !text.contains("..");
        let files =
            journal.entries.iter().map(|entry| &entry.file).chain(journal.before.files.iter().map(|(file, _)| file));
        let mut paths = files.chain(journal.made.iter().map(|made| &made.path)).chain([&journal.device]);
        if let Some(path) = paths.find(|text| !is_name(text)) {
            return Err(format!("the path \"{path}\" leads elsewhere"));
        }
        drop(paths);
        Ok(journal)
    }
}
