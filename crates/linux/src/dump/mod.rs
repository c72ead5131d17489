//! A dump: the files that describe a host, in an archive, so that it can be looked at elsewhere.

mod archive;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::host::{Host, HostError, PRIORITIES_FILE, TaskPriority, kernel_parameters, live_priorities};
use crate::root::{Found, Root};
use crate::secrets;

/// The entry that makes an archive a dump, and its text.
const MARK: (&str, &str) = ("hoistway/dump", "hoistway-dump/1\n");

/// Why a dump cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It cannot be read.
    #[error("{file}: {error} (expected the folder or the archive of a dump)")]
    Unopened {
        /// The file.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// It is something else.
    #[error("{file}: is no dump of a host (expected a folder, or an archive that `hoistway host --dump` wrote)")]
    NoDump {
        /// The file.
        file: String,
    },
    /// It ends too early, or bytes of it have changed.
    #[error("{file}: is cut off or damaged: {why} (expected a whole archive that `hoistway host --dump` wrote)")]
    Damaged {
        /// The file.
        file: String,
        /// What was found.
        why: String,
    },
    /// One of its entries would be written elsewhere, or leads there.
    #[error("{file}: the entry \"{entry}\" {why} (expected paths and links within the dump)")]
    Unsafe {
        /// The file.
        file: String,
        /// The entry's name.
        entry: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A system to look at: the live one, a folder with files of one, or a dump that was unpacked for the time being.
#[derive(Debug)]
pub struct System {
    /// Its files.
    pub root: Root,
    /// How errors name it.
    pub name: String,
    /// Whether it is the live system.
    is_live: bool,
    /// Where an archive was unpacked.
    _unpacked: Option<TempDir>,
}

impl System {
    /// The live system, or the one that is in a folder or an archive; `remembers` for one that is to be [dumped](Self::dump).
    ///
    /// # Errors
    /// It is neither, it is damaged, or an entry leads out of it.
    pub fn open(file: Option<&Path>, remembers: bool) -> Result<System, DumpError> {
        let open = if remembers { Root::open_and_remember } else { Root::open };
        let (place, name) = match file {
            None => (Path::new("/"), "/".to_owned()),
            Some(file) => (file, file.display().to_string()),
        };
        let unopened = |error| DumpError::Unopened { file: name.clone(), error };
        let is_folder = std::fs::metadata(place).map_err(unopened)?.is_dir();
        let unpacked = if is_folder { None } else { Some(archive::unpack(place, &name)?) };
        let root = open(unpacked.as_ref().map_or(place, TempDir::path)).map_err(unopened)?;
        Ok(System { root, name, is_live: file.is_none(), _unpacked: unpacked })
    }

    /// The host that this is.
    ///
    /// # Errors
    /// There is no sysfs or procfs.
    pub fn host(&self) -> Result<Host, HostError> {
        Host::read(&self.root, &self.name, self.is_live.then(live_priorities))
    }

    /// An archive of the files that `host` was read from, and how many they are. Serial numbers are in it only if that is wanted, the
    /// kernel's command line only as far as it concerns block I/O.
    ///
    /// # Errors
    /// A path cannot be in an archive.
    pub fn dump(&self, host: &Host, with_serials: bool) -> io::Result<(Vec<u8>, usize)> {
        let mut found = self.root.found();
        found.retain(|path, found| !matches!(found, Found::Link(target) if archive::leads_out(path, target)));
        for (path, found) in &mut found {
            if let Found::File(bytes) = found {
                let text = String::from_utf8_lossy(bytes);
                if let Some(text) = fit_for_others(path, &text, with_serials) {
                    *bytes = text.into_bytes();
                }
            }
        }
        let priorities: String = host.priorities.iter().map(TaskPriority::line).collect();
        found.insert(PRIORITIES_FILE.to_owned(), Found::File(priorities.into_bytes()));
        let files = found.values().filter(|found| matches!(found, Found::File(_))).count();
        Ok((archive::pack(&found)?, files))
    }
}

/// What a dump has of a file, if it is not all of it.
fn fit_for_others(path: &str, text: &str, with_serials: bool) -> Option<String> {
    match path {
        "proc/cmdline" => return Some(kernel_parameters(text).collect::<Vec<_>>().join(" ") + "\n"),
        _ if path.ends_with("/mountinfo") => return Some(mounts(text)),
        _ if with_serials => return None,
        _ => {}
    }
    if path.starts_with("run/udev/data/") {
        Some(secrets::udev_record(text))
    } else if path.ends_with(".rules") {
        Some(secrets::udev_rules(text))
    } else if path.ends_with("/dm/uuid") {
        Some(secrets::mapped_uuid(text))
    } else {
        None
    }
}

/// Mounts without the options and sources of those that are not cgroups: they name servers, users and folders.
fn mounts(text: &str) -> String {
    let line = |line: &str| match line.split_once(" - ") {
        Some((first, last)) if !last.starts_with("cgroup") => {
            format!("{first} - {} - -\n", last.split(' ').next().unwrap_or_default())
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

type Entries = BTreeMap<String, Found>;
