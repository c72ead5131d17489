//! Back to what was before.

use super::journal::{Journal, Made, State};
use super::snapshot::{Snapshot, shown};
use crate::root::Root;

/// Something that was left as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The file.
    pub file: String,
    /// Why.
    pub why: String,
}

/// What was restored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Restored {
    /// The device.
    pub device: String,
    /// Whether it had been left half-done by a run that was killed.
    pub was_half_done: bool,
    /// Files that were written, and their values.
    pub files: Vec<(String, String)>,
    /// What was left as it is.
    pub kept: Vec<Kept>,
}

/// Of a journal, what is still as it was left by us and has to be restored, as one that is half-done: so it can be finished whenever it is
/// interrupted. Besides, what another program has changed.
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
        // A scheduler's own files go with it.
        let is_of_scheduler = file.starts_with("iosched/");
        if is_of_scheduler && !is_scheduler_ours {
            return false;
        }
        if is_half_done || (is_of_scheduler && after.scheduler != before.scheduler) {
            return true;
        }
        // What the change did not touch is not restored either.
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

/// Restores what a journal that was [claimed](claim) says. Whatever is restored already is not touched.
pub(super) fn restore(system: &Root, etc: &Root, journal: &Journal, restored: &mut Restored) {
    journal.made.iter().rev().for_each(|made| remade(etc, made, restored));
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

/// What makes the change last goes first: what restores the files must not be undone by it.
fn remade(etc: &Root, made: &Made, restored: &mut Restored) {
    etc.remove_part(&made.path);
    let file = format!("/{}", made.path);
    if etc.read(&made.path).ok() != made.before {
        let (done, how) = match &made.before {
            Some(before) => (etc.replace(&made.path, before.as_bytes()), "as before"),
            None => (etc.remove(&made.path), "removed"),
        };
        match done {
            Ok(()) => restored.files.push((file, how.to_owned())),
            Err(error) => restored.kept.push(Kept { file, why: error.to_string() }),
        }
    }
    if let Some((folder, _)) = made.path.rsplit_once('/').filter(|_| made.makes_folder) {
        // It stays if something else has come into it.
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
            restored.files.push((place, value.to_owned()))
        }
        Ok(()) => restored.kept.push(Kept { file: place, why: format!("\"{value}\" did not take") }),
        Err(error) => restored.kept.push(Kept { file: place, why: format!("the kernel refuses \"{value}\": {error}") }),
    }
}
