//! Restores the values from before a change.

use super::journal::{ConfigFile, Journal, State};
use super::snapshot::{Snapshot, shown};
use crate::root::Root;

/// A file that was not restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The file.
    pub file: String,
    /// Why.
    pub why: String,
}

/// The result of a restore.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// The device.
    pub device: String,
    /// Whether a killed run had left the change incomplete.
    pub was_half_done: bool,
    /// Restored files with their values; `None` for a file that was removed.
    pub files: Vec<(String, Option<String>)>,
    /// Files that were not restored.
    pub kept: Vec<Kept>,
}

/// The part of a journal that is still in effect and has to be restored. It is marked as incomplete, so that the next run
/// can complete an interrupted restore. Also returns the files that another program has changed.
pub(super) fn claim(system: &Root, etc: &Root, journal: &Journal) -> (Journal, Vec<Kept>) {
    let (mut ours, mut kept) = (journal.clone(), Vec::new());
    let (device, before, after) = (&journal.device, &journal.before, &journal.after);
    let is_half_done = journal.state == State::HalfDone;
    ours.state = State::HalfDone;
    ours.config_files.retain(|config| {
        let now = etc.read(&config.path).ok();
        let is_ours = now == config.before || now.as_ref() == Some(&config.content);
        if !is_ours {
            kept.push(Kept { file: format!("/{}", config.path), why: "changed since by another program".to_owned() });
        }
        is_ours
    });
    let now = Snapshot::read(system, device);
    let changed_by_other = |file: &str| {
        let why = format!("changed since by another program, to {}", now.value(file).unwrap_or("-"));
        Kept { file: path(device, file), why }
    };
    let mut written = journal.entries.iter().filter(|entry| entry.file == "scheduler");
    let is_scheduler_ours =
        now.scheduler == before.scheduler || written.any(|entry| now.value("scheduler") == Some(&entry.value));
    if !is_scheduler_ours && now.scheduler.is_some() {
        kept.push(changed_by_other("scheduler"));
        ours.before.scheduler = None;
    }
    ours.before.files.retain(|(file, value)| {
        // Files in `iosched/` disappear with their scheduler.
        let is_of_scheduler = file.starts_with("iosched/");
        if is_of_scheduler && !is_scheduler_ours {
            return false;
        }
        if is_half_done || (is_of_scheduler && after.scheduler != before.scheduler) {
            return true;
        }
        // Files that the change did not affect are not restored.
        let (value, after, now) = (Some(value.as_str()), after.value(file), now.value(file));
        if value == after || now == value {
            return false;
        }
        if now != after {
            kept.push(changed_by_other(file));
        }
        now == after
    });
    (ours, kept)
}

/// Restores or removes the configuration files of a [claimed](claim) journal. Called before [`restore`], so that they cannot
/// override restored values.
pub(super) fn restore_config_files(etc: &Root, journal: &Journal, restored: &mut Restored) {
    journal.config_files.iter().rev().for_each(|config| restore_config_file(etc, config, restored));
}

/// Restores the values of a [claimed](claim) journal, except those that are back already.
pub(super) fn restore(system: &Root, journal: &Journal, restored: &mut Restored) {
    let (device, before) = (&journal.device, &journal.before);
    if !system.has_folder(&format!("sys/block/{device}")) {
        let file = format!("/sys/block/{device}");
        restored.kept.push(Kept { file, why: "the device no longer exists".to_owned() });
        return;
    }
    let differs = |file: &str, value: &str| shown(system, device, file).is_some_and(|shown| shown != value);
    if let Some(scheduler) = before.scheduler.as_deref().filter(|name| differs("scheduler", name)) {
        write(system, device, "scheduler", scheduler, restored);
    }
    let is_scheduler_restored = before.scheduler.is_none() || shown(system, device, "scheduler") == before.scheduler;
    for (file, value) in &before.files {
        if (is_scheduler_restored || !file.starts_with("iosched/")) && differs(file, value) {
            write(system, device, file, value, restored);
        }
    }
}

fn restore_config_file(etc: &Root, config: &ConfigFile, restored: &mut Restored) {
    etc.remove_part(&config.path);
    let file = format!("/{}", config.path);
    if etc.read(&config.path).ok() != config.before {
        let (done, content) = match &config.before {
            Some(before) => (etc.replace(&config.path, before.as_bytes()), Some("its previous content".to_owned())),
            None => (etc.remove(&config.path), None),
        };
        match done {
            Ok(()) => restored.files.push((file, content)),
            Err(error) => restored.kept.push(Kept { file, why: error.to_string() }),
        }
    }
    if let Some((folder, _)) = config.path.rsplit_once('/').filter(|_| config.makes_folder) {
        // The folder stays if it contains anything else.
        let _ = etc.remove_folder(folder);
    }
}

fn path(device: &str, file: &str) -> String {
    format!("/sys/block/{device}/queue/{file}")
}

fn write(system: &Root, device: &str, file: &str, value: &str, restored: &mut Restored) {
    let file_path = path(device, file);
    match system.write(&file_path, value) {
        Ok(()) if shown(system, device, file).as_deref() == Some(value) => {
            restored.files.push((file_path, Some(value.to_owned())))
        }
        Ok(()) => restored.kept.push(Kept { file: file_path, why: format!("\"{value}\" had no effect") }),
        Err(error) => {
            restored.kept.push(Kept { file: file_path, why: format!("the kernel refuses \"{value}\": {error}") })
        }
    }
}
