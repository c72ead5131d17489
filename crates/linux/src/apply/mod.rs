//! Changes of a device's `queue/`, with a journal, so that they can be undone.
//!
//! Used by: crate `hoistway`.
//! Tests: `crates/linux/src/apply/persist.rs`, `crates/linux/src/apply/udevadm.rs`, `crates/linux/tests/apply.rs`.
//!
//! [`Plan::make`] decides what to write. [`Applier::apply`] writes the journal, then the files, reads each back, and rolls
//! everything back if one value was not accepted. If a run is killed halfway, the next run first rolls its changes back.
//! [`Applier::undo`] restores in reverse order, and leaves files alone that another program has changed since.

mod journal;
mod persist;
mod plan;
mod queues;
mod restore;
mod snapshot;
mod temporary;
mod udevadm;
mod write;

use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};

use self::journal::{ConfigFile, Entry, Journal, State};
use self::restore::{claim, restore, restore_config_files};
use self::snapshot::Snapshot;
use crate::root::Root;

pub use persist::{Match, Persist, PersistedFile};
pub use plan::Plan;
pub use queues::{QueuesError, TemporaryQueues};
pub use restore::{Kept, Restored};
pub use temporary::Temporary;
pub use udevadm::Udevadm;
pub use write::{PlanError, Write};

/// Why a change was not applied or undone.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal cannot be used, so nothing else is written.
    #[error("{folder}: the journal cannot be used: {error} (expected to run as root, and a writable folder)")]
    Journal {
        /// Its folder.
        folder: String,
        /// The system's error.
        error: io::Error,
    },
    /// A journal is invalid.
    #[error("{file}: is not a journal: {why} (expected a file that hoistway apply wrote; inspect it, then remove it)")]
    NoJournal {
        /// Its file.
        file: String,
        /// The problem.
        why: String,
    },
    /// Another process is changing settings.
    #[error("{0}: another hoistway is changing devices (expected one at a time: wait until it ends)")]
    Busy(String),
    /// A value was not accepted; everything was rolled back.
    #[error("{file}: {why}; {back}")]
    ValueRejected {
        /// The file.
        file: String,
        /// How the kernel rejected the value.
        why: String,
        /// The result of the roll-back.
        back: String,
    },
}

/// A completed write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The device.
    pub device: String,
    /// The file below `queue/`.
    pub file: String,
    /// The written value.
    pub value: String,
    /// The value that the kernel shows afterwards.
    pub shown: String,
}

/// An applied change, from its journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The device.
    pub device: String,
    /// Files below `queue/`: before, after. Of an incomplete change those that differ from before, with their value now.
    pub files: Vec<(String, String, String)>,
    /// The files that make the change persistent; of an incomplete change those that are written.
    pub persisted: Vec<String>,
    /// Whether all values are still in effect.
    pub is_in_force: bool,
    /// Whether a killed run has left the change incomplete.
    pub is_half_done: bool,
}

/// Whether this process runs setuid or setgid.
#[must_use]
pub fn is_setuid() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    getuid() != geteuid() || getgid() != getegid()
}

/// Applies changes; only one process at a time can.
#[derive(Debug)]
pub struct Applier<'a> {
    /// The root with sysfs.
    system: &'a Root,
    /// The root with `etc/udev/rules.d`.
    etc: &'a Root,
    /// The journal's folder.
    state: Root,
    name: String,
    /// udev, to check rules and to make udevd reload them.
    udevadm: Option<Udevadm>,
    /// The lock file; closing it releases the lock.
    _lock: std::fs::File,
}

/// The lock is asked for this often, with this pause.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

impl<'a> Applier<'a> {
    /// Takes the lock in the journal's folder `state`, which is created if it does not exist. udev rules are checked with `udevadm`, if
    /// there is one.
    ///
    /// # Errors
    /// If another process has the lock, or the folder cannot be used.
    pub fn open(system: &'a Root, etc: &'a Root, state: &Path, udevadm: Option<Udevadm>) -> Result<Self, ApplyError> {
        let name = state.display().to_string();
        let journal_error = |error: io::Error| ApplyError::Journal { folder: name.clone(), error };
        std::fs::create_dir_all(state).map_err(journal_error)?;
        let root = Root::open(state).map_err(journal_error)?;
        if root.read("lock").is_err() {
            root.replace("lock", b"").map_err(journal_error)?;
        }
        let lock = root.open_file("lock", OFlags::RDWR).map_err(journal_error)?;
        // A process that another thread of this one starts just now has the last lock until it executes its program.
        let mut attempts = LOCK_ATTEMPTS;
        while rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            attempts -= 1;
            if attempts == 0 {
                return Err(ApplyError::Busy(name));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Ok(Self { system, etc, state: root, name, udevadm, _lock: lock })
    }

    /// Rolls back incomplete changes of a killed run.
    ///
    /// # Errors
    /// If a journal is damaged.
    pub fn recover(&self) -> Result<Vec<Restored>, ApplyError> {
        let mut all = Vec::new();
        for (file, journal) in self.journals()?.into_iter().rev() {
            if journal.state != State::Applied {
                all.push(self.roll_back(&file, &journal)?);
            }
        }
        Ok(all)
    }

    /// Applies plans, one per device: all of them or none.
    ///
    /// # Errors
    /// If the journal cannot be written, or a value is not accepted: then nothing is changed.
    pub fn apply(&self, plans: &[Plan]) -> Result<Vec<Written>, ApplyError> {
        let mut begun = Vec::new();
        self.apply_to_all(plans, &mut begun).map_err(|error| {
            let (mut kept, mut unfinished) = (Vec::new(), None);
            for (file, journal) in begun.iter().rev() {
                match self.roll_back(file, journal) {
                    Ok(restored) => kept.extend(restored.kept),
                    Err(error) => unfinished = Some(error),
                }
            }
            match (error, unfinished) {
                (ApplyError::ValueRejected { file, why, .. }, None) => {
                    ApplyError::ValueRejected { file, why, back: describe_roll_back(&kept) }
                }
                (error, unfinished) => unfinished.unwrap_or(error),
            }
        })
    }

    /// Applies plans and adds their journals to `begun`, even if one fails. The journals stay marked as incomplete until all
    /// plans are applied, so that all are rolled back after a kill.
    fn apply_to_all(&self, plans: &[Plan], begun: &mut Vec<(String, Journal)>) -> Result<Vec<Written>, ApplyError> {
        let mut written = Vec::new();
        for plan in plans {
            let (file, journal) = (self.next_journal_file()?, self.journal(plan));
            self.save_journal(&file, &journal)?;
            begun.push((file, journal));
            let rejected = |(file, why)| ApplyError::ValueRejected { file, why, back: String::new() };
            written.extend(self.write_all(plan).map_err(rejected)?);
            self.persist(plan).map_err(rejected)?;
        }
        for (file, journal) in begun {
            journal.after = Snapshot::read(self.system, &journal.device);
            journal.state = State::Applied;
            self.save_journal(file, journal)?;
        }
        Ok(written)
    }

    /// The journal of a plan that is to be applied.
    fn journal(&self, plan: &Plan) -> Journal {
        let entries = plan.writes.iter().map(|write| Entry { file: write.file.clone(), value: write.value.clone() });
        let config_files = plan.persisted.iter().map(|file| ConfigFile {
            path: file.path.clone(),
            content: file.content.clone(),
            before: self.etc.read(&file.path).ok(),
            makes_folder: folder_of(&file.path).is_some_and(|folder| !self.etc.has_folder(folder)),
        });
        Journal {
            format: journal::FORMAT.to_owned(),
            state: State::HalfDone,
            device: plan.device.clone(),
            entries: entries.collect(),
            before: Snapshot::read(self.system, &plan.device),
            after: Snapshot::default(),
            config_files: config_files.collect(),
        }
    }

    /// Undoes the changes of this device, or of all devices (`None`), newest change first.
    ///
    /// # Errors
    /// If a journal is damaged.
    pub fn undo(&self, device: Option<&str>) -> Result<Vec<Restored>, ApplyError> {
        let mut all = Vec::new();
        for (file, journal) in self.journals()?.into_iter().rev() {
            if device.is_none_or(|device| device == journal.device) {
                all.push(self.roll_back(&file, &journal)?);
            }
        }
        Ok(all)
    }

    /// The applied changes, in the order of their application.
    ///
    /// # Errors
    /// If a journal is damaged.
    pub fn status(&self) -> Result<Vec<Applied>, ApplyError> {
        let applied = |(_, journal): (String, Journal)| {
            let now = Snapshot::read(self.system, &journal.device);
            if journal.state == State::HalfDone {
                return self.left_incomplete(journal, &now);
            }
            let value = |snapshot: &Snapshot, file: &str| snapshot.value(file).unwrap_or("-").to_owned();
            let files: Vec<(String, String, String)> = journal
                .entries
                .iter()
                .map(|entry| {
                    (entry.file.clone(), value(&journal.before, &entry.file), value(&journal.after, &entry.file))
                })
                .collect();
            let is_unchanged = |config: &ConfigFile| self.etc.read(&config.path).is_ok_and(|now| now == config.content);
            let is_persisted = journal.config_files.iter().all(is_unchanged);
            let is_in_force = is_persisted && files.iter().all(|(file, _, after)| now.value(file) == Some(after));
            Applied {
                device: journal.device,
                files,
                persisted: journal.config_files.iter().map(|config| format!("/{}", config.path)).collect(),
                is_in_force,
                is_half_done: false,
            }
        };
        Ok(self.journals()?.into_iter().map(applied).collect())
    }

    /// What a killed run has left: the files that differ from before it, and the files that it wrote.
    fn left_incomplete(&self, journal: Journal, now: &Snapshot) -> Applied {
        let Journal { device, entries, before, config_files, .. } = journal;
        let wanted = entries.into_iter().map(|entry| entry.file);
        let known = before.files.iter().map(|(file, _)| file.clone());
        let mut names: Vec<String> = Vec::new();
        for file in ["scheduler".to_owned()].into_iter().chain(known).chain(wanted) {
            // Tunables of the scheduler before are gone while another one is active, and return with it.
            let differs = now.value(&file).is_some_and(|now| before.value(&file) != Some(now));
            if differs && !names.contains(&file) {
                names.push(file);
            }
        }
        let value = |snapshot: &Snapshot, file: &str| snapshot.value(file).unwrap_or("-").to_owned();
        let files = names.into_iter().map(|file| (file.clone(), value(&before, &file), value(now, &file))).collect();
        let is_written = |config: &ConfigFile| {
            let now = self.etc.read(&config.path).ok();
            now != config.before && now.as_ref() == Some(&config.content)
        };
        let persisted = config_files.iter().filter(|config| is_written(config));
        let persisted = persisted.map(|config| format!("/{}", config.path)).collect();
        Applied { device, files, persisted, is_in_force: false, is_half_done: true }
    }

    /// Writes the files of the queue. An error names the file and the reason.
    fn write_all(&self, plan: &Plan) -> Result<Vec<Written>, (String, String)> {
        let mut written = Vec::new();
        for write in &plan.writes {
            let path = format!("sys/block/{}/queue/{}", plan.device, write.file);
            let rejected = |why: String| (format!("/{path}"), why);
            self.system
                .write(&path, &write.value)
                .map_err(|error| rejected(format!("the kernel refuses \"{}\": {error}", write.value)))?;
            let shown = snapshot::shown(self.system, &plan.device, &write.file)
                .ok_or_else(|| rejected("cannot be read back".to_owned()))?;
            // If the kernel limited a value to its range, the file differs from before; if it ignored the value, the file
            // is unchanged.
            let is_accepted = write.is_shown_as(&shown) || (write.file != "scheduler" && shown != write.before);
            if !is_accepted {
                return Err(rejected(format!("\"{}\" had no effect; the value is still \"{shown}\"", write.value)));
            }
            let (file, value) = (write.file.clone(), write.value.clone());
            written.push(Written { device: plan.device.clone(), file, value, shown });
        }
        Ok(written)
    }

    /// Writes the files that make the change persistent. An error names the file and the reason.
    fn persist(&self, plan: &Plan) -> Result<(), (String, String)> {
        let udevadm = self.udevadm.as_ref().filter(|_| plan.persisted.iter().any(|file| is_rule(&file.path)));
        for file in &plan.persisted {
            let rejected = |why: String| (format!("/{}", file.path), why);
            if let Some(udevadm) = udevadm {
                udevadm.verify(&file.content).map_err(rejected)?;
            }
            let write_error = |error: io::Error| rejected(format!("cannot be written: {error}"));
            if let Some(folder) = folder_of(&file.path).filter(|folder| !self.etc.has_folder(folder)) {
                self.etc.make_folder(folder).map_err(write_error)?;
            }
            self.etc.replace(&file.path, file.content.as_bytes()).map_err(write_error)?;
        }
        let Some(udevadm) = udevadm else { return Ok(()) };
        udevadm.reload();
        let path = |file: &str| format!("/sys/block/{}/queue/{file}", plan.device);
        let shown = |file: &str| snapshot::shown(self.system, &plan.device, file);
        let before: Vec<Option<String>> = plan.writes.iter().map(|write| shown(&write.file)).collect();
        udevadm.test(&plan.device).map_err(|why| (path(""), why))?;
        for (write, before) in plan.writes.iter().zip(before) {
            let now = shown(&write.file);
            if now != before {
                // The roll-back leaves values alone that others have set, so undo udev's writes first.
                let _ = self.write_all(plan);
                let now = now.unwrap_or_else(|| "nothing".to_owned());
                let why =
                    format!("udev's rules set it to {now} (expected no later rule that sets it: see hoistway host)");
                return Err((path(&write.file), why));
            }
        }
        Ok(())
    }

    /// Restores the values of a journal that are still in effect, and removes the journal. If killed meanwhile, it leaves a
    /// journal from which the next run continues.
    fn roll_back(&self, file: &str, journal: &Journal) -> Result<Restored, ApplyError> {
        let (ours, kept) = claim(self.system, self.etc, journal);
        self.save_journal(file, &ours)?;
        let was_half_done = journal.state == State::HalfDone;
        let mut restored = Restored { device: journal.device.clone(), was_half_done, files: Vec::new(), kept };
        restore_config_files(self.etc, &ours, &mut restored);
        // Until it reloads, udevd would apply a removed rule to the next event.
        if let Some(udevadm) =
            self.udevadm.as_ref().filter(|_| ours.config_files.iter().any(|config| is_rule(&config.path)))
        {
            udevadm.reload();
        }
        restore(self.system, &ours, &mut restored);
        self.state.remove(file).map_err(|error| self.journal_error(error))?;
        Ok(restored)
    }

    fn journal_error(&self, error: io::Error) -> ApplyError {
        ApplyError::Journal { folder: self.name.clone(), error }
    }

    fn save_journal(&self, file: &str, journal: &Journal) -> Result<(), ApplyError> {
        let text = journal.to_json();
        self.state.replace(file, text.as_bytes()).map_err(|error| self.journal_error(error))
    }

    /// The journals, oldest first.
    fn journals(&self) -> Result<Vec<(String, Journal)>, ApplyError> {
        let names = self.state.names("").map_err(|error| self.journal_error(error))?;
        let mut journals = Vec::new();
        for name in names.into_iter().filter(|name| name.ends_with(".json")) {
            let text = self.state.read(&name).map_err(|error| self.journal_error(error))?;
            let damaged = |why| ApplyError::NoJournal { file: format!("{}/{name}", self.name), why };
            let journal = Journal::from_json(&text).map_err(damaged)?;
            journals.push((name, journal));
        }
        Ok(journals)
    }

    fn next_journal_file(&self) -> Result<String, ApplyError> {
        let names = self.state.names("").map_err(|error| self.journal_error(error))?;
        let numbers = names.iter().filter_map(|name| name.strip_suffix(".json")?.parse::<u64>().ok());
        Ok(format!("{:08}.json", numbers.max().unwrap_or(0) + 1))
    }
}

/// Describes a roll-back that could not restore these files.
fn describe_roll_back(kept: &[Kept]) -> String {
    match kept {
        [] => "everything was rolled back".to_owned(),
        [first, ..] => format!("rolled back, except {} (check its value)", first.file),
    }
}

/// Whether this is a file of udev rules.
fn is_rule(path: &str) -> bool {
    path.ends_with(".rules")
}

/// The folder of a path.
fn folder_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}
