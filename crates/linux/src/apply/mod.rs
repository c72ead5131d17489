//! Changes of a device's `queue/`, with a journal, so that they can be undone.
//!
//! [`Plan::make`] says what will be written. [`Applier::apply`] writes the journal, then the files, reads each back, and rolls everything
//! back if one did not take. What a killed run has left half-done, the next one rolls back first. [`Applier::undo`] restores in reverse order
//! and leaves what somebody else has changed since.

mod journal;
mod plan;
mod restore;
mod snapshot;
mod temporary;

use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};

use self::journal::{Entry, Journal, Made, State};
use self::restore::{claim, restore};
use self::snapshot::Snapshot;
use crate::root::Root;

pub use plan::{Persist, Plan, PlanError, RuleFile, Write};
pub use restore::{Kept, Restored};
pub use temporary::Temporary;

/// Why something was not applied or undone.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal cannot be kept, so nothing is written.
    #[error("{folder}: the journal cannot be kept: {error} (expected a folder that may be written to)")]
    Journal {
        /// Its folder.
        folder: String,
        /// What the system says.
        error: io::Error,
    },
    /// A journal says nothing.
    #[error("{file}: is no journal: {why} (expected a file that hoistway apply wrote; look at it, and remove it)")]
    NoJournal {
        /// Its file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// Another process changes settings.
    #[error("{0}: another hoistway sets devices (expected one at a time: wait until it has ended)")]
    Busy(String),
    /// A value did not take; everything was rolled back.
    #[error("{file}: {why}; {back}")]
    NotTaken {
        /// The file.
        file: String,
        /// What the kernel did.
        why: String,
        /// How the roll-back ended.
        back: String,
    },
}

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The device.
    pub device: String,
    /// The file below `queue/`.
    pub file: String,
    /// What was written.
    pub value: String,
    /// What the kernel made of it.
    pub shown: String,
}

/// What is applied, as its journal says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The device.
    pub device: String,
    /// Files below `queue/`: before, after.
    pub files: Vec<(String, String, String)>,
    /// The rule that makes it last.
    pub rule: Option<String>,
    /// Whether all of it is still so.
    pub is_in_force: bool,
    /// Whether a run that was killed has left it so.
    pub is_half_done: bool,
}

/// Whether this process has got the rights of another user than the one that started it.
#[must_use]
pub fn is_setuid() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    getuid() != geteuid() || getgid() != getegid()
}

/// Writes changes, one process at a time.
#[derive(Debug)]
pub struct Applier<'a> {
    /// Where sysfs is.
    system: &'a Root,
    /// Where `etc/udev/rules.d` is.
    etc: &'a Root,
    /// The journal's folder.
    state: Root,
    name: String,
    /// Holds the lock until it is closed.
    _lock: std::fs::File,
}

impl<'a> Applier<'a> {
    /// Takes the lock in the journal's folder `state`, which is made if it is not there.
    ///
    /// # Errors
    /// Another process has it, or the folder cannot be used.
    pub fn open(system: &'a Root, etc: &'a Root, state: &Path) -> Result<Self, ApplyError> {
        let name = state.display().to_string();
        let failed = |error: io::Error| ApplyError::Journal { folder: name.clone(), error };
        std::fs::create_dir_all(state).map_err(failed)?;
        let root = Root::open(state).map_err(failed)?;
        if root.read("lock").is_err() {
            root.replace("lock", b"").map_err(failed)?;
        }
        let lock = root.open_file("lock", OFlags::RDWR).map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| ApplyError::Busy(name.clone()))?;
        Ok(Self { system, etc, state: root, name, _lock: lock })
    }

    /// Rolls back what a killed run has left half-done.
    ///
    /// # Errors
    /// A journal is damaged.
    pub fn recover(&self) -> Result<Vec<Restored>, ApplyError> {
        let mut all = Vec::new();
        for (file, journal) in self.journals()?.into_iter().rev() {
            if journal.state != State::Applied {
                all.push(self.take_back(&file, &journal)?);
            }
        }
        Ok(all)
    }

    /// Writes what is planned.
    ///
    /// # Errors
    /// The journal cannot be kept, or a value did not take: then nothing is changed.
    pub fn apply(&self, plan: &Plan) -> Result<Vec<Written>, ApplyError> {
        let before = Snapshot::of(self.system, &plan.device);
        let entries = plan.writes.iter().map(|write| Entry { file: write.file.clone(), value: write.value.clone() });
        let made = plan.rule.as_ref().map(|rule| Made {
            path: rule.path.clone(),
            content: rule.content.clone(),
            before: self.etc.read(&rule.path).ok(),
        });
        let mut journal = Journal {
            format: journal::FORMAT.to_owned(),
            state: State::HalfDone,
            device: plan.device.clone(),
            entries: entries.collect(),
            before,
            after: Snapshot::default(),
            made,
        };
        let file = self.next_file()?;
        self.keep(&file, &journal)?;
        match self.write_all(plan) {
            Ok(written) => {
                journal.after = Snapshot::of(self.system, &plan.device);
                journal.state = State::Applied;
                self.keep(&file, &journal)?;
                Ok(written)
            }
            Err((file_of_queue, why)) => {
                let kept = self.take_back(&file, &journal)?.kept;
                let back = match kept.as_slice() {
                    [] => "everything was rolled back".to_owned(),
                    kept => format!("rolled back, but for {} (look at it)", kept[0].file),
                };
                Err(ApplyError::NotTaken { file: file_of_queue, why, back })
            }
        }
    }

    /// Undoes what was applied to this device, or to all, the last change first.
    ///
    /// # Errors
    /// A journal is damaged.
    pub fn undo(&self, device: Option<&str>) -> Result<Vec<Restored>, ApplyError> {
        let mut all = Vec::new();
        for (file, journal) in self.journals()?.into_iter().rev() {
            if device.is_none_or(|device| device == journal.device) {
                all.push(self.take_back(&file, &journal)?);
            }
        }
        Ok(all)
    }

    /// What is applied, in the order in which it was.
    ///
    /// # Errors
    /// A journal is damaged.
    pub fn status(&self) -> Result<Vec<Applied>, ApplyError> {
        let applied = |(_, journal): (String, Journal)| {
            let now = Snapshot::of(self.system, &journal.device);
            let is_half_done = journal.state == State::HalfDone;
            let value = |snapshot: &Snapshot, file: &str| snapshot.value(file).unwrap_or("-").to_owned();
            let files: Vec<(String, String, String)> = journal
                .entries
                .iter()
                .map(|entry| {
                    (entry.file.clone(), value(&journal.before, &entry.file), value(&journal.after, &entry.file))
                })
                .collect();
            let is_rule_there =
                journal.made.as_ref().is_none_or(|made| self.etc.read(&made.path).ok().as_ref() == Some(&made.content));
            let is_in_force = is_rule_there && files.iter().all(|(file, _, after)| now.value(file) == Some(after));
            Applied {
                device: journal.device,
                files,
                rule: journal.made.map(|made| format!("/{}", made.path)),
                is_in_force,
                is_half_done,
            }
        };
        Ok(self.journals()?.into_iter().map(applied).collect())
    }

    /// Writes files and rule; the file at fault and why, if one did not take.
    fn write_all(&self, plan: &Plan) -> Result<Vec<Written>, (String, String)> {
        let mut written = Vec::new();
        for write in &plan.writes {
            let path = format!("sys/block/{}/queue/{}", plan.device, write.file);
            let failed = |why: String| (format!("/{path}"), why);
            self.system
                .write(&path, &write.value)
                .map_err(|error| failed(format!("the kernel refuses \"{}\": {error}", write.value)))?;
            let shown = snapshot::shown(self.system, &plan.device, &write.file)
                .ok_or_else(|| failed("it cannot be read back".to_owned()))?;
            // A value that the kernel has cut to its range is another one than before; one that it has dropped is the same.
            let is_taken = write.is_shown_as(&shown) || (write.file != "scheduler" && shown != write.before);
            if !is_taken {
                return Err(failed(format!("\"{}\" did not take, it shows \"{shown}\"", write.value)));
            }
            let (file, value) = (write.file.clone(), write.value.clone());
            written.push(Written { device: plan.device.clone(), file, value, shown });
        }
        if let Some(rule) = &plan.rule {
            self.etc
                .replace(&rule.path, rule.content.as_bytes())
                .map_err(|error| (format!("/{}", rule.path), format!("cannot be written: {error}")))?;
        }
        Ok(written)
    }

    /// Restores what a journal says and is still so, and removes it. A run that is killed meanwhile leaves a journal that the next finishes.
    fn take_back(&self, file: &str, journal: &Journal) -> Result<Restored, ApplyError> {
        let (ours, kept) = claim(self.system, self.etc, journal);
        self.keep(file, &ours)?;
        let was_half_done = journal.state == State::HalfDone;
        let mut restored = Restored { device: journal.device.clone(), was_half_done, files: Vec::new(), kept };
        restore(self.system, self.etc, &ours, &mut restored);
        self.state.remove(file).map_err(|error| self.failed(error))?;
        Ok(restored)
    }

    fn failed(&self, error: io::Error) -> ApplyError {
        ApplyError::Journal { folder: self.name.clone(), error }
    }

    fn keep(&self, file: &str, journal: &Journal) -> Result<(), ApplyError> {
        let text = journal.to_json();
        self.state.replace(file, text.as_bytes()).map_err(|error| self.failed(error))
    }

    /// The journals, the oldest first.
    fn journals(&self) -> Result<Vec<(String, Journal)>, ApplyError> {
        let names = self.state.names("").map_err(|error| self.failed(error))?;
        let mut journals = Vec::new();
        for name in names.into_iter().filter(|name| name.ends_with(".json")) {
            let text = self.state.read(&name).map_err(|error| self.failed(error))?;
            let damaged = |why| ApplyError::NoJournal { file: format!("{}/{name}", self.name), why };
            let journal = Journal::from_json(&text).map_err(damaged)?;
            journals.push((name, journal));
        }
        Ok(journals)
    }

    fn next_file(&self) -> Result<String, ApplyError> {
        let names = self.state.names("").map_err(|error| self.failed(error))?;
        let numbers = names.iter().filter_map(|name| name.strip_suffix(".json")?.parse::<u64>().ok());
        Ok(format!("{:08}.json", numbers.max().unwrap_or(0) + 1))
    }
}
