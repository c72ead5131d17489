//! Processes, and the files that they use.

use serde::{Deserialize, Serialize};

use crate::{LoadError, Process};

/// What is to be done: processes, and the files that they use. One file is one device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// The processes, clones of a job next to each other. The random numbers of a process depend on its position.
    pub processes: Vec<Process>,
    /// The files, each name once.
    pub files: Vec<String>,
    /// What results repeat of the whole load, as they do [`Process::options`].
    pub options: Vec<(String, String)>,
}

impl Load {
    /// Without processes and files.
    #[must_use]
    pub fn new() -> Load {
        Load::default()
    }

    /// The number of the file of that name, which is added if it is new.
    pub fn file(&mut self, name: &str) -> u32 {
        let known = self.files.iter().position(|file| file == name);
        known.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        }) as u32
    }

    /// Adds a process, which is a job of its own.
    pub fn add(&mut self, process: Process) {
        self.add_clones(process, 1);
    }

    /// Adds a job of so many processes that do the same, each with random numbers of its own.
    pub fn add_clones(&mut self, mut process: Process, clones: u32) {
        process.schedule.job = self.processes.last().map_or(0, |last| last.schedule.job + 1);
        for clone in 0..clones {
            process.schedule.clone = clone;
            self.processes.push(process.clone());
        }
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), LoadError> {
        crate::check::load(self)
    }
}
