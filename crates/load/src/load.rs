//! Processes, and the files that they use.
//!
//! Used by: crates `experiment`, `sim`, `engine`, `fio` and others.
//! Tests: below.

use serde::{Deserialize, Serialize};

use crate::check::{Checked, ensure};
use crate::limits::PROCESSES;
use crate::{LoadError, Process};

/// Processes and the files that they use. One file is one device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// The processes; clones of a job are adjacent. The random numbers of a process depend on its position.
    pub processes: Vec<Process>,
    /// The files, each name once.
    pub files: Vec<String>,
    /// Options of the whole load that results repeat, like [`Process::options`].
    pub options: Vec<(String, String)>,
}

impl Load {
    /// A load without processes and files.
    #[must_use]
    pub fn new() -> Load {
        Load::default()
    }

    /// The number of the file with this name, which is added if it is new.
    pub fn file(&mut self, name: &str) -> u32 {
        let existing = self.files.iter().position(|file| file == name);
        existing.unwrap_or_else(|| {
            self.files.push(name.to_owned());
            self.files.len() - 1
        }) as u32
    }

    /// Adds a process as a job of its own.
    pub fn add(&mut self, process: Process) {
        self.add_clones(process, 1);
    }

    /// Adds a job of `clones` identical processes, each with its own random numbers.
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
        let count = self.processes.len();
        ensure(count > 0, "processes", "there are none", "add one")?;
        ensure(
            count <= PROCESSES,
            "processes",
            format_args!("{count} are too many"),
            format_args!("at most {PROCESSES}"),
        )?;
        for process in &self.processes {
            check_schedule(process, self)
                .map_err(|error| error.in_process(&process.name, process.plan.origin.as_ref()))?;
            process.check()?;
        }
        Ok(())
    }
}

/// Checks the fields that depend on other processes or on the files.
fn check_schedule(process: &Process, load: &Load) -> Checked {
    let schedule = &process.schedule;
    let is_earlier = schedule
        .wait_for
        .is_none_or(|job| job < schedule.job && load.processes.iter().any(|other| other.schedule.job == job));
    ensure(is_earlier, "schedule.wait_for", "there is no such job before this one", "the number of an earlier job")?;
    let phase_in_range = (schedule.phase as usize) < load.processes.len();
    ensure(phase_in_range, "schedule.phase", "more phases than processes", "phases are counted from 0")?;
    let files_exist = process.files.iter().all(|&file| (file as usize) < load.files.len());
    ensure(files_exist, "files", "there is no such file in the load", "an index into its files")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Issue, Pattern};

    #[test]
    fn a_load_is_the_same_after_it_was_written_and_read() {
        let mut load = Load::new();
        let disk = load.file("/dev/sda");
        let mut process = Process::new("a", disk, Pattern::write(8192).random());
        process.issue = Issue::asynchronous(4);
        process.standing.cgroup = Some("/b".to_owned());
        load.add_clones(process, 2);
        let text = serde_json::to_string(&load).unwrap();
        let read: Load = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let first = |load: &Load| load.processes[1].generator(1, 7, |_| 1 << 30).unwrap().take(9).collect::<Vec<_>>();
        assert_eq!(first(&read), first(&load));
    }

    #[test]
    fn omitted_fields_have_defaults_and_unknown_fields_are_errors() {
        let read = |text: &str| serde_json::from_str::<Load>(text);
        let load =
            read(r#"{"files": ["x"], "processes": [{"name": "a", "files": [0], "issue": {"depth": 2}}]}"#).unwrap();
        assert_eq!((load.check(), load.processes[0].issue.batch), (Ok(()), 1));
        assert!(read(r#"{"processes": [{"issue": {"dept": 2}}]}"#).is_err());
        assert_eq!(Load::new().check().unwrap_err().to_string(), "processes: there are none (add one)");
    }
    #[test]
    fn each_file_has_one_number_and_each_job_the_next() {
        let mut load = Load::new();
        assert_eq!(["/dev/sda", "/dev/sdb", "/dev/sda"].map(|name| load.file(name)), [0, 1, 0]);
        assert_eq!(load.files, ["/dev/sda", "/dev/sdb"]);
        load.add_clones(Process::new("twice", 0, Pattern::read(4096)), 2);
        load.add(Process::new("once", 1, Pattern::read(4096)));
        let numbers: Vec<_> = load.processes.iter().map(|p| (p.schedule.job, p.schedule.clone)).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (1, 0)]);
    }

    #[test]
    fn a_job_waits_for_an_earlier_one_that_there_is_and_uses_files_and_phases_that_there_are() {
        let refused = |change: fn(&mut Load)| {
            let mut load = Load::new();
            load.file("/dev/sda");
            (0..3).for_each(|_| load.add(Process::new("a", 0, Pattern::read(4096))));
            change(&mut load);
            load.check().err().map(|error| error.field)
        };
        assert_eq!(refused(|load| load.processes[2].schedule.wait_for = Some(1)), None);
        assert_eq!(refused(|load| load.processes[2].schedule.wait_for = Some(2)), Some("schedule.wait_for"), "itself");
        assert_eq!(refused(|load| load.processes[1].schedule.wait_for = Some(2)), Some("schedule.wait_for"), "later");
        assert_eq!(refused(|load| drop(load.processes.remove(0))), None);
        let of_one_that_is_gone = |load: &mut Load| {
            load.processes[2].schedule.wait_for = Some(0);
            load.processes.remove(0);
        };
        assert_eq!(refused(of_one_that_is_gone), Some("schedule.wait_for"));
        assert_eq!(refused(|load| load.processes[0].schedule.phase = 2), None);
        assert_eq!(refused(|load| load.processes[0].schedule.phase = 3), Some("schedule.phase"));
        assert_eq!(refused(|load| load.processes[0].files = vec![1].into()), Some("files"));
    }
}
