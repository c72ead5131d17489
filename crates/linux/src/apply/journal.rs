//! What was done, and how it was before.

use serde::{Deserialize, Deserializer, Serialize};

use super::snapshot::Snapshot;

/// The journal's name, with its version.
pub(super) const FORMAT: &str = "hoistway-journal/1";

/// How far it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Files are being written, or restored: any of them may have been.
    HalfDone,
    /// All were written and read back.
    Applied,
}

/// A file of `queue/` that is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) value: String,
}

/// A file that is made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    /// Without a leading slash.
    pub(super) path: String,
    pub(super) content: String,
    /// What it held before, if it was there.
    pub(super) before: Option<String>,
    /// Whether its folder is made, too.
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
    /// Empty until all is written.
    pub(super) after: Snapshot,
    #[serde(deserialize_with = "all_made")]
    pub(super) made: Vec<Made>,
}

/// A list; journals of earlier versions have one file, or null.
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
        // Strings and lists alone: there is nothing that JSON does not know.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads one back; what is wrong with it otherwise.
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
