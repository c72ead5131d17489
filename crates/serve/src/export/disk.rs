//! A disk: its exports share its queue, its scheduler and its workers, and nothing with the exports of another disk, which it never delays.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hoistway_blk::ground::Unit;
use hoistway_blk::sysfs::AttributeError;
use hoistway_engine::{DiskId, Engine};

use crate::event_loop::Inboxes;
use crate::export::shares::Shares;

/// A disk that is being served: the server's target, or one that files of exports are on.
pub struct Disk {
    /// Its name, for operators.
    pub name: String,
    /// What it is, if files may be on it.
    pub(crate) id: Option<DiskId>,
    /// Its block layer.
    pub engine: Engine,
    /// The numbers of its workers.
    workers: Range<usize>,
    inboxes: Inboxes,
    /// Divides the throughput of a fast disk among exports by weight while the scheduler is none.
    pub shares: Arc<Shares>,
    /// The scheduler if the configuration names none.
    default_scheduler: Mutex<DefaultScheduler>,
    /// The queue's files with their values just after the current scheduler was set. They are written back before other
    /// settings are applied.
    scheduler_defaults: Mutex<Vec<(String, String)>>,
}

/// The scheduler of a disk for which the configuration names none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultScheduler {
    /// Its name.
    pub name: String,
    /// Whether exports share the disk by weight although the scheduler is none.
    pub shares: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// A disk with this engine, whose workers have these inboxes.
    pub(crate) fn new(
        name: String,
        id: Option<DiskId>,
        engine: Engine,
        workers: Range<usize>,
        inboxes: Inboxes,
    ) -> Disk {
        let disk = Disk {
            name,
            id,
            shares: Arc::new(Shares::new(inboxes.clone())),
            default_scheduler: Mutex::new(DefaultScheduler { name: "none".to_owned(), shares: false }),
            scheduler_defaults: Mutex::default(),
            engine,
            workers,
            inboxes,
        };
        disk.remember_scheduler_defaults();
        disk
    }

    /// The worker with the fewest connections.
    #[must_use]
    pub fn least_loaded_worker(&self) -> usize {
        self.inboxes.least_loaded(self.workers.clone())
    }

    /// Whether a worker is one of its own; if so, its index among them.
    pub(crate) fn index_of_worker(&self, worker: usize) -> Option<usize> {
        self.workers.contains(&worker).then(|| worker - self.workers.start)
    }

    /// Commands at the disk.
    #[must_use]
    pub fn at_target(&self) -> usize {
        self.inboxes.at_target(self.workers.clone())
    }

    /// The scheduler if the configuration names none.
    #[must_use]
    pub fn default_scheduler(&self) -> DefaultScheduler {
        lock(&self.default_scheduler).clone()
    }

    /// Sets the scheduler for a configuration that names none.
    pub fn set_default_scheduler(&self, scheduler: DefaultScheduler) {
        *lock(&self.default_scheduler) = scheduler;
    }

    /// The content of a file of its queue, without the newline; empty if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        self.engine.attribute(name).map(|text| text.trim_end().to_owned()).unwrap_or_default()
    }

    /// The current scheduler.
    #[must_use]
    pub fn scheduler(&self) -> String {
        active(&self.file("scheduler")).to_owned()
    }

    /// The tunables of the scheduler, and their values.
    pub(crate) fn tunables(&self) -> Vec<(String, String)> {
        let names = self.engine.tunables().into_iter().map(|tunable| tunable.name);
        names.map(|name| (name.to_owned(), self.file(&format!("iosched/{name}")))).collect()
    }

    /// The scheduler, and the files that depend on it, in an order in which they can be written.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![("scheduler".to_owned(), self.scheduler())];
        files.push(("nr_requests".to_owned(), self.file("nr_requests")));
        files.extend(self.tunables().into_iter().map(|(name, value)| (format!("iosched/{name}"), value)));
        files
    }

    /// Sets the scheduler and the named settings; other files get back the value that they had when the scheduler was set.
    ///
    /// # Errors
    /// If the queue rejects a value, as text; then some may have been set.
    pub(crate) fn set_all(&self, scheduler: &str, settings: &[(String, String)]) -> Result<(), String> {
        if self.scheduler() != scheduler {
            self.set("scheduler", scheduler)?;
        }
        let defaults = lock(&self.scheduler_defaults).clone();
        let files = self.files();
        // Defaults come before the named files: some tunables are two names for the same setting.
        for (file, value) in defaults.iter().filter(|file| !files.contains(file)) {
            self.write(file, value).map_err(|error| format!("{file}={value}: {error}"))?;
        }
        settings.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    /// Writes a file of the queue (usually `scheduler` or `nr_requests`), or a tunable as `SCHEDULER.NAME`.
    ///
    /// # Errors
    /// If it does not exist, or rejects the value; as text.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<(), String> {
        let file = match key.split_once('.') {
            None => key.to_owned(),
            Some((scheduler, name)) => {
                let active = self.scheduler();
                if scheduler != active {
                    return Err(format!("{key}: the scheduler is {active}, not {scheduler:?}"));
                }
                format!("iosched/{name}")
            }
        };
        if value.contains(char::is_control) {
            return Err(format!("{key}={value:?}: contains control characters (expected one line of text)"));
        }
        let written = self.write(&file, value).map_err(|error| match error {
            AttributeError::Unknown => {
                format!("{key}: no such setting (expected scheduler, nr_requests or SCHEDULER.TUNABLE)")
            }
            error => format!("{key}={value}: {error}{}", self.expected(&file)),
        });
        if written.is_ok() && file == "scheduler" {
            // Sharing by weight is part of the default for fast disks. An operator who chooses a scheduler chooses without it.
            self.shares.want(false);
        }
        written
    }

    /// Writes a file of the queue, as its path below `queue/`.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<(), AttributeError> {
        let is_new = file == "scheduler" && self.scheduler() != value;
        self.engine.set_attribute(file, value)?;
        if is_new {
            self.remember_scheduler_defaults();
        }
        Ok(())
    }

    /// Called just after the scheduler was set, when its files contain their defaults.
    fn remember_scheduler_defaults(&self) {
        *lock(&self.scheduler_defaults) = self.files().split_off(1);
    }

    /// A suffix for an error, ` (expected ...)`, with the valid values of a file of the queue; empty if they are not known.
    fn expected(&self, file: &str) -> String {
        if file == "scheduler" {
            let names = self.file("scheduler").replace(['[', ']'], "");
            return format!(" (expected one of {})", names.split_whitespace().collect::<Vec<_>>().join(", "));
        }
        let tunables = self.engine.tunables();
        let Some(tunable) =
            file.strip_prefix("iosched/").and_then(|name| tunables.iter().find(|tunable| tunable.name == name))
        else {
            return String::new();
        };
        match tunable.unit {
            Unit::Switch => " (expected 0 or 1)".to_owned(),
            unit => format!(" (expected {} to {}, {unit})", tunable.min, tunable.max),
        }
    }
}

/// The name in brackets of a list of schedulers.
pub(crate) fn active(schedulers: &str) -> &str {
    schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(name, _)| name)
}
