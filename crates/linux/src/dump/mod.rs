//! Dumps: archives of the files that describe a host, to examine it on another machine.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/linux/tests/host.rs`, `crates/linux/tests/apply.rs`.

mod archive;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::host::{Host, HostError, PRIORITIES_FILE, TaskPriority, kernel_parameters, live_priorities};
use crate::root::{Found, Root};
use crate::secrets;

/// The entry that marks an archive as a dump, with its text.
const MARK: (&str, &str) = ("hoistway/dump", "hoistway-dump/1\n");

/// Why a dump cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It cannot be read.
    #[error("{file}: {error} (expected the folder or the archive of a dump)")]
    Unopened {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// It is not a dump.
    #[error(
        "{file}: is not a dump of a host (expected a folder, or an archive that `hoistway host --dump` wrote, or a tar with sys/block and proc)"
    )]
    NoDump {
        /// The file.
        file: String,
    },
    /// It is truncated or damaged.
    #[error("{file}: is truncated or damaged: {why} (expected a complete archive that `hoistway host --dump` wrote)")]
    Damaged {
        /// The file.
        file: String,
        /// What was found.
        why: String,
    },
    /// An entry is outside the folder, or is a link that points outside.
    #[error("{file}: the entry \"{entry}\" {why} (expected paths and links within the dump)")]
    Unsafe {
        /// The file.
        file: String,
        /// The entry's name.
        entry: String,
        /// The problem.
        why: String,
    },
}

/// A system to examine: the live one, a folder with files of a system, or an archive of them.
#[derive(Debug)]
pub struct System {
    /// Its files.
    pub root: Root,
    /// Its name in errors.
    pub name: String,
    /// Whether it is the live system.
    is_live: bool,
}

impl System {
    /// Opens a system from a folder or an archive, or the live one (`None`). [`dump`](Self::dump) needs `remembers`.
    ///
    /// # Errors
    /// If `file` is neither, is damaged, or has an entry that points outside.
    pub fn open(file: Option<&Path>, remembers: bool) -> Result<System, DumpError> {
        let open = if remembers { Root::open_and_remember } else { Root::open };
        let (path, name) = match file {
            None => (Path::new("/"), "/".to_owned()),
            Some(file) => (file, file.display().to_string()),
        };
        let open_error = |error| DumpError::Unopened { file: name.clone(), error };
        let is_folder = std::fs::metadata(path).map_err(open_error)?.is_dir();
        let root = if is_folder {
            open(path).map_err(open_error)?
        } else {
            Root::archived(archive::entries(path, &name)?, remembers)
        };
        Ok(System { root, name, is_live: file.is_none() })
    }

    /// Reads the host.
    ///
    /// # Errors
    /// If there is no sysfs or procfs.
    pub fn host(&self) -> Result<Host, HostError> {
        Host::read(&self.root, &self.name, self.is_live.then(live_priorities))
    }

    /// Makes an archive of the files that `host` was read from. Also returns the number of files. Serial numbers are
    /// included only `with_serials`; the kernel's command line is reduced to parameters of block I/O.
    ///
    /// # Errors
    /// If a path cannot be stored in an archive.
    pub fn dump(&self, host: &Host, with_serials: bool) -> io::Result<(Vec<u8>, usize)> {
        let mut found = self.root.found();
        found.retain(|path, found| !matches!(found, Found::Link(target) if archive::escapes_root(path, target)));
        for (path, found) in &mut found {
            if let Found::File(bytes) = found {
                let text = String::from_utf8_lossy(bytes);
                if let Some(text) = redacted_content(path, &text, with_serials) {
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

/// The content of a file in a dump without private parts; `None` if it is stored unchanged.
fn redacted_content(path: &str, text: &str, with_serials: bool) -> Option<String> {
    match path {
        "proc/cmdline" => return Some(kernel_parameters(text).collect::<Vec<_>>().join(" ") + "\n"),
        _ if path.ends_with("/mountinfo") => return Some(redacted_mounts(text)),
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

/// Removes options and sources of file systems other than cgroups from a list of mounts, since they name servers, users and
/// folders.
fn redacted_mounts(text: &str) -> String {
    let line = |line: &str| match line.split_once(" - ") {
        Some((first, last)) if !last.starts_with("cgroup") => {
            format!("{first} - {} - -\n", last.split(' ').next().unwrap_or_default())
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

type Entries = BTreeMap<String, Found>;
