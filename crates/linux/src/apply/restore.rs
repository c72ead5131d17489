//! Restores earlier values.

use super::journal::{Journal, Made, State};
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
    /// Whether a killed run had left it incomplete.
    pub was_half_done: bool,
    /// Restored files with their values; None for a file that was removed.
    pub files: Vec<(String, Option<String>)>,
    /// Files that were not restored.
    pub kept: Vec<Kept>,
}

/// The part of a journal that is still in effect and has to be restored, as a journal of an incomplete change, so that it can be completed
/// after an interruption. Also returns the files that another program has changed.
pub(super) fn claim(system: &Root, etc: &Root, journal: &Journal) -> (Journal, Vec<Kept>) {
    let (mut ours, mut kept) = (journal.clone(), Vec::new());
    let (device, before, after) = (&journal.device, &journal.before, &journal.after);
    let is_half_done = journal.state == State::HalfDone;
    ours.state = State::HalfDone;
    ours.made.retain(|made| {
        let now = etc.read(&made.path).ok();
        let is_ours = now == made.before || now.as_ref() == Some(&made.content);
        if !is_ours {
            kept.push(Kept { file: format!("/{}", made.path), why: "changed since by another program".to_owned() });
        }
        is_ours
    });
    let now = Snapshot::of(system, device);
    let by_other = |file: &str| {
        let why = format!("changed since by another program, to {}", now.value(file).unwrap_or("-"));
        Kept { file: path(device, file), why }
    };
    let mut written = journal.entries.iter().filter(|entry| entry.file == "scheduler");
    let is_scheduler_ours =
        now.scheduler == before.scheduler || written.any(|entry| now.value("scheduler") == Some(&entry.value));
    if !is_scheduler_ours && now.scheduler.is_some() {
        kept.push(by_other("scheduler"));
        ours.before.scheduler = None;
    }
    ours.before.files.retain(|(file, value)| {
        // Files of a scheduler disappear with it.
        let is_of_scheduler = file.starts_with("iosched/");
        if is_of_scheduler && !is_scheduler_ours {
            return false;
        }
        if is_half_done || (is_of_scheduler && after.scheduler != before.scheduler) {
            return true;
        }
        // A file that the change did not affect is not restored, either.
        let (value, after, now) = (Some(value.as_str()), after.value(file), now.value(file));
        if value == after || now == value {
            return false;
        }
        if now != after {
            kept.push(by_other(file));
        }
        now == after
    });
    (ours, kept)
}

/// Restores or removes the files that a [claimed](claim) journal has made. This comes first, since they must not override restored values.
pub(super) fn remake(etc: &Root, journal: &Journal, restored: &mut Restored) {
    journal.made.iter().rev().for_each(|made| remade(etc, made, restored));
}

/// Restores the values of a journal that was [claimed](claim). Values that are restored already are not written again.
pub(super) fn restore(system: &Root, journal: &Journal, restored: &mut Restored) {
    let (device, before) = (&journal.device, &journal.before);
    if !system.has_folder(&format!("sys/block/{device}")) {
        let file = format!("/sys/block/{device}");
        restored.kept.push(Kept { file, why: "the device is no longer there".to_owned() });
        return;
    }
    let is_other = |file: &str, value: &str| shown(system, device, file).is_some_and(|shown| shown != value);
    if let Some(scheduler) = before.scheduler.as_deref().filter(|name| is_other("scheduler", name)) {
        write(system, device, "scheduler", scheduler, restored);
    }
    let is_back = before.scheduler.is_none() || shown(system, device, "scheduler") == before.scheduler;
    for (file, value) in &before.files {
        if (is_back || !file.starts_with("iosched/")) && is_other(file, value) {
            write(system, device, file, value, restored);
        }
    }
}

fn remade(etc: &Root, made: &Made, restored: &mut Restored) {
    etc.remove_part(&made.path);
    let file = format!("/{}", made.path);
    if etc.read(&made.path).ok() != made.before {
        let (done, how) = match &made.before {
            Some(before) => (etc.replace(&made.path, before.as_bytes()), Some("what it held before".to_owned())),
            None => (etc.remove(&made.path), None),
        };
        match done {
            Ok(()) => restored.files.push((file, how)),
            Err(error) => restored.kept.push(Kept { file, why: error.to_string() }),
        }
    }
    if let Some((folder, _)) = made.path.rsplit_once('/').filter(|_| made.makes_folder) {
        // The folder stays if it contains anything else.
        let _ = etc.remove_folder(folder);
    }
}

fn path(device: &str, file: &str) -> String {
    format!("/sys/block/{device}/queue/{file}")
}

fn write(system: &Root, device: &str, file: &str, value: &str, restored: &mut Restored) {
    let place = path(device, file);
    match system.write(&place, value) {
        Ok(()) if shown(system, device, file).as_deref() == Some(value) => {
            restored.files.push((place, Some(value.to_owned())))
        }
        Ok(()) => restored.kept.push(Kept { file: place, why: format!("\"{value}\" did not take") }),
        Err(error) => restored.kept.push(Kept { file: place, why: format!("the kernel refuses \"{value}\": {error}") }),
    }
}
