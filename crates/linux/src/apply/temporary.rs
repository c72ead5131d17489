//! Temporary settings for a measurement, restored at its end.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};

use super::journal::{self, Entry, Journal, State};
use super::plan::Plan;
use super::restore::Restored;
use super::snapshot::{Snapshot, shown};
use super::{Applier, ApplyError, Written};
use crate::root::Root;

/// How long to wait for another program's lock on a device.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// A device whose queue settings are restored when this value is dropped. Meanwhile, udevd applies no rules to it.
///
/// Its journal is always marked as incomplete, so that after a kill the next run rolls it back.
#[derive(Debug)]
pub struct Temporary<'a> {
    applier: &'a Applier<'a>,
    /// The journal's file; `None` after the restore.
    file: Option<String>,
    journal: Journal,
    _lock: Option<File>,
}

impl Applier<'_> {
    /// Begins a temporary change of a device. Nothing is written to the device yet.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn begin_temporary(&self, device: &str) -> Result<Temporary<'_>, ApplyError> {
        let journal = Journal {
            format: journal::FORMAT.to_owned(),
            state: State::HalfDone,
            device: device.to_owned(),
            entries: Vec::new(),
            before: Snapshot::read(self.system, device),
            after: Snapshot::default(),
            config_files: Vec::new(),
        };
        let file = self.next_journal_file()?;
        self.save_journal(&file, &journal)?;
        Ok(Temporary { applier: self, file: Some(file), journal, _lock: lock(self.system, device) })
    }
}

/// Locks a device as described in systemd's "Locking Block Device Access": udevd postpones events of a locked device,
/// including the one after a writer closes it, on which a rule would set the scheduler. `None` if another program holds the
/// lock, or the device is not in /dev.
fn lock(system: &Root, device: &str) -> Option<File> {
    let file = system.open_file(&format!("dev/{}", device.replace('!', "/")), OFlags::RDONLY).ok()?;
    let begin = Instant::now();
    // udevd itself has the lock while it processes an event.
    while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if begin.elapsed() > LOCK_WAIT {
            return None;
        }
        std::thread::sleep(LOCK_WAIT / 100);
    }
    Some(file)
}

impl Temporary<'_> {
    /// Applies a plan, after adding it to the journal.
    ///
    /// # Errors
    /// If the journal cannot be written, or a value is not accepted.
    pub fn set(&mut self, plan: &Plan) -> Result<Vec<Written>, ApplyError> {
        for write in &plan.writes {
            let entry = Entry { file: write.file.clone(), value: write.value.clone() };
            if self.journal.entries.contains(&entry) {
                continue;
            }
            let before = &mut self.journal.before;
            // Tunables of other schedulers go with them.
            if before.value(&entry.file).is_none() && !entry.file.starts_with("iosched/") {
                let value = shown(self.applier.system, &self.journal.device, &entry.file);
                before.files.extend(value.map(|value| (entry.file.clone(), value)));
            }
            self.journal.entries.push(entry);
        }
        if let Some(file) = &self.file {
            self.applier.save_journal(file, &self.journal)?;
        }
        let failed = |(file, why)| ApplyError::ValueRejected { file, why, back: "the device is restored".to_owned() };
        self.applier.write_all(plan).map_err(failed)
    }

    /// Restores the device, and removes the journal.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn restore(mut self) -> Result<Restored, ApplyError> {
        match self.file.take() {
            Some(file) => self.applier.roll_back(&file, &self.journal),
            None => Ok(Restored::default()),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // If this fails the journal stays, and the next run tries again.
            let _ = self.applier.roll_back(&file, &self.journal);
        }
    }
}
