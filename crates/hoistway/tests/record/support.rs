//! A loop device, the privileges that a recording needs, and the programs that are run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hoistway_trace::block::{Action, Event, Losses, Recording};
use rustix::fs::FlockOperation;
use tempfile::TempDir;

use crate::skips::skipped;

const TRACEFS: &str = "/sys/kernel/tracing";

/// A folder and a loop device of 64 MiB. No other test records at the same time.
pub struct Bench {
    pub folder: TempDir,
    /// The path of the device, such as `/dev/loop3`.
    pub device: String,
    _alone: File,
}

impl Bench {
    /// None if a privilege is missing.
    pub fn new() -> Option<Bench> {
        if fs::read_dir(format!("{TRACEFS}/events/block")).is_err() {
            skipped("there is no tracefs with block events (it takes root)");
            return None;
        }
        let alone = File::create(std::env::temp_dir().join("hoistway-record-test.lock")).unwrap();
        rustix::fs::flock(&alone, FlockOperation::LockExclusive).unwrap();
        if fs::create_dir(format!("{TRACEFS}/instances/test-of-rights")).is_err() {
            skipped("no instance of the tracer may be made");
            return None;
        }
        fs::remove_dir(format!("{TRACEFS}/instances/test-of-rights")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("disk");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let device = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        match device {
            Ok(output) if output.status.success() => {
                let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                Some(Bench { folder, device, _alone: alone })
            }
            other => {
                eprintln!("{other:?}");
                skipped("losetup makes no loop device (it takes root and a free one)");
                None
            }
        }
    }

    /// The name of the device without its folder.
    pub fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// `hoistway record` of the device, as `x`.
    pub fn record(&self) -> Command {
        let mut command = self.hoistway();
        command.args(["record", &self.device, "-o", "x"]);
        command
    }

    /// The binary, in the folder.
    pub fn hoistway(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
        command.current_dir(self.folder.path());
        command
    }

    /// A fio command for the device.
    pub fn fio(&self, options: &str) -> Vec<String> {
        let device = format!("--filename={}", self.device);
        let common = ["fio", "--name=load", &device, "--direct=1", "--output-format=json", "--output=fio.json"];
        common.into_iter().chain(options.split(' ')).map(str::to_owned).collect()
    }

    /// Events of the recording `x`.
    pub fn events(&self) -> (Vec<Event>, Losses, Recording) {
        events(&self.path("x.blktrace.0"))
    }

    /// Tracefs instances that recordings have left.
    pub fn instances() -> Vec<String> {
        let entries = fs::read_dir(format!("{TRACEFS}/instances")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("hoistway-")).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// All events of a recording.
pub fn events(path: &Path) -> (Vec<Event>, Losses, Recording) {
    let mut recording = Recording::open(path).unwrap();
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        events.push(event);
    }
    (events, recording.losses().clone(), recording)
}

/// The events with an action.
pub fn of(events: &[Event], action: Action) -> Vec<Event> {
    events.iter().copied().filter(|event| event.action == action).collect()
}

/// Whether a program is installed.
pub fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skipped(&format!("there is no {program}"));
    }
    is_there
}

/// The standard output and standard error of a command, which must succeed.
#[track_caller]
pub fn succeeded(command: &mut Command) -> (String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{printed}\n{said}");
    (printed.into_owned(), said.into_owned())
}
