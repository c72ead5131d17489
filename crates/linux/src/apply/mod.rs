//! Changes of a device's `queue/`, with a journal, so that they can be undone.
//!
//! [`Plan::make`] decides what to write. [`Applier::apply`] writes the journal, then the files, reads each back, and rolls everything back
//! if one value was not accepted. If a run is killed halfway, the next run first rolls its changes back. [`Applier::undo`] restores in
//! reverse order, and leaves files that another program has changed since.

mod journal;
mod persist;
mod plan;
mod restore;
mod snapshot;
mod temporary;
mod udevadm;
mod write;

use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};

use self::journal::{Entry, Journal, Made, State};
use self::restore::{claim, remake, restore};
use self::snapshot::Snapshot;
use crate::root::Root;

pub use persist::{Match, Persist, PersistedFile};
pub use plan::Plan;
pub use restore::{Kept, Restored};
pub use temporary::Temporary;
pub use udevadm::Udevadm;
pub use write::{PlanError, Write};

/// Why something was not applied or undone.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The journal cannot be written, so nothing else is written.
    #[error("{folder}: the journal cannot be kept: {error} (expected root, and a folder that may be written to)")]
    Journal {
        /// Its folder.
        folder: String,
        /// The system's error.
        error: io::Error,
    },
    /// A journal is invalid.
    #[error("{file}: is no journal: {why} (expected a file that hoistway apply wrote; look at it, and remove it)")]
    NoJournal {
        /// Its file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// Another process is changing settings.
    #[error("{0}: another hoistway sets devices (expected one at a time: wait until it has ended)")]
    Busy(String),
    /// A value was not accepted; everything was rolled back.
    #[error("{file}: {why}; {back}")]
    ValueRejected {
        /// The file.
        file: String,
        /// The kernel's reaction.
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
    /// Files below `queue/`: before, after.
    pub files: Vec<(String, String, String)>,
    /// The files that make it persistent.
    pub persisted: Vec<String>,
    /// Whether all values are still in effect.
    pub is_in_force: bool,
    /// Whether a killed run has left it incomplete.
    pub is_half_done: bool,
}

/// Whether this process runs with the rights of another user than the one that started it.
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
    /// udev, which checks rules and is made to read them again.
    udevadm: Option<Udevadm>,
    /// The lock file; closing it releases the lock.
    _lock: std::fs::File,
}

impl<'a> Applier<'a> {
    /// Takes the lock in the journal's folder `state`, which is created if it does not exist. udev rules are checked with `udevadm`, if
    /// there is one.
    ///
    /// # Errors
    /// If another process has the lock, or the folder cannot be used.
    pub fn open(system: &'a Root, etc: &'a Root, state: &Path, udevadm: Option<Udevadm>) -> Result<Self, ApplyError> {
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
                all.push(self.take_back(&file, &journal)?);
            }
        }
        Ok(all)
    }

    /// Applies plans, each of another device: all of them or none.
    ///
    /// # Errors
    /// If the journal cannot be written, or a value is not accepted: then nothing is changed.
    pub fn apply(&self, plans: &[Plan]) -> Result<Vec<Written>, ApplyError> {
        let mut begun = Vec::new();
        self.apply_to_all(plans, &mut begun).map_err(|error| {
            let (mut kept, mut unfinished) = (Vec::new(), None);
            for (file, journal) in begun.iter().rev() {
                match self.take_back(file, journal) {
                    Ok(restored) => kept.extend(restored.kept),
                    Err(error) => unfinished = Some(error),
                }
            }
            match (error, unfinished) {
                (ApplyError::ValueRejected { file, why, .. }, None) => {
                    ApplyError::ValueRejected { file, why, back: back(&kept) }
                }
                (error, unfinished) => unfinished.unwrap_or(error),
            }
        })
    }

    /// Applies plans and adds their journals to `begun`, also if one fails. The journals are those of an incomplete change until all
    /// plans are applied, so that after a kill all are rolled back.
    fn apply_to_all(&self, plans: &[Plan], begun: &mut Vec<(String, Journal)>) -> Result<Vec<Written>, ApplyError> {
        let mut written = Vec::new();
        for plan in plans {
            let (file, journal) = (self.next_file()?, self.journal(plan));
            self.keep(&file, &journal)?;
            begun.push((file, journal));
            let failed = |(file, why)| ApplyError::ValueRejected { file, why, back: String::new() };
            written.extend(self.write_all(plan).map_err(failed)?);
            self.persist(plan).map_err(failed)?;
        }
        for (file, journal) in begun {
            journal.after = Snapshot::of(self.system, &journal.device);
            journal.state = State::Applied;
            self.keep(file, journal)?;
        }
        Ok(written)
    }

    /// The journal of a plan that is to be applied.
    fn journal(&self, plan: &Plan) -> Journal {
        let entries = plan.writes.iter().map(|write| Entry { file: write.file.clone(), value: write.value.clone() });
        let made = plan.persisted.iter().map(|file| Made {
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
            before: Snapshot::of(self.system, &plan.device),
            after: Snapshot::default(),
            made: made.collect(),
        }
    }

    /// Undoes the changes of this device, or of all devices, last change first.
    ///
    /// # Errors
    /// If a journal is damaged.
    pub fn undo(&self, device: Option<&str>) -> Result<Vec<Restored>, ApplyError> {
        let mut all = Vec::new();
        for (file, journal) in self.journals()?.into_iter().rev() {
            if device.is_none_or(|device| device == journal.device) {
                all.push(self.take_back(&file, &journal)?);
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
            let is_there = |made: &Made| self.etc.read(&made.path).is_ok_and(|now| now == made.content);
            let is_persisted = journal.made.iter().all(is_there);
            let is_in_force = is_persisted && files.iter().all(|(file, _, after)| now.value(file) == Some(after));
            Applied {
                device: journal.device,
                files,
                persisted: journal.made.iter().map(|made| format!("/{}", made.path)).collect(),
                is_in_force,
                is_half_done,
            }
        };
        Ok(self.journals()?.into_iter().map(applied).collect())
    }

    /// Writes the files of the queue. An error is the file at fault and the reason.
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
            // If the kernel limited a value to its range, the file differs from before; if it ignored the value, the file
            // is unchanged.
            let is_taken = write.is_shown_as(&shown) || (write.file != "scheduler" && shown != write.before);
            if !is_taken {
                return Err(failed(format!("\"{}\" did not take, it shows \"{shown}\"", write.value)));
            }
            let (file, value) = (write.file.clone(), write.value.clone());
            written.push(Written { device: plan.device.clone(), file, value, shown });
        }
        Ok(written)
    }

    /// Writes the files that make the change persistent. An error is the file at fault and the reason.
    fn persist(&self, plan: &Plan) -> Result<(), (String, String)> {
        let udevadm = self.udevadm.as_ref().filter(|_| plan.persisted.iter().any(|file| is_rule(&file.path)));
        for file in &plan.persisted {
            let failed = |why: String| (format!("/{}", file.path), why);
            if let Some(udevadm) = udevadm {
                udevadm.verify(&file.content).map_err(failed)?;
            }
            let unwritten = |error: io::Error| failed(format!("cannot be written: {error}"));
            if let Some(folder) = folder_of(&file.path).filter(|folder| !self.etc.has_folder(folder)) {
                self.etc.make_folder(folder).map_err(unwritten)?;
            }
            self.etc.replace(&file.path, file.content.as_bytes()).map_err(unwritten)?;
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
                // The roll-back compares with the values of this run, so write them again in case udev has changed
                // them.
                let _ = self.write_all(plan);
                let now = now.unwrap_or_else(|| "nothing".to_owned());
                let why = format!(
                    "udev's rules set it to {now} (expected no rule after ours that sets it: see hoistway host)"
                );
                return Err((path(&write.file), why));
            }
        }
        Ok(())
    }

    /// Restores the values of a journal that are still in effect, and removes the journal. If it is killed meanwhile, the next run
    /// completes the journal that it leaves.
    fn take_back(&self, file: &str, journal: &Journal) -> Result<Restored, ApplyError> {
        let (ours, kept) = claim(self.system, self.etc, journal);
        self.keep(file, &ours)?;
        let was_half_done = journal.state == State::HalfDone;
        let mut restored = Restored { device: journal.device.clone(), was_half_done, files: Vec::new(), kept };
        remake(self.etc, &ours, &mut restored);
        // udevd knows a removed rule until it looks again, and would apply it to the next event.
        if let Some(udevadm) = self.udevadm.as_ref().filter(|_| ours.made.iter().any(|made| is_rule(&made.path))) {
            udevadm.reload();
        }
        restore(self.system, &ours, &mut restored);
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

    /// The journals, oldest first.
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

/// The result of a roll-back that has left these files.
fn back(kept: &[Kept]) -> String {
    match kept {
        [] => "everything was rolled back".to_owned(),
        [first, ..] => format!("rolled back, but for {} (look at it)", first.file),
    }
}

/// Whether a file has rules of udev.
fn is_rule(path: &str) -> bool {
    path.ends_with(".rules")
}

/// The folder of a path.
fn folder_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}
