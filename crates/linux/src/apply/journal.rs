//! The journal of a change: the values before and after.

use serde::{Deserialize, Deserializer, Serialize};

use super::snapshot::Snapshot;

/// The name and version of the journal format.
pub(super) const FORMAT: &str = "hoistway-journal/1";

/// How far a change has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Files are being written or restored: any subset may be done.
    HalfDone,
    /// All files were written and read back.
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
pub(super) struct ConfigFile {
    /// Path without a leading slash.
    pub(super) path: String,
    pub(super) content: String,
    /// The file's previous content; `None` if it did not exist.
    pub(super) before: Option<String>,
    /// Whether the file's folder is also created.
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
    #[serde(rename = "made", deserialize_with = "read_config_files")]
    pub(super) config_files: Vec<ConfigFile>,
}

/// Reads a list of files; journals of earlier versions have a single file, or null.
fn read_config_files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ConfigFile>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Many(Vec<ConfigFile>),
        One(Option<ConfigFile>),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Many(all) => all,
        Written::One(file) => file.into_iter().collect(),
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
            return Err(format!("its format is \"{}\" (expected \"{FORMAT}\")", journal.format));
        }
        let is_name = |text: &str| !text.is_empty() && !text.starts_with(['/', '.']) && !text.contains("..");
        let files =
            journal.entries.iter().map(|entry| &entry.file).chain(journal.before.files.iter().map(|(file, _)| file));
        let mut paths = files.chain(journal.config_files.iter().map(|config| &config.path)).chain([&journal.device]);
        if let Some(path) = paths.find(|text| !is_name(text)) {
            return Err(format!("the path \"{path}\" is not relative to its folder"));
        }
        drop(paths);
        Ok(journal)
    }
}
